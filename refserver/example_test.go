package refserver_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
)

// Run the reference server of Gearman on a free port, and send it a message.
func Example() {
	srv := refserver.New(server.New(server.Options{}), refserver.Options{Protocol: gearman.Protocol})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- srv.Serve(context.Background(), listener) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	io.WriteString(conn, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x04test")
	reply := make([]byte, 16)
	_, err = io.ReadFull(conn, reply)
	fmt.Printf("%q, error: %v\n", reply, err)

	srv.Close()
	fmt.Println("server:", <-served)
	// Output:
	// "\x00RES\x00\x00\x00\x11\x00\x00\x00\x04test", error: <nil>
	// server: <nil>
}

// An Intercept injects faults: this server changes the data of ECHO_RES.
func ExampleIntercept() {
	srv := refserver.New(server.New(server.Options{}), refserver.Options{
		Protocol: gearman.Protocol,
		Intercept: func(_ *refserver.Conn, from codec.Side, f *codec.Frame) refserver.Verdict {
			if from == codec.Server && f.Type.Name == "ECHO_RES" {
				return refserver.Verdict{Replace: &codec.Message{Type: f.Type, Args: [][]byte{[]byte("TEST")}}}
			}
			return refserver.Verdict{}
		},
	})
	defer srv.Close()
	client, conn := net.Pipe()
	go srv.ServeConn(context.Background(), conn)
	io.WriteString(client, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x04test")
	reply := make([]byte, 16)
	_, err := io.ReadFull(client, reply)
	fmt.Printf("%q, error: %v\n", reply, err)
	// Output: "\x00RES\x00\x00\x00\x11\x00\x00\x00\x04TEST", error: <nil>
}

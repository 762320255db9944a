package play_test

import (
	"context"
	"fmt"
	"net"

	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/play"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
)

// Play the client's side of a transcript, and compare the replies of a server with it.
func ExamplePeers() {
	scripts, err := transcript.Parse(gearman.Protocol, "echo.wire", []byte(`
Client -> Job Server: ECHO_REQ test
Job Server -> Client: ECHO_RES other
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := refserver.New(server.New(server.Options{}), refserver.Options{Protocol: gearman.Protocol})
	defer srv.Close()
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		client, conn := net.Pipe()
		go srv.ServeConn(ctx, conn)
		return client, nil
	}
	result := play.Peers(context.Background(), scripts[0], dial, play.Options{})
	fmt.Println(result.Failure)
	// Output: byte 12, Data: expected other, got test
}

package jobtest_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"jobwire/jobtest"
)

// request connects to a Beanstalk server, sends a request and returns the first line of the reply.
func request(addr, text string) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	fmt.Fprint(c, text)
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(reply)
}

// A client puts a job into a server that refuses it. The variable t of a test is a *testing.T.
func ExampleNewServer() {
	errorsOf(func(t testing.TB) {
		srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{Faults: []string{"answer put DRAINING"}})
		fmt.Println("reply:", request(srv.Addr(), "put 0 0 60 5\r\nhello\r\n"))
		srv.Close()
		fmt.Print(srv.Transcript())
	})
	// Output:
	// reply: DRAINING
	// Client 1 -> Server: put 0 0 60 hello
	// Server -> Client 1: DRAINING
}

// The test fails because the client sends a negative priority. This example prints the first line of each error.
func ExampleServer_violation() {
	for _, e := range errorsOf(func(t testing.TB) {
		srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{})
		fmt.Println("reply:", request(srv.Addr(), "put -1 0 60 5\r\nhello\r\n"))
	}) {
		first, _, _ := strings.Cut(e, "\n")
		fmt.Println("error:", first)
	}
	// Output:
	// reply: BAD_FORMAT
	// error: rule beanstalk.number.priority (MUST) violated by a client or worker
}

// A worker has not deleted its job in its time to run of a minute, so that the server gives the job to another worker. In
// a bubble of package testing/synctest, this takes no time. The variable t of a test is the argument of the test.
func ExampleServer_Dial() {
	t := new(testing.T)
	synctest.Test(t, func(t *testing.T) {
		srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{})
		connect := func() *beanstalk.Conn {
			nc, err := srv.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return beanstalk.NewConn(nc)
		}
		slow, other := connect(), connect()
		defer slow.Close()
		defer other.Close()
		id, _ := slow.Put([]byte("photo.jpg"), 0, 0, time.Minute)
		slow.Reserve(0)
		began := time.Now()
		_, body, _ := other.Reserve(time.Hour)
		fmt.Printf("%s after %v\n", body, time.Since(began))
		fmt.Println(slow.Delete(id))
	})
	// Output:
	// photo.jpg after 1m0s
	// delete: not found
}

// A client waits for a server of the same program, which needs an hour.
func ExampleListen() {
	t := new(testing.T) // in a test, its argument
	synctest.Test(t, func(t *testing.T) {
		ln := jobtest.Listen(t)
		go func() {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			time.Sleep(time.Hour)
			fmt.Fprintln(nc, "ready")
		}()
		nc, err := ln.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		began := time.Now()
		line, err := bufio.NewReader(nc).ReadString('\n')
		fmt.Printf("%q, %v after %v\n", line, err, time.Since(began))
	})
	// Output:
	// "ready\n", <nil> after 1h0m0s
}

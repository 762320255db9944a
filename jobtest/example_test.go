package jobtest_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

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

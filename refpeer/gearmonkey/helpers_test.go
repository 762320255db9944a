package gearmonkey

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/play"
	"jobwire/refserver"
	server "jobwire/refserver/gearmonkey"
)

// listen returns a listener in memory, and its address.
func listen(t testing.TB) (net.Listener, string) {
	t.Helper()
	ln, err := transport.Listen(transport.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln, transport.Name(ln)
}

// serve starts the reference server in memory, and returns its address.
func serve(t testing.TB) string {
	t.Helper()
	srv := refserver.New(server.New(server.Options{}), refserver.Options{Protocol: protocol.Protocol})
	s, err := target.InMemory(t.Context(), "reference server", srv.Serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s.Addr()
}

// against runs do with a connection to a server that performs a transcript, in a synctest bubble. The server expects
// exactly the commands of the transcript and then the end of the connection.
func against(t *testing.T, script string, do func(t *testing.T, conn *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		if role, _, _ := strings.Cut(script, " "); !strings.HasSuffix(script, "closes\n") {
			script += role + " -> Server: closes\n"
		}
		s := parse(t, script)
		l, addr := listen(t)
		played := make(chan *play.Result, 1)
		go func() { played <- play.Server(t.Context(), s, l, play.Options{Exact: true, Timeout: time.Hour}) }()
		conn := connect(t, addr).Conn
		do(t, conn)
		conn.Abort() // the client will not send anything else
		r := <-played
		l.Close()
		if r.Failure != nil {
			t.Errorf("line %d: %v", r.Failure.Step.Line, r.Failure)
		}
	})
}

// asking calls [against] with a client.
func asking(t *testing.T, script string, do func(t *testing.T, c *Client)) {
	t.Helper()
	against(t, script, func(t *testing.T, conn *Conn) { do(t, NewClient(conn, nil)) })
}

// working calls [against] with a worker of the function reverse.
func working(t *testing.T, script string, do func(t *testing.T, w *Worker)) {
	t.Helper()
	against(t, script, func(t *testing.T, conn *Conn) {
		w := NewWorker(conn, nil)
		w.Accept("reverse")
		do(t, w)
	})
}

func parse(t *testing.T, src string) *transcript.Script {
	t.Helper()
	all, err := transcript.Parse(protocol.Protocol, "script", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d scripts, want one", len(all))
	}
	return all[0]
}

// client is a separate connection to a server, with which tests inspect and change its data.
type client struct {
	*Conn
	t testing.TB
}

func connect(t testing.TB, addr string) client {
	t.Helper()
	c, err := Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	return client{c, t}
}

// do sends a command and returns the words of its reply. For a null reply it returns the name of the message type.
func (c client) do(words ...string) string {
	c.t.Helper()
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	m, err := c.Do(context.Background(), reply("command"), args...)
	if err != nil {
		c.t.Fatalf("%v: %v", words, err)
	}
	if m.Type == typeNil || m.Type == typeNilArray {
		return m.Type.Name
	}
	return string(bytes.Join(m.Args, []byte(" ")))
}

// worker returns a worker with its own connection.
func worker(t testing.TB, addr string, functions ...string) *Worker {
	w := NewWorker(connect(t, addr).Conn, nil)
	for _, fn := range functions {
		w.Accept(fn)
	}
	return w
}

// lines joins the lines of a transcript.
func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func echo(_ context.Context, t *Task) ([]byte, error) { return t.Input, nil }

package gearmonkey

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/play"
)

// pipes is a listener whose connections are pipes in this process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns a connection to the listener.
func (l *pipes) dial(t testing.TB) *Conn {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
	case <-time.After(time.Minute):
		t.Fatal("the server accepts nobody")
	}
	c := NewConn(near, codec.Options{})
	t.Cleanup(func() { c.Close() })
	return c
}

// against runs do with a server that performs a transcript, in a synctest bubble. The server expects exactly the commands
// of the transcript and then the end of the connection.
func against(t *testing.T, script string, do func(t *testing.T, dial func() *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		if role, _, _ := strings.Cut(script, " "); !strings.HasSuffix(script, "closes\n") {
			script += role + " -> Server: closes\n"
		}
		s := parse(t, script)
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		played := make(chan *play.Result, 1)
		go func() { played <- play.Server(t.Context(), s, l, play.Options{Exact: true, Timeout: time.Hour}) }()
		var conns []*Conn
		do(t, func() *Conn {
			c := l.dial(t)
			conns = append(conns, c)
			return c
		})
		for _, c := range conns {
			c.Close() // the client will not send anything else
		}
		r := <-played
		l.Close()
		if r.Failure != nil {
			t.Errorf("line %d: %v", r.Failure.Step.Line, r.Failure)
		}
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

// answering returns a connection to a server that sends a reply and discards what it receives.
func answering(t testing.TB, reply string) *Conn {
	near, far := net.Pipe()
	go func() {
		go far.Write([]byte(reply))
		buf := make([]byte, 1<<10)
		for {
			if _, err := far.Read(buf); err != nil {
				return
			}
		}
	}()
	c := NewConn(near, codec.Options{})
	t.Cleanup(func() { c.Close(); far.Close() })
	return c
}

// lines joins the lines of a transcript.
func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func echo(_ context.Context, t *Task) ([]byte, error) { return t.Input, nil }

// waitUntil polls until ok returns true.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

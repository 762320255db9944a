// Package peertest has a test peer for reference servers.
package peertest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/internal/memnet"
	"jobwire/internal/transport"
	"jobwire/refserver"
)

// replyTimeout is how long a peer waits for an expected message. In a synctest bubble this time passes without waiting.
const replyTimeout = 20 * time.Second

// Peer is a connection to a server. The messages that it sends may violate rules; those of the server are decoded
// strictly.
type Peer struct {
	Conn net.Conn

	t         testing.TB
	protocol  *codec.Protocol
	mu        sync.Mutex
	requests  codec.Stream // strict; together with replies: a reply may depend on its request
	replies   codec.Stream
	nonStrict codec.Session // encodes messages
	frames    chan codec.Frame
	settle    func() // called after each action
	err       error  // why frames was closed
}

// New returns a peer on the connection nc, which is closed when the test ends.
func New(t testing.TB, p *codec.Protocol, nc net.Conn) *Peer {
	streams := codec.Streams(p.NewSession(codec.Options{}))
	e := &Peer{
		Conn: nc, t: t, protocol: p,
		requests: streams[codec.Peer], replies: streams[codec.Server],
		nonStrict: p.NewSession(codec.Options{WaiveAll: true}),
		frames:    make(chan codec.Frame, 4096),
		settle:    func() {},
	}
	go e.read()
	t.Cleanup(func() { nc.Close() })
	return e
}

// read decodes the messages of the server and sends a copy of each on the channel frames. At the end of the connection,
// or after an illegal message, it sets pr.err and closes the channel.
func (pr *Peer) read() {
	defer close(pr.frames)
	var f codec.Frame
	in := make([]byte, 64<<10)
	for {
		n, err := pr.Conn.Read(in)
		var all []codec.Frame
		pr.mu.Lock()
		for p := range pr.replies.Feed(in[:n], &f) {
			if p.Err != nil {
				err = p.Err
				break
			}
			all = append(all, f.Clone())
		}
		pr.mu.Unlock()
		for _, f := range all {
			pr.frames <- f
		}
		if err != nil {
			pr.err = err
			return
		}
	}
}

// Send sends a message of the type.
func (pr *Peer) Send(name string, args ...string) {
	pr.t.Helper()
	pr.Raw(pr.Encode(name, args...))
}

// Encode returns the bytes of a message. It does not send them.
func (pr *Peer) Encode(name string, args ...string) []byte {
	pr.t.Helper()
	m := codec.Message{Type: pr.protocol.TypeNamed(name)}
	if m.Type == nil {
		pr.t.Fatalf("unknown message type %s", name)
	}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	b, err := pr.nonStrict.Append(nil, codec.Peer, &m)
	if err != nil {
		pr.t.Fatalf("%s %q: %v", name, args, err)
	}
	return b
}

// Raw sends bytes.
func (pr *Peer) Raw(b []byte) {
	pr.t.Helper()
	// Decode the requests as well, because the replies may depend on them.
	pr.mu.Lock()
	var f codec.Frame
	if pr.requests.Lost() {
		pr.requests.Resume()
	}
	for range pr.requests.Feed(b, &f) {
	}
	pr.mu.Unlock()
	if _, err := pr.Conn.Write(b); err != nil {
		pr.t.Fatalf("sending: %v", err)
	}
	pr.settle()
}

// CloseWrite closes the direction to the server.
func (pr *Peer) CloseWrite() {
	pr.t.Helper()
	if err := transport.CloseWrite(pr.Conn); err != nil {
		pr.t.Fatal(err)
	}
	pr.settle()
}

// Leave closes the connection with a reset. After a close without a reset, the server would take it for half-closed.
func (pr *Peer) Leave() {
	transport.Reset(pr.Conn)
	pr.settle()
}

// Next returns the type and the arguments of the next message from the server. The test fails if there is none.
func (pr *Peer) Next() (name string, args []string) {
	pr.t.Helper()
	select {
	case f, ok := <-pr.frames:
		if !ok {
			pr.t.Fatalf("expected a message, but the connection ended: %v", pr.err)
		}
		var m codec.Message
		f.Message(&m)
		for _, a := range m.Args {
			args = append(args, string(a))
		}
		return f.Type.Name, args
	case <-time.After(replyTimeout):
		pr.t.Fatal("expected a message, got none")
	}
	panic("unreachable")
}

// Want checks the type and the arguments of the next message from the server, and returns the arguments. "*" matches
// any argument.
func (pr *Peer) Want(name string, args ...string) []string {
	pr.t.Helper()
	got, have := pr.Next()
	ok := got == name && len(have) == len(args)
	for i := 0; ok && i < len(args); i++ {
		ok = args[i] == "*" || args[i] == have[i]
	}
	if !ok {
		pr.t.Fatalf("got %s %q, expected %s %q", got, have, name, args)
	}
	return have
}

// NextOrStop returns the type of the next message from the server. It returns false if stop is closed before a message
// arrives, or if the connection ends, which is an error of the test.
func (pr *Peer) NextOrStop(stop <-chan struct{}) (name string, ok bool) {
	select {
	case f, ok := <-pr.frames:
		if !ok {
			pr.t.Errorf("the connection ended: %v", pr.err)
			return "", false
		}
		return f.Type.Name, true
	case <-stop:
		return "", false
	}
}

// Ended waits for the end of the connection, checks that the server sends no more messages, and returns the error of
// the last read.
func (pr *Peer) Ended() error {
	pr.t.Helper()
	select {
	case f, ok := <-pr.frames:
		if ok {
			pr.t.Fatalf("got %s %q, expected the end of the connection", f.Type.Name, f.Raw)
		}
	case <-time.After(replyTimeout):
		pr.t.Fatal("the connection is still open, expected its end")
	}
	return pr.err
}

// Dial returns a peer of a server in memory. Each of its actions waits until the server has handled it, so that the
// server handles the messages of several peers in the order of the test. Dial must be called in a synctest bubble, and
// all its peers must be used by the same goroutine.
func Dial(t testing.TB, p *codec.Protocol, srv *refserver.Server) *Peer {
	e := New(t, p, Connect(t, srv))
	e.settle = synctest.Wait
	e.settle()
	return e
}

// Connect connects to a server in memory. It must be called in a synctest bubble.
func Connect(t testing.TB, srv *refserver.Server) *memnet.Conn {
	near, far := memnet.Pipe()
	go srv.ServeConn(t.Context(), far)
	return near
}

// Serve runs a server for the machine on loopback until the test ends, and returns its address. It is for tests with
// programs of other projects, and of sockets.
func Serve(t testing.TB, p *codec.Protocol, m refserver.Machine) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- refserver.New(m, refserver.Options{Protocol: p}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// Feed sends b to the server on a new connection, reads and discards the replies, and closes the connection and the
// server. It must be called in a synctest bubble.
func Feed(t testing.TB, srv *refserver.Server, b []byte) {
	near := Connect(t, srv)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, near)
	}()
	near.Write(b)
	synctest.Wait()
	near.Reset()
	<-drained
	srv.Close()
}

package refserver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

// serve runs a Gearman server on loopback and returns its address and a function that stops it. It also checks that Serve returns nil
// and that no goroutine is left at the end of the test.
func serve(t testing.TB, o refserver.Options) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	o.Protocol = gearman.Protocol
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- refserver.New(machine.New(machine.Options{Host: "test"}), o).Serve(ctx, l) }()
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Serve does not return")
		}
	}
	// Cleanups run in reverse order: those of the peers, which are added later, run before this one.
	t.Cleanup(func() {
		stop()
		if !eventually(func() bool { return runtime.NumGoroutine() <= before }) {
			buf := make([]byte, 64<<10)
			t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	})
	return l.Addr().String(), stop
}

// eventually polls until ok returns true, for at most 20 seconds, and reports whether it did.
func eventually(ok func() bool) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

func dial(t testing.TB, addr string) *peertest.Peer {
	t.Helper()
	return peertest.New(t, gearman.Protocol, connect(t, addr))
}

func connect(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc.(*net.TCPConn)
}

// bubble runs a test with a server over pipes in a synctest bubble, with the faults injected.
func bubble(t *testing.T, o refserver.Options, test func(t *testing.T, dial func() *peertest.Peer), faults ...string) {
	t.Helper()
	o.Protocol = gearman.Protocol
	m := refserver.Machine(machine.New(machine.Options{Host: "test"}))
	if len(faults) > 0 {
		faulty, err := injector.Wrap(m, &o, strings.Join(faults, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		m = faulty
	}
	synctest.Test(t, func(t *testing.T) {
		srv := refserver.New(m, o)
		test(t, func() *peertest.Peer {
			near, far := net.Pipe()
			go srv.ServeConn(t.Context(), far)
			synctest.Wait()
			return peertest.New(t, gearman.Protocol, near)
		})
		srv.Close()
	})
}

// TestByteByByte sends messages one byte at a time.
func TestByteByByte(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		for _, b := range append(c.Encode("ECHO_REQ", "slow"), "version\n"...) {
			if _, err := c.Conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		c.Want("ECHO_RES", "slow")
		c.Raw(nil)
	})
}

// TestPipelined sends many messages in one write that exceeds every buffer, with a large message among them.
func TestPipelined(t *testing.T) {
	addr, _ := serve(t, refserver.Options{})
	c := dial(t, addr)
	large := strings.Repeat("large", 1<<18)
	var b []byte
	for range 1000 {
		b = append(b, c.Encode("ECHO_REQ", "before")...)
	}
	b = append(b, c.Encode("ECHO_REQ", large)...)
	b = append(b, c.Encode("ECHO_REQ", "after")...)
	c.Raw(b)
	for range 1000 {
		c.Want("ECHO_RES", "before")
	}
	c.Want("ECHO_RES", large)
	c.Want("ECHO_RES", "after")
}

// TestPipelinerThatDoesNotRead checks that the server stops reading from a client that does not read its replies when more than
// PauseOutput bytes are pending. When the client reads again, after it has closed its direction, no reply is missing.
func TestPipelinerThatDoesNotRead(t *testing.T) {
	addr, _ := serve(t, refserver.Options{PauseOutput: 64 << 10})
	nc := connect(t, addr)
	const requests = 200_000
	sent := make(chan error, 1)
	var wrote atomic.Int64
	e := peertest.New(t, gearman.Protocol, silentConn{})
	one := e.Encode("ECHO_REQ", strings.Repeat("x", 100))
	go func() {
		batch := bytes.Repeat(one, 100)
		for range requests / 100 {
			n, err := nc.Write(batch)
			wrote.Add(int64(n))
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nc.CloseWrite()
	}()
	// Wait until the client cannot write any more.
	last, since := int64(0), time.Now()
	if !eventually(func() bool {
		if now := wrote.Load(); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > 50*time.Millisecond
	}) {
		t.Fatal("the server never pauses")
	}
	if last == int64(requests*len(one)) {
		t.Fatal("the server took everything")
	}
	// Other connections are served in the meantime.
	other := dial(t, addr)
	other.Send("ECHO_REQ", "still there?")
	other.Want("ECHO_RES", "still there?")

	n, err := io.Copy(io.Discard, nc)
	if err != nil || n != int64(requests*len(one)) {
		t.Fatalf("read %d bytes, want %d: %v", n, requests*len(one), err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// silentConn is the connection of a peer that is only used for encoding.
type silentConn struct{ net.Conn }

func (silentConn) Read([]byte) (int, error) { return 0, io.EOF }
func (silentConn) Close() error             { return nil }

// TestSlowReader checks that a client that does not read its results does not delay others, and is closed when more than MaxOutput
// bytes are pending for it.
func TestSlowReader(t *testing.T) {
	const limit = 8 << 20
	addr, _ := serve(t, refserver.Options{MaxOutput: limit})
	slow := connect(t, addr)
	c, w := dial(t, addr), dial(t, addr)
	slow.Write(c.Encode("SUBMIT_JOB", "f", "id", "x"))
	if !eventually(func() bool {
		c.Send("GET_STATUS_UNIQUE", "id")
		return c.Want("STATUS_RES_UNIQUE", "id", "*", "*", "*", "*", "*")[1] == "1"
	}) {
		t.Fatal("the job does not arrive")
	}
	c.Send("SUBMIT_JOB", "f", "id", "x")
	h := c.Want("JOB_CREATED", "*")[0]
	w.Send("CAN_DO", "f")
	w.Send("GRAB_JOB")
	w.Want("JOB_ASSIGN", h, "f", "x")
	data := strings.Repeat("d", 1<<20)
	clients := func() string {
		c.Send("GET_STATUS_UNIQUE", "id")
		return c.Want("STATUS_RES_UNIQUE", "id", "*", "*", "*", "*", "*")[5]
	}
	rounds := 0
	for clients() == "2" && rounds < 100 {
		w.Send("WORK_DATA", h, data)
		c.Want("WORK_DATA", h, data) // must not be delayed by the slow client
		rounds++
	}
	if rounds < limit>>20 || rounds == 100 {
		t.Errorf("the slow client lost its connection after %d MiB, want some more than %d", rounds, limit>>20)
	}
	w.Send("WORK_COMPLETE", h, "done")
	c.Want("WORK_COMPLETE", h, "done")
}

// TestHalfClosedClient checks that a client that has closed its direction gets its results before the server closes the connection.
func TestHalfClosedClient(t *testing.T) {
	addr, _ := serve(t, refserver.Options{})
	c, w := dial(t, addr), dial(t, addr)
	c.Send("ECHO_REQ", "first")
	c.Send("SUBMIT_JOB", "f", "", "x")
	c.Conn.(*net.TCPConn).CloseWrite()
	c.Want("ECHO_RES", "first")
	h := c.Want("JOB_CREATED", "*")[0]
	w.Send("CAN_DO", "f")
	w.Send("GRAB_JOB")
	w.Want("JOB_ASSIGN", h, "f", "x")
	w.Send("WORK_STATUS", h, "1", "2")
	c.Want("WORK_STATUS", h, "1", "2")
	w.Send("WORK_COMPLETE", h, "y")
	c.Want("WORK_COMPLETE", h, "y")
	if err := c.Ended(); err != io.EOF {
		t.Errorf("the connection ends with %v", err)
	}
}

// TestHalfClosedWorker checks that the server requeues the jobs of a worker that closes its direction.
func TestHalfClosedWorker(t *testing.T) {
	addr, _ := serve(t, refserver.Options{})
	c, w, other := dial(t, addr), dial(t, addr), dial(t, addr)
	c.Send("SUBMIT_JOB", "f", "", "x")
	h := c.Want("JOB_CREATED", "*")[0]
	w.Send("CAN_DO", "f")
	w.Send("GRAB_JOB")
	w.Want("JOB_ASSIGN", h, "f", "x")
	other.Send("CAN_DO", "f")
	other.Send("PRE_SLEEP")
	w.Conn.(*net.TCPConn).CloseWrite()
	if err := w.Ended(); err != io.EOF {
		t.Errorf("the worker's connection ends with %v", err)
	}
	other.Want("NOOP")
	other.Send("GRAB_JOB")
	other.Want("JOB_ASSIGN", h, "f", "x")
}

// TestHalfClosedLimit checks that the server closes a half-closed client after the time HalfClosed, at once if it is negative, and
// drops its job.
func TestHalfClosedLimit(t *testing.T) {
	for _, limit := range []time.Duration{-1, 30 * time.Millisecond} {
		addr, _ := serve(t, refserver.Options{HalfClosed: limit})
		c, other := dial(t, addr), dial(t, addr)
		c.Send("SUBMIT_JOB", "f", "", "x")
		h := c.Want("JOB_CREATED", "*")[0]
		c.Conn.(*net.TCPConn).CloseWrite()
		c.Ended()
		other.Send("GET_STATUS", h)
		other.Want("STATUS_RES", h, "0", "0", "0", "0")
	}
}

// TestResetClient checks that the server detects a reset of a client that waits for a job, and drops the job.
func TestResetClient(t *testing.T) {
	addr, _ := serve(t, refserver.Options{})
	c, other := dial(t, addr), dial(t, addr)
	c.Send("SUBMIT_JOB", "f", "", "x")
	h := c.Want("JOB_CREATED", "*")[0]
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Conn.Close()
	if !eventually(func() bool {
		other.Send("GET_STATUS", h)
		return other.Want("STATUS_RES", h, "*", "*", "0", "0")[1] == "0"
	}) {
		t.Error("the job of a client that is gone stays in the queue")
	}
}

// TestLastReplyArrives checks that the last reply reaches a peer that is still sending when the server closes the connection.
func TestLastReplyArrives(t *testing.T) {
	addr, _ := serve(t, refserver.Options{})
	c := dial(t, addr)
	c.Conn.Write(append([]byte("\x00BAD"), make([]byte, 1<<20)...))
	c.Want("ERROR", "INVALID_MAGIC", "*")
	if err := c.Ended(); err != io.EOF {
		t.Errorf("the connection ends with %v, want its orderly end", err)
	}
}

// TestUnboundedInput checks that the server does not allocate the memory that headers announce, and rejects a header that announces
// 4 GiB and a line without an end.
func TestUnboundedInput(t *testing.T) {
	addr, _ := serve(t, refserver.Options{Codec: codec.Options{MaxData: 1<<31 - 1}})
	over := dial(t, addr)
	over.Conn.Write([]byte("\x00REQ\x00\x00\x00\x10\xff\xff\xff\xff"))
	over.Want("ERROR", "ARGUMENT_TOO_LARGE", "*")
	over.Ended()

	line := dial(t, addr)
	line.Conn.Write(bytes.Repeat([]byte("x"), codec.DefaultMaxLine))
	line.Ended()

	// Each of these connections announces 2 GiB and sends 1000 bytes.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const many = 50
	for range many {
		nc := connect(t, addr)
		nc.Write(append([]byte("\x00REQ\x00\x00\x00\x10\x7f\xff\xff\xff"), make([]byte, 1000)...))
	}
	c := dial(t, addr)
	c.Send("ECHO_REQ", "alive")
	c.Want("ECHO_RES", "alive")
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > many*100<<10 {
		t.Errorf("%d announcements made the process allocate %d bytes", many, grown)
	}
}

// TestAcceptErrors checks that Serve retries after temporary errors of the listener, and returns other errors.
func TestAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &failingListener{failures: 5, quit: make(chan struct{})}
		srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- srv.Serve(ctx, l) }()
		near, far := net.Pipe()
		l.conn.Store(&far)
		c := peertest.New(t, gearman.Protocol, near)
		c.Send("ECHO_REQ", "at last")
		c.Want("ECHO_RES", "at last")
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if l.failures > 0 {
			t.Errorf("%d failures were not met with patience", l.failures)
		}
		if err := srv.Serve(t.Context(), l); err != refserver.ErrClosed {
			t.Errorf("a stopped server's Serve: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken for good")
		srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol})
		if err := srv.Serve(t.Context(), &failingListener{fatal: broken, quit: make(chan struct{})}); err != broken {
			t.Errorf("Serve: %v, want the listener's error", err)
		}
	})
}

// TestListenersOfAnyKind checks that Serve accepts a listener of a type that is not comparable.
func TestListenersOfAnyKind(t *testing.T) {
	type wrapped struct {
		net.Listener
		about []string
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol})
	if err := srv.Serve(ctx, wrapped{&failingListener{quit: make(chan struct{})}, nil}); err != nil {
		t.Error(err)
	}
}

// failingListener is a listener that fails a number of times, accepts one connection, and then blocks until it is closed.
type failingListener struct {
	failures int
	fatal    error
	conn     atomic.Pointer[net.Conn]
	quit     chan struct{}
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.fatal != nil {
		return nil, l.fatal
	}
	if l.failures > 0 {
		l.failures--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	if c := l.conn.Swap(nil); c != nil {
		return *c, nil
	}
	<-l.quit
	return nil, net.ErrClosed
}

func (l *failingListener) Close() error {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	return nil
}

func (l *failingListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestMachineStopsServer checks that the command shutdown ends the server: Serve returns although its context is not canceled.
func TestMachineStopsServer(t *testing.T) {
	for _, graceful := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			done <- refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol}).Serve(context.Background(), l)
		}()
		a, c := dial(t, l.Addr().String()), dial(t, l.Addr().String())
		c.Send("ECHO_REQ", "here")
		c.Want("ECHO_RES", "here")
		if graceful {
			a.Send("shutdown", "graceful")
		} else {
			a.Send("shutdown")
		}
		a.Want("OK")
		if graceful {
			if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
				nc.Close()
				t.Error("a server that is shutting down takes connections")
			}
			c.Send("ECHO_REQ", "still here")
			c.Want("ECHO_RES", "still here")
			c.Conn.Close()
			a.Conn.Close()
		} else {
			a.Ended()
			c.Ended()
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Serve does not return")
		}
	}
}

package model

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing/synctest"
	"time"

	"jobwire/refserver"
)

// memory is a wire to a server in this process. Inside a bubble of synctest it is
// exact, and waiting takes no time.
type memory struct {
	server *refserver.Server
	ctx    context.Context
	ends   [maxPeers]*end
}

// end is a server's end of a connection.
type end struct {
	mu       sync.Mutex
	cond     sync.Cond
	in, out  []byte
	eof      bool // nothing more is sent to the server
	closed   bool // by the server
	told     bool
	deadline bool
	done     chan struct{}
}

func newEnd() *end {
	e := &end{done: make(chan struct{})}
	e.cond.L = &e.mu
	return e
}

func (e *end) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case e.closed:
			return 0, net.ErrClosed
		case e.deadline:
			return 0, os.ErrDeadlineExceeded
		case len(e.in) > 0:
			n := copy(p, e.in)
			e.in = e.in[n:]
			return n, nil
		case e.eof:
			return 0, io.EOF
		}
		e.cond.Wait()
	}
}

func (e *end) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.eof {
		return 0, io.ErrClosedPipe
	}
	e.out = append(e.out, p...)
	return len(p), nil
}

func (e *end) change(do func()) {
	e.mu.Lock()
	do()
	e.mu.Unlock()
	e.cond.Broadcast()
}

func (e *end) Close() error                     { e.change(func() { e.closed = true }); return nil }
func (e *end) LocalAddr() net.Addr              { return nil }
func (e *end) RemoteAddr() net.Addr             { return nil }
func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil }
func (e *end) SetReadDeadline(t time.Time) error {
	e.change(func() { e.deadline = !t.IsZero() && !t.After(time.Now()) })
	return nil
}

func (w *memory) Open(conn int) error {
	e := newEnd()
	w.ends[conn] = e
	go func() {
		w.server.ServeConn(w.ctx, e)
		close(e.done)
	}()
	synctest.Wait()
	return nil
}

func (w *memory) Send(conn int, b []byte) error {
	w.ends[conn].change(func() { w.ends[conn].in = append(w.ends[conn].in, b...) })
	return nil
}

func (w *memory) Close(conn int) {
	if e := w.ends[conn]; e != nil {
		e.change(func() { e.eof = true })
		w.ends[conn] = nil
		<-e.done
	}
}

func (w *memory) Receive(time.Duration) (int, []byte) {
	synctest.Wait()
	for conn, e := range w.ends {
		if e == nil {
			continue
		}
		e.mu.Lock()
		b, ended := e.out, e.closed && !e.told
		e.out, e.told = nil, e.told || ended && len(b) == 0
		e.mu.Unlock()
		if len(b) > 0 {
			return conn, b
		}
		if ended {
			return conn, nil
		}
	}
	return -1, nil
}

func (w *memory) Exact() bool { return true }

func (w *memory) Wait(d time.Duration) { <-time.After(d); synctest.Wait() }

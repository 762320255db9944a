package fuzz

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"jobwire/refserver"
)

// memory is a transport to a server in this process. In a synctest bubble, pauses and timeouts take no time, and a read
// that does not wait returns everything that the server has sent.
type memory struct {
	ctx    context.Context
	server *refserver.Server
}

func (m memory) dial(time.Duration) (link, error) {
	p := &pipe{arrived: make(chan struct{}, 1)}
	p.cond.L = &p.mu
	go m.server.ServeConn(m.ctx, p)
	synctest.Wait()
	return memoryLink{p}, nil
}

// pipe is a connection from the point of view of the server.
type pipe struct {
	mu      sync.Mutex
	cond    sync.Cond     // for the server
	arrived chan struct{} // receives a value when there are bytes that the client can read
	in, out []byte        // bytes to the server and from it
	end     error         // the end of what the client sends: io.EOF or a reset
	closed  bool          // the server has closed it
	late    bool          // the deadline of the server has passed
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, net.ErrClosed
		case p.late:
			return 0, os.ErrDeadlineExceeded
		case p.end == syscall.ECONNRESET:
			return 0, p.end
		case len(p.in) > 0:
			n := copy(b, p.in)
			p.in = p.in[n:]
			return n, nil
		case p.end != nil:
			return 0, p.end
		}
		p.cond.Wait()
	}
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.end == syscall.ECONNRESET {
		return 0, io.ErrClosedPipe
	}
	p.out = append(p.out, b...)
	p.signal()
	return len(b), nil
}

func (p *pipe) Close() error {
	p.change(func() { p.closed = true })
	p.signal()
	return nil
}

func (p *pipe) signal() {
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

func (p *pipe) change(do func()) {
	p.mu.Lock()
	do()
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *pipe) LocalAddr() net.Addr              { return nil }
func (p *pipe) RemoteAddr() net.Addr             { return nil }
func (p *pipe) SetDeadline(t time.Time) error    { return p.SetReadDeadline(t) }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
func (p *pipe) SetReadDeadline(t time.Time) error {
	p.change(func() { p.late = !t.IsZero() && !t.After(time.Now()) })
	return nil
}

// memoryLink is a connection from the point of view of the client.
type memoryLink struct{ p *pipe }

func (l memoryLink) write(b []byte) error {
	err := error(nil)
	l.p.change(func() {
		if l.p.closed {
			err = syscall.EPIPE
		}
		l.p.in = append(l.p.in, b...)
	})
	return err
}

func (l memoryLink) peek(b []byte) (int, error) {
	synctest.Wait()
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	switch {
	case len(l.p.out) > 0:
		n := copy(b, l.p.out)
		l.p.out = l.p.out[n:]
		return n, nil
	case l.p.closed:
		return 0, io.EOF
	}
	return 0, errTimeout
}

func (l memoryLink) read(b []byte, within time.Duration) (int, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		if n, err := l.peek(b); err != errTimeout {
			return n, err
		}
		select {
		case <-l.p.arrived:
		case <-late.C:
			return 0, errTimeout
		}
	}
}

func (l memoryLink) halfClose() { l.p.change(func() { l.p.end = io.EOF }) }

func (l memoryLink) close(reset bool) {
	l.p.change(func() {
		if l.p.end = io.EOF; reset {
			l.p.end = syscall.ECONNRESET
		}
	})
	synctest.Wait()
}

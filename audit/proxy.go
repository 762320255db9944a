package audit

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/internal/transport"
)

// Proxy forwards bytes unchanged, after an [Auditor] has read them.
type Proxy struct {
	Auditor *Auditor
	Dial    func(context.Context) (net.Conn, error) // connects to the server

	// Tap, if it is not nil, is called for all forwarded bytes, when a connection opens (b is empty), and when a side ends
	// its direction (b is nil). Calls are in the order of the events, one at a time.
	Tap func(conn int, from codec.Side, b []byte, what EventKind)

	mu      sync.Mutex
	conns   map[net.Conn]bool
	open    int           // number of accepted connections that have not ended
	changed chan struct{} // closed when open changes; nil if Drain does not wait
	over    bool
	tapMu   sync.Mutex
}

// EventKind is the kind of an event on a connection.
type EventKind uint8

// The kinds of events.
const (
	Opens EventKind = iota
	Bytes
	Closes // a side ends its direction
	Resets
)

// readSize is the maximum number of bytes per read.
const readSize = 32 << 10

// Serve forwards the connections to ln until ctx ends. It closes ln, and returns when all connections have ended.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	var pumps sync.WaitGroup
	stop := context.AfterFunc(ctx, func() {
		ln.Close()
		p.closeAll()
	})
	defer func() {
		stop()
		ln.Close()
		p.closeAll()
		pumps.Wait()
	}()
	for {
		near, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			var t interface{ Temporary() bool }
			if errors.As(err, &t) && t.Temporary() {
				select {
				case <-time.After(20 * time.Millisecond):
					continue
				case <-ctx.Done():
					return nil
				}
			}
			return err
		}
		p.count(1)
		pumps.Go(func() {
			defer p.count(-1)
			p.serve(ctx, near)
		})
	}
}

func (p *Proxy) serve(ctx context.Context, near net.Conn) {
	far, err := p.Dial(ctx)
	if err != nil || !p.admit(near, far) {
		transport.Reset(near)
		if far != nil {
			far.Close()
		}
		return
	}
	c := p.Auditor.open()
	p.tap(c, codec.Peer, nil, Opens)
	var back sync.WaitGroup
	back.Go(func() { p.pump(c, codec.Server, far, near) })
	p.pump(c, codec.Peer, near, far)
	back.Wait()
	near.Close()
	far.Close()
	p.mu.Lock()
	delete(p.conns, near)
	delete(p.conns, far)
	p.mu.Unlock()
}

// count adds n to the number of connections.
func (p *Proxy) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += n
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// acceptTime is how long a connection that a program has opened may take until it is accepted.
const acceptTime = 15 * time.Millisecond

// Drain waits until no connection is open, at most for limit: when a program has exited, its last messages may still
// be in transit.
func (p *Proxy) Drain(limit time.Duration) {
	late := time.After(limit)
	for {
		p.mu.Lock()
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		open, changed := p.open, p.changed
		p.mu.Unlock()
		var idle <-chan time.Time
		if open == 0 {
			idle = time.After(acceptTime)
		}
		select {
		case <-changed:
		case <-idle:
			return
		case <-late:
			return
		}
	}
}

// pump forwards the bytes of one side until this side ends its direction.
func (p *Proxy) pump(c *conn, from codec.Side, src, dst net.Conn) {
	buf := make([]byte, readSize)
	for {
		n, err := src.Read(buf)
		var failed error
		if n > 0 {
			p.Auditor.observe(c, from, buf[:n])
			p.tap(c, from, buf[:n], Bytes)
			if _, failed = dst.Write(buf[:n]); failed != nil && !errors.Is(failed, syscall.ECONNRESET) {
				// The other side has closed the connection, and its last messages may still be in transit.
				io.Copy(io.Discard, src)
				return
			} else if failed != nil {
				err = failed
			}
			p.Auditor.forwarded(c, from)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			p.Auditor.ends(c, from, false, true)
			p.tap(c, from, nil, Closes)
			transport.CloseWrite(dst)
		case errors.Is(err, syscall.ECONNRESET):
			p.Auditor.ends(c, from, true, failed == nil)
			p.tap(c, from, nil, Resets)
			transport.Reset(dst)
			transport.Reset(src)
		default: // the proxy ended the connection
			p.Auditor.ends(c, from, false, false)
		}
		return
	}
}

func (p *Proxy) tap(c *conn, from codec.Side, b []byte, what EventKind) {
	if p.Tap == nil {
		return
	}
	p.tapMu.Lock()
	defer p.tapMu.Unlock()
	p.Tap(c.id, from, b, what)
}

func (p *Proxy) admit(near, far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	if p.conns == nil {
		p.conns = map[net.Conn]bool{}
	}
	p.conns[near], p.conns[far] = true, true
	return true
}

// closeAll closes all connections and rejects new ones.
func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for c := range p.conns {
		c.Close()
	}
}

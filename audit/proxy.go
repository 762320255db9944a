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
)

// Proxy passes on what comes, unchanged, and has an [Auditor] hear it first.
type Proxy struct {
	Auditor *Auditor
	Dial    func(context.Context) (net.Conn, error) // connects to the server

	// Tap, if it is not nil, is told of all bytes that pass, and of connections that open (no bytes)
	// and end (nil bytes, from the side that ended it). Calls are in the order of what happened, one at
	// a time.
	Tap func(conn int, from codec.Side, b []byte, what Passing)

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  bool
	tapMu sync.Mutex
}

// Passing is what passes.
type Passing uint8

// What may pass on a connection.
const (
	Opens Passing = iota
	Says
	Closes // its direction
	Resets
)

// readSize is how much is read at once, in bytes.
const readSize = 32 << 10

// Serve serves what connects to ln until ctx ends. It closes ln, and returns when all
// connections have ended.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	p.conns = map[net.Conn]bool{}
	var pumps sync.WaitGroup
	stop := context.AfterFunc(ctx, func() {
		ln.Close()
		p.hangUp()
	})
	defer func() {
		stop()
		ln.Close()
		p.hangUp()
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
		pumps.Go(func() { p.serve(ctx, near) })
	}
}

func (p *Proxy) serve(ctx context.Context, near net.Conn) {
	far, err := p.Dial(ctx)
	if err != nil || !p.admit(near, far) {
		reset(near)
		if far != nil {
			far.Close()
		}
		return
	}
	l := p.Auditor.open()
	p.tap(l, codec.Peer, nil, Opens)
	var back sync.WaitGroup
	back.Go(func() { p.pump(l, codec.Server, far, near) })
	p.pump(l, codec.Peer, near, far)
	back.Wait()
	near.Close()
	far.Close()
	p.mu.Lock()
	delete(p.conns, near)
	delete(p.conns, far)
	p.mu.Unlock()
}

// pump passes on what one side says until it ends its direction.
func (p *Proxy) pump(l *line, from codec.Side, src, dst net.Conn) {
	buf := make([]byte, readSize)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			p.Auditor.hear(l, from, buf[:n])
			p.tap(l, from, buf[:n], Says)
			if _, failed := dst.Write(buf[:n]); failed != nil && !errors.Is(failed, syscall.ECONNRESET) {
				// The other end has closed, and its last words are on their way.
				io.Copy(io.Discard, src)
				return
			} else if failed != nil {
				err = failed
			}
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			p.Auditor.ends(l, from, false)
			p.tap(l, from, nil, Closes)
			if hc, ok := dst.(interface{ CloseWrite() error }); ok {
				hc.CloseWrite()
			} else {
				dst.Close()
			}
		case errors.Is(err, syscall.ECONNRESET):
			p.Auditor.ends(l, from, true)
			p.tap(l, from, nil, Resets)
			reset(dst)
			reset(src)
		default: // it was ended here
			p.Auditor.ends(l, from, false)
		}
		return
	}
}

func (p *Proxy) tap(l *line, from codec.Side, b []byte, what Passing) {
	if p.Tap == nil {
		return
	}
	p.tapMu.Lock()
	defer p.tapMu.Unlock()
	p.Tap(l.id, from, b, what)
}

// reset breaks a connection off.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

func (p *Proxy) admit(near, far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.conns[near], p.conns[far] = true, true
	}
	return !p.over
}

// hangUp ends all connections, for good.
func (p *Proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for c := range p.conns {
		c.Close()
	}
}

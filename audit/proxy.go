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
	"jobwire/codec/transcript"
	"jobwire/internal/transport"
)

// Proxy forwards bytes unchanged, after an [Auditor] has read them.
type Proxy struct {
	Auditor *Auditor
	Dial    func(context.Context) (net.Conn, error) // connects to the server

	// Tap, if it is not nil, is called for all forwarded bytes (Raw), when a connection opens (Opens), and when a side
	// ends its direction (HalfCloses, or Resets). Calls are in the order of the events, one at a time.
	Tap func(conn int, from codec.Side, b []byte, what transcript.Verb)

	forward func(c *conn, near, far net.Conn) // forwards what both ends send; nil: unchanged
	relay   transport.Relay
	tapMu   sync.Mutex
}

// readSize is the maximum number of bytes per read.
const readSize = 32 << 10

// Serve forwards the connections to ln until ctx ends. It closes ln, and returns when all connections have ended.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	defer context.AfterFunc(ctx, p.Auditor.stop)()
	dial := func(dialed context.Context) (net.Conn, error) {
		c, err := p.Dial(dialed)
		if err != nil {
			p.Auditor.unreachable(err, dialed.Err() == nil)
		}
		return c, err
	}
	return p.relay.Serve(ctx, ln, dial, func(near, far net.Conn) {
		c := p.Auditor.open()
		p.tap(c, codec.Peer, nil, transcript.Opens)
		if p.forward != nil {
			p.forward(c, near, far)
			return
		}
		var back sync.WaitGroup
		back.Go(func() { p.pump(c, codec.Server, far, near) })
		p.pump(c, codec.Peer, near, far)
		back.Wait()
	})
}

// Drain waits until no connection is open, at most for limit: when a program has exited, its last messages may still
// be in transit.
func (p *Proxy) Drain(limit time.Duration) { p.relay.Drain(limit) }

// pump forwards the bytes of one side until this side ends its direction.
func (p *Proxy) pump(c *conn, from codec.Side, src, dst net.Conn) {
	buf := make([]byte, readSize)
	for {
		n, err := src.Read(buf)
		var failed error
		if n > 0 {
			p.observe(c, from, buf[:n])
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
			p.ends(c, from, transcript.HalfCloses, true)
			transport.CloseWrite(dst)
		case errors.Is(err, syscall.ECONNRESET):
			p.ends(c, from, transcript.Resets, failed == nil)
			transport.Reset(dst)
			transport.Reset(src)
		default: // the proxy ended the connection
			p.Auditor.ends(c, from, false, false)
		}
		return
	}
}

// observe checks bytes of one side before they are forwarded.
func (p *Proxy) observe(c *conn, from codec.Side, b []byte) {
	p.Auditor.observe(c, from, b)
	p.tap(c, from, b, transcript.Raw)
}

// ends checks the end of one direction. itself is true if the side ended the connection, and false if the proxy did.
func (p *Proxy) ends(c *conn, from codec.Side, how transcript.Verb, itself bool) {
	p.Auditor.ends(c, from, how == transcript.Resets, itself)
	p.tap(c, from, nil, how)
}

// tap passes an event of a connection to Tap, one event at a time.
func (p *Proxy) tap(c *conn, from codec.Side, b []byte, what transcript.Verb) {
	if p.Tap == nil {
		return
	}
	p.tapMu.Lock()
	defer p.tapMu.Unlock()
	p.Tap(c.id, from, b, what)
}

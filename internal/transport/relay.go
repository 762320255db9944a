package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Relay connects each connection to a listener with a connection of its own to a server.
type Relay struct {
	mu      sync.Mutex
	open    int           // number of accepted connections that have not ended
	changed chan struct{} // closed when open changes; nil if Drain does not wait
}

// drainTimeout is how long a relay may take, after its end, to forward the bytes that it has received.
const drainTimeout = time.Second

// Serve relays the connections to ln until ctx ends. forward forwards the bytes of both ends until both have ended.
// dial connects to the server; if it fails, Serve resets the connection. After ctx has ended, reads fail, but the bytes
// that were received can still be forwarded. Serve closes ln, and returns when all connections have ended. If ln fails,
// Serve ends all connections and returns the error.
func (r *Relay) Serve(ctx context.Context, ln net.Listener, dial func(context.Context) (net.Conn, error),
	forward func(near, far net.Conn)) error {
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		near, err := ln.Accept()
		var t interface{ Temporary() bool }
		switch {
		case err == nil:
			r.count(1)
			conns.Go(func() {
				defer r.count(-1)
				connect(ctx, near, dial, forward)
			})
		case ctx.Err() != nil:
			return nil
		case !errors.As(err, &t) || !t.Temporary():
			return err
		default:
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

func connect(ctx context.Context, near net.Conn, dial func(context.Context) (net.Conn, error),
	forward func(near, far net.Conn)) {
	defer near.Close()
	far, err := dial(ctx)
	if err != nil {
		Reset(near)
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() {
		for _, c := range []net.Conn{near, far} {
			c.SetReadDeadline(time.Unix(1, 0))
			c.SetWriteDeadline(time.Now().Add(drainTimeout))
		}
	})()
	forward(near, far)
}

// Forward passes the bytes that src sends to write, until src ends its direction, and then ends this direction of dst.
// If write fails, Forward closes src.
func Forward(dst, src net.Conn, write func([]byte) error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		switch {
		case n > 0 && write(buf[:n]) != nil:
			src.Close()
			return
		case err != nil:
			CloseWrite(dst)
			return
		}
	}
}

// count adds n to the number of connections.
func (r *Relay) count(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open += n
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// acceptTime is how long a connection that a program has opened may take until it is accepted.
const acceptTime = 15 * time.Millisecond

// Drain waits until no connection is open, at most for limit: when a program has exited, its last messages may still
// be in transit.
func (r *Relay) Drain(limit time.Duration) {
	late := time.After(limit)
	for {
		r.mu.Lock()
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		open, changed := r.open, r.changed
		r.mu.Unlock()
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

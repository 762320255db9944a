package gearmonkey

import (
	"context"
	"fmt"
	"net"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/internal/transport"
)

// firstBuffer is the initial size in bytes of a receive buffer, which grows as needed.
const firstBuffer = 4 << 10

// Conn is one connection to a Redis server. Flush and Read send all appended commands in one write; replies arrive in the
// order of the commands. It is not safe for concurrent use, except for Abort.
//
// After an error, except from a rejected command, the connection cannot be used any more, because it is unknown what the
// server has received and which replies will still arrive. Every later call returns the same error.
type Conn struct {
	nc      net.Conn
	session codec.Session
	stream  codec.Stream
	err     error

	out     []byte
	request codec.Message

	in      []byte
	at, end int // in[at:end] was received and is not read yet
	frame   codec.Frame
	reply   codec.Message

	watch watch
}

// watch aborts reads and writes when a context ends. It is kept between calls, so that calls with the same context cost
// nothing.
type watch struct {
	done  <-chan struct{}
	stop  func() bool
	fired chan struct{} // closed after the deadline of the connection was set to abort it
}

// Dial connects to the server at addr, which is host:port or unix:path.
func Dial(ctx context.Context, addr string, o codec.Options) (*Conn, error) {
	var d transport.Dialer
	nc, err := d.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return NewConn(nc, o), nil
}

// NewConn returns a connection that uses nc and closes it.
func NewConn(nc net.Conn, o codec.Options) *Conn {
	session := protocol.Protocol.NewSession(o)
	return &Conn{nc: nc, session: session, stream: codec.Stream{Session: session, From: codec.Server}, in: make([]byte, firstBuffer)}
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.unwatch()
	return c.nc.Close()
}

// Abort closes the socket, which ends all waits. It may be called at any time, from any goroutine. Close must still be
// called.
func (c *Conn) Abort() { c.nc.Close() }

// Err returns the error after which the connection cannot be used any more, or nil.
func (c *Conn) Err() error { return c.err }

// Append adds a command that the next Flush or Read sends. If the codec rejects the command, it is not sent, the connection
// can still be used, and the error matches [ErrUsage]. The caller may reuse the arguments immediately.
func (c *Conn) Append(msgType *codec.Type, args ...[]byte) error {
	if c.err != nil {
		return c.err
	}
	c.request.Type, c.request.Args = msgType, append(c.request.Args[:0], args...)
	out, err := c.session.Append(c.out, codec.Peer, &c.request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	c.out = out
	return nil
}

// Flush sends the appended commands.
func (c *Conn) Flush(ctx context.Context) error {
	if c.err != nil || len(c.out) == 0 {
		return c.err
	}
	c.abortOnDone(ctx)
	if _, err := c.nc.Write(c.out); err != nil {
		return c.fail(ctx, fmt.Errorf("sending: %w", err))
	}
	c.out = c.out[:0]
	return nil
}

// Read sends the appended commands and returns the next reply, which is valid until the next Read. A Redis error is a
// reply, too.
func (c *Conn) Read(ctx context.Context) (*codec.Message, error) {
	if err := c.Flush(ctx); err != nil {
		return nil, err
	}
	c.abortOnDone(ctx)
	for {
		switch n, found, err := c.stream.Read(c.in[c.at:c.end], &c.frame); found {
		case codec.Whole:
			c.at += n
			c.frame.Message(&c.reply)
			return &c.reply, nil
		case codec.Illegal:
			return nil, c.fail(ctx, fmt.Errorf("reading: %w", err))
		}
		if err := c.fill(); err != nil {
			return nil, c.fail(ctx, fmt.Errorf("reading: %w", err))
		}
	}
}

// Do sends a command, after the appended ones, and returns its reply as Read does. There must be no pending replies.
func (c *Conn) Do(ctx context.Context, msgType *codec.Type, args ...[]byte) (*codec.Message, error) {
	if err := c.Append(msgType, args...); err != nil {
		return nil, err
	}
	return c.Read(ctx)
}

// fill reads once. The buffer grows only when it is full, not by the length that a message announces.
func (c *Conn) fill() error {
	switch {
	case c.at == c.end:
		c.at, c.end = 0, 0
	case c.end < len(c.in):
	case c.at > 0:
		c.end = copy(c.in, c.in[c.at:c.end])
		c.at = 0
	default:
		c.in = append(c.in, make([]byte, len(c.in))...)
	}
	n, err := c.nc.Read(c.in[c.end:])
	c.end += n
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// abortOnDone makes the end of ctx abort reads and writes.
func (c *Conn) abortOnDone(ctx context.Context) {
	done := ctx.Done()
	if done == c.watch.done {
		return
	}
	c.unwatch()
	if done == nil {
		return
	}
	fired := make(chan struct{})
	c.watch = watch{done: done, fired: fired, stop: context.AfterFunc(ctx, func() {
		c.nc.SetDeadline(time.Unix(1, 0))
		close(fired)
	})}
}

// unwatch stops watching the context of the last call. If that context has ended since the call, unwatch resets the
// deadline, so that the connection can still be used.
func (c *Conn) unwatch() {
	if c.watch.stop != nil && !c.watch.stop() {
		<-c.watch.fired
		c.nc.SetDeadline(time.Time{})
	}
	c.watch = watch{}
}

// fail records the error that makes the connection unusable. If ctx has ended, it is reported as the cause.
func (c *Conn) fail(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	c.unwatch()
	c.err = err
	return err
}

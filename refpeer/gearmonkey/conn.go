package gearmonkey

import (
	"context"
	"fmt"
	"net"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

// firstBuffer is the size in bytes at which a connection's buffers begin; they
// grow with what they have to hold.
const firstBuffer = 4 << 10

// Conn is one connection to a Redis server. What is appended is sent in one piece
// by Flush, or by the next Read; replies come in the order of the commands. It is not
// safe for concurrent use, except for Abort.
//
// Any error but a refused command ends a connection's use: what was under way
// can no longer be told. Every later call returns the same error.
type Conn struct {
	nc      net.Conn
	session codec.Session
	stream  codec.Stream
	err     error

	out     []byte
	request codec.Message

	in      []byte
	at, end int // what of it has arrived and is not read
	frame   codec.Frame
	reply   codec.Message

	watch watch
}

// watch is the context under which a connection waits. It is kept from call to
// call, so that calls under the same one cost nothing.
type watch struct {
	done  <-chan struct{}
	stop  func() bool
	fired chan struct{} // closed once the connection was broken off
}

// Dial connects to the server at addr, which is host:port.
func Dial(ctx context.Context, addr string, o codec.Options) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewConn(nc, o), nil
}

// NewConn speaks over nc, which it owns from then on.
func NewConn(nc net.Conn, o codec.Options) *Conn {
	session := protocol.Protocol.NewSession(o)
	return &Conn{nc: nc, session: session, stream: codec.Stream{Session: session, From: codec.Server}, in: make([]byte, firstBuffer)}
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.unwatch()
	return c.nc.Close()
}

// Abort breaks the connection off, with whatever waits. It may be called at any
// time, from any goroutine; Close is still due.
func (c *Conn) Abort() { c.nc.Close() }

// Err is why the connection is of no use any more, or nil.
func (c *Conn) Err() error { return c.err }

// Append puts a command behind those that are to be sent. A command that the
// codec refuses is not sent, and leaves the connection as it was: the error is
// [ErrUsage], too. The arguments may be reused at once.
func (c *Conn) Append(row *codec.Type, args ...[]byte) error {
	if c.err != nil {
		return c.err
	}
	c.request.Type, c.request.Args = row, append(c.request.Args[:0], args...)
	out, err := c.session.Append(c.out, codec.Peer, &c.request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	c.out = out
	return nil
}

// Flush sends what was appended.
func (c *Conn) Flush(ctx context.Context) error {
	if c.err != nil || len(c.out) == 0 {
		return c.err
	}
	c.under(ctx)
	if _, err := c.nc.Write(c.out); err != nil {
		return c.fail(ctx, fmt.Errorf("sending: %w", err))
	}
	c.out = c.out[:0]
	return nil
}

// Read sends what was appended and returns the next reply, which is valid until
// the next Read. An error that the server answers is a reply, too.
func (c *Conn) Read(ctx context.Context) (*codec.Message, error) {
	if err := c.Flush(ctx); err != nil {
		return nil, err
	}
	c.under(ctx)
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

// Do sends a command, after those that were appended, and returns its reply, as
// Read does. Nothing may be waiting for a reply.
func (c *Conn) Do(ctx context.Context, row *codec.Type, args ...[]byte) (*codec.Message, error) {
	if err := c.Append(row, args...); err != nil {
		return nil, err
	}
	return c.Read(ctx)
}

// fill reads what has arrived. The buffer grows only once it is full, whatever
// a message announces.
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
		return nil // the error comes again
	}
	return err
}

// under lets the end of ctx break off what waits.
func (c *Conn) under(ctx context.Context) {
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

// unwatch forgets the context of the last call. If that has ended since, the
// connection is as good as before.
func (c *Conn) unwatch() {
	if c.watch.stop != nil && !c.watch.stop() {
		<-c.watch.fired
		c.nc.SetDeadline(time.Time{})
	}
	c.watch = watch{}
}

// fail ends the use of the connection. An end of ctx is the reason for what it
// broke off.
func (c *Conn) fail(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	c.unwatch()
	c.err = err
	return err
}

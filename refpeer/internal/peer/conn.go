package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/internal/transport"
)

// maxReply limits the data of one message: a job has at most an input and a result of 16 MiB each.
const maxReply = 40 << 20

// Errors that distinguish the causes of failures.
var (
	ErrUsage    = errors.New("usage error")
	ErrTimedOut = errors.New("timed out")
	ErrProtocol = errors.New("invalid message from the server")
)

// readSize is the minimum size of a read in bytes. maxIdle is the size of an empty buffer that is kept. leaveTime is
// how long close waits until the server has read everything. Quirks.Pieces applies to the first pieces writes of a
// flush; pieceTime is the pause between them.
const (
	readSize  = 4 << 10
	maxIdle   = 64 << 10
	leaveTime = time.Second
	pieces    = 16
	pieceTime = 500 * time.Microsecond
)

// Conn is one connection of a client or a worker. flush and next send the appended messages. It is not safe for
// concurrent use, except for Abort.
type Conn struct {
	In     []byte          // received bytes that Decode has not returned
	Jobs   map[string]bool // IDs of the jobs whose later tasks need this connection
	Broken bool            // the connection must not be used again
	Own    any             // what the package of the protocol records

	program   *Program
	nc        net.Conn
	aborted   chan struct{}
	once      sync.Once
	stream    codec.Stream
	sent      codec.Stream  // in the session of stream, which needs the sent requests to decode replies
	nonStrict codec.Session // encodes messages, also deliberately invalid ones
	out       []byte
	message   codec.Message
	frame     codec.Frame

	waiting codec.Conversation[request] // requests of a client without a reply
	open    []*Call                     // the jobs of a client that have not ended
	round                               // of a worker
}

// dial connects to the server at addr, which is host:port or unix:path.
func dial(ctx context.Context, addr string, p *Program) (*Conn, error) {
	var d transport.Dialer
	nc, err := d.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	streams := codec.Streams(p.Protocol.NewSession(codec.Options{MaxData: maxReply}))
	return &Conn{Jobs: map[string]bool{}, program: p, nc: nc, aborted: make(chan struct{}), stream: streams[codec.Server],
		sent: streams[codec.Peer], nonStrict: p.Protocol.NewSession(codec.Options{WaiveAll: true})}, nil
}

// abort ends all waits and closes the socket.
func (c *Conn) abort() {
	c.once.Do(func() { close(c.aborted) })
	c.nc.Close()
}

// close closes the connection after the server has read the sent bytes.
func (c *Conn) close() {
	// If a socket is closed that has unread bytes, the kernel discards sent bytes that the server has not read.
	if transport.CloseWrite(c.nc) == nil {
		c.nc.SetReadDeadline(time.Now().Add(leaveTime))
		io.Copy(io.Discard, c.nc)
	}
	c.nc.Close()
}

// append encodes a message that flush sends after the earlier ones.
func (c *Conn) append(m *codec.Message) error {
	b, err := c.nonStrict.Append(c.out, codec.Peer, m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	c.out = b
	return nil
}

// flush sends the appended messages.
func (c *Conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	var f codec.Frame
	for range c.sent.Feed(c.out, &f) {
	}
	defer func() {
		if c.out = c.out[:0]; cap(c.out) > maxIdle {
			c.out = nil
		}
	}()
	rest := c.out
	for i := 0; i < pieces && c.program.Pieces > 0 && len(rest) > c.program.Pieces; i++ {
		if _, err := c.nc.Write(rest[:c.program.Pieces]); err != nil {
			return err
		}
		rest = rest[c.program.Pieces:]
		c.Pause(pieceTime)
	}
	_, err := c.nc.Write(rest)
	return err
}

// Fill reads once and adds the bytes to In.
func (c *Conn) Fill() error {
	if cap(c.In)-len(c.In) < readSize {
		more := max(readSize, len(c.In))
		if missing := c.stream.Need() - len(c.In); missing >= readSize { // not much more space than for the message
			more = min(more, missing+maxIdle)
		}
		c.In = slices.Grow(c.In, more)
	}
	n, err := c.nc.Read(c.In[len(c.In):cap(c.In)])
	c.In = c.In[:len(c.In)+n]
	switch {
	case n > 0:
		return nil // the next read returns the error again
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimedOut
	}
	return err
}

// Decode removes the first message from In and returns it, or nil if In has no complete message. The message is valid
// until the next Fill.
func (c *Conn) Decode() (*codec.Message, error) {
	c.stream.Resume() // In may have been replaced
	n, found, err := c.stream.Read(c.In, &c.frame)
	switch {
	case found == codec.Nothing:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if c.In = c.In[n:]; len(c.In) == 0 && n > maxIdle {
		c.In = nil // a large buffer is not kept for small messages
	}
	c.frame.Message(&c.message)
	return &c.message, nil
}

// idle drops the last message, which may be large.
func (c *Conn) idle() {
	c.frame.Reset(codec.Server)
	clear(c.message.Args)
}

// next sends the appended messages and returns the next message of the server.
func (c *Conn) next() (*codec.Message, error) {
	if err := c.flush(); err != nil {
		return nil, c.afterEOF(err)
	}
	read := c.program.Read
	if read == nil {
		read = Read
	}
	m, err := read(c)
	if err == nil && c.program.Edit != nil {
		err = c.program.Edit(m)
	}
	return m, c.afterEOF(err)
}

// Read reads a message, in any segmentation.
func Read(c *Conn) (*codec.Message, error) {
	for {
		if m, err := c.Decode(); m != nil || err != nil {
			return m, err
		}
		if err := c.Fill(); err != nil {
			return nil, err
		}
	}
}

// IsDisconnect reports whether an error means that the server has closed the connection.
func IsDisconnect(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// afterEOF returns an error, in a program that ignores the end of a connection only when the connection is aborted.
func (c *Conn) afterEOF(err error) error {
	if c.program.IgnoresEOF && IsDisconnect(err) {
		<-c.aborted
	}
	return err
}

// Pause waits, unless the connection is aborted meanwhile.
func (c *Conn) Pause(d time.Duration) {
	select {
	case <-c.aborted:
	case <-time.After(d):
	}
}

// SetLimit limits the time in which the next messages must be received, from now on; 0: the limit of the program, if
// any.
func (c *Conn) SetLimit(d time.Duration) {
	if d == 0 {
		d = c.program.Timeout
	}
	if d == 0 {
		c.nc.SetReadDeadline(time.Time{})
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(d))
}

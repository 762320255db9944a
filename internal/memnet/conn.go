package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is the number of bytes that one side may send before the other side reads them.
const bufferSize = 256 << 10

// Conn is one end of a connection. Its methods may be called from several goroutines.
type Conn struct {
	local, remote Addr
	link          *link
	in, out       *stream // from the other end, and to it
	readBy        deadline
	writeBy       deadline
	closed        bool // this end was closed
}

// link is what both ends share. Its lock guards both ends.
type link struct {
	mu      sync.Mutex
	changed sync.Cond
}

// stream is one direction of a connection.
type stream struct {
	bytes    []byte // sent, but not yet read; a part of the space of buffer
	buffer   []byte // length 0: the memory that bytes uses, from its beginning
	pieces   []int  // the lengths of the writes that bytes consists of
	capacity int    // maximum length of bytes
	ended    bool   // the sender has ended the direction
	reset    bool   // the connection was reset by the sender
	refused  bool   // the receiver is closed; a write fails, except the first one
	warned   bool   // the sender wrote after the receiver was closed
}

// Pipe returns the two ends of a new connection.
func Pipe() (near, far *Conn) {
	l := new(link)
	l.changed.L = &l.mu
	a, b := &stream{capacity: bufferSize}, &stream{capacity: bufferSize}
	near = &Conn{local: "near", remote: "far", link: l, in: a, out: b}
	far = &Conn{local: "far", remote: "near", link: l, in: b, out: a}
	return near, far
}

// Read reads bytes of one write of the other end. It returns the bytes that arrived before the other end reset the
// connection, and then an error that matches syscall.ECONNRESET.
func (c *Conn) Read(b []byte) (int, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		switch s := c.in; {
		case c.closed:
			return 0, c.error("read", net.ErrClosed)
		case c.readBy.passed():
			return 0, c.error("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case len(s.bytes) > 0:
			n := copy(b, s.bytes[:s.pieces[0]])
			s.take(n)
			c.link.changed.Broadcast()
			return n, nil
		case s.reset:
			return 0, c.error("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case s.ended:
			return 0, io.EOF
		}
		c.readBy.wait(&c.link.changed)
	}
}

// Write sends b. It waits while the buffer of the other end is full, and then divides b where the buffer ends. The
// first write after the other end was closed succeeds, as over TCP; further ones fail with an error that matches
// syscall.EPIPE. After a reset by the other end, the error matches syscall.ECONNRESET.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		switch s := c.out; {
		case c.closed:
			return n, c.error("write", net.ErrClosed)
		case c.writeBy.passed():
			return n, c.error("write", os.ErrDeadlineExceeded)
		case c.in.reset:
			return n, c.error("write", os.NewSyscallError("write", syscall.ECONNRESET))
		case s.ended, s.refused && s.warned:
			return n, c.error("write", os.NewSyscallError("write", syscall.EPIPE))
		case s.refused:
			s.warned = len(b) > 0
			return n + len(b), nil
		case len(b) == 0:
			return n, nil
		case len(s.bytes) < s.capacity:
			k := min(len(b), s.capacity-len(s.bytes))
			s.add(b[:k])
			c.link.changed.Broadcast()
			if n, b = n+k, b[k:]; len(b) == 0 {
				return n, nil
			}
		}
		c.writeBy.wait(&c.link.changed)
	}
}

// CloseWrite ends the direction to the other end, which can read the bytes that were sent before.
func (c *Conn) CloseWrite() error {
	return c.change("close", func() { c.out.ended = true })
}

// Close closes this end. If bytes from the other end were not read, the other end sees a reset, as over TCP.
func (c *Conn) Close() error {
	return c.change("close", func() { c.end(len(c.in.bytes) > 0) })
}

// Reset closes this end, and the other end sees a reset. Bytes that this end has not read are discarded; the other end
// can still read the bytes that were sent before.
func (c *Conn) Reset() error {
	return c.change("close", func() { c.end(true) })
}

// end closes this end. As over TCP, an end that has already seen the end of the stream does not see a reset when it
// reads.
func (c *Conn) end(reset bool) {
	c.closed = true
	c.in.refuse()
	c.in.warned = reset
	c.out.reset = reset && !c.out.ended
	c.out.ended = true
}

// SetReadBuffer sets the number of bytes that the other end may send before this end reads them.
func (c *Conn) SetReadBuffer(bytes int) error {
	return c.change("set", func() { c.in.capacity = max(1, bytes) })
}

// SetDeadline, SetReadDeadline and SetWriteDeadline set the times after which operations fail with an error that
// matches os.ErrDeadlineExceeded. The zero time means never.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.change("set", func() { c.readBy, c.writeBy = deadline(t), deadline(t) })
}

func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.change("set", func() { c.readBy = deadline(t) })
}

func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.change("set", func() { c.writeBy = deadline(t) })
}

func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// change changes the connection and wakes everything that waits for it. It returns an error if this end is closed.
func (c *Conn) change(op string, do func()) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.error(op, net.ErrClosed)
	}
	do()
	c.link.changed.Broadcast()
	return nil
}

func (c *Conn) error(op string, err error) error {
	return &net.OpError{Op: op, Net: "memory", Source: c.local, Addr: c.remote, Err: err}
}

// add appends one write to the bytes that wait for the reader, and records its length as a piece.
func (s *stream) add(b []byte) {
	if need := len(s.bytes) + len(b); need > cap(s.bytes) {
		if need > cap(s.buffer) {
			s.buffer = make([]byte, 0, 2*need)
		}
		s.bytes = append(s.buffer, s.bytes...)
	}
	s.bytes = append(s.bytes, b...)
	s.pieces = append(s.pieces, len(b))
}

// take removes the first n unread bytes. They are at most the rest of the oldest write.
func (s *stream) take(n int) {
	if s.pieces[0] -= n; s.pieces[0] == 0 {
		s.pieces = s.pieces[1:]
	}
	s.bytes = s.bytes[n:]
	if len(s.bytes) == 0 { // use the memory from its beginning again
		s.bytes, s.pieces = s.buffer, s.pieces[:0]
	}
}

// refuse discards what was sent and makes further writes fail.
func (s *stream) refuse() { s.bytes, s.buffer, s.pieces, s.refused = nil, nil, nil, true }

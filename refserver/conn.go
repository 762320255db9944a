package refserver

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/internal/sock"
)

// The read buffer of a connection starts at minBuffer bytes, grows up to maxBuffer while much data arrives, and exceeds
// maxBuffer only for a single message that is longer.
const (
	minBuffer = 512
	maxBuffer = 64 << 10
)

// batchLimit is the maximum amount of work that a connection causes before it unlocks the server for other connections.
// Each message, received or sent, is one unit of work, and so are workBytes bytes of output: a long reply takes longer
// to write.
const (
	batchLimit = 4096
	workBytes  = 8
)

// Conn is one connection of a server. Only the machine may call its exported methods, in calls that the server makes to
// it under its lock.
type Conn struct {
	Data any // for use by the machine

	srv     *Server
	nc      net.Conn
	socket  *sock.Socket // nil if nc has no file descriptor
	id      uint64
	session codec.Session
	forward codec.Forwarder // session, or nil if it is not a Forwarder
	stream  codec.Stream
	cond    sync.Cond // signaled when output was written or the state of the connection changed

	input
	phase
	output
	watch
}

// input is what a connection has read. Only the connection's goroutine uses it, without the server's lock.
type input struct {
	buf        []byte
	start, top int // the unread part is buf[start:top]
	need       int // number of unread bytes that the next decoding attempt requires
	smallReads int // reads in a row that used less than a quarter of buf
	flushing   []*Conn
}

// phase is what happens with a connection. The server's lock guards it.
type phase struct {
	closing   bool // the server reads no more, writes the pending output, then closes
	lingering bool // the peer may still be sending: read and discard its data before closing
	gone      bool // the connection has ended and Machine.Close was or is about to be called
	broken    bool // writing failed or is pointless; nothing more is written
	paused    bool // the machine accepts no messages until Resume
	backlog   bool // messages have arrived that the machine does not accept yet
	crlf      bool // the last text line ended with CR LF, and its reply must, too
}

// newConn returns the state of a connection. It does not start to read; run does.
func newConn(s *Server, nc net.Conn) *Conn {
	if s.opts.Wrap != nil {
		nc = s.opts.Wrap(nc)
	}
	session := s.opts.Protocol.NewSession(s.opts.Codec)
	forward, _ := session.(codec.Forwarder)
	c := &Conn{srv: s, nc: nc, session: session, forward: forward,
		stream: codec.Stream{Session: session, From: codec.Peer}, input: input{need: 1, buf: make([]byte, minBuffer)}}
	c.cond.L = &s.mu
	c.socket = sock.New(nc)
	c.watch.init(s)
	return c
}

// ID returns the number of the connection; a server numbers its connections from 1.
func (c *Conn) ID() uint64 { return c.id }

// FD returns the file descriptor of the connection, or its ID if it has none.
func (c *Conn) FD() uint64 {
	if c.socket == nil {
		return c.id
	}
	return c.socket.FD()
}

// Session returns the session with which the connection decodes and encodes its messages.
func (c *Conn) Session() codec.Session { return c.session }

// receive reads available data into the buffer, and blocks while there is none.
func (c *Conn) receive() (int, error) {
	if c.socket == nil {
		return c.nc.Read(c.buf[c.top:])
	}
	return c.socket.Read(c.buf[c.top:])
}

// RemoteIP returns the address of the peer without its port. It returns the whole address if it has no port, such as
// that of a Unix socket, and "-" if there is none.
func (c *Conn) RemoteIP() string {
	a := c.nc.RemoteAddr()
	if a == nil {
		return "-"
	}
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.String()
}

// MaxData returns the limit on the data of one message to or from this connection, in bytes.
func (c *Conn) MaxData() int { return c.srv.opts.Codec.MaxData }

// Close ends the connection after the pending output has been written. It does not block.
func (c *Conn) Close() {
	if !c.closing {
		c.lingering = true
		c.endNow()
	}
}

// Shutdown stops the whole server. If graceful is false, it ends all connections. If it is true, the server accepts no
// more connections and stops when the last one has ended.
func (c *Conn) Shutdown(graceful bool) {
	if graceful {
		c.srv.drain()
	} else {
		c.srv.halt()
	}
}

// Pause stops the delivery of further messages to the machine until Resume. A protocol that answers requests strictly
// in order calls it while a request cannot be answered yet. The server still detects that the peer disconnects, unless
// the peer has sent 64 KiB or more in the meantime. If the server calls HalfClosed for such a connection, the machine
// must call Resume.
func (c *Conn) Pause() { c.paused = true }

// Resume undoes Pause. The connection's own goroutine delivers the messages that have arrived in the meantime, after
// Resume returns.
func (c *Conn) Resume() {
	c.paused = false
	if c.backlog {
		c.backlog = false
		c.nc.SetReadDeadline(past)
		c.cond.Broadcast()
	}
}

// past is a read deadline that interrupts a blocked Read.
var past = time.Unix(1, 0)

// endNow ends the connection. Unlike Close, it does not wait until the peer stops sending. After Close, it does nothing.
func (c *Conn) endNow() {
	if c.closing {
		return
	}
	c.closing = true
	c.nc.SetReadDeadline(past)
	c.cond.Broadcast()
}

// fail closes the connection at once and discards its pending output.
func (c *Conn) fail() {
	c.broken = true
	c.out = nil
	c.nc.Close()
	c.cond.Broadcast()
}

// run serves the connection until it has ended.
func (c *Conn) run() {
	c.read()
	c.finish()
}

// read reads and handles messages until the connection ends. After the peer has closed its direction, linger keeps the
// connection open while replies are pending.
func (c *Conn) read() {
	for {
		n, err := c.receive()
		c.top += n
		if errors.Is(err, os.ErrDeadlineExceeded) && c.wasResumed() {
			err = nil // handle the messages that arrived while the machine was paused
		}
		if unread := c.top - c.start; unread >= c.need && !c.handleBatch() {
			return
		}
		if err == io.EOF {
			c.linger()
		}
		if err != nil {
			return
		}
		c.makeRoom(n)
	}
}

// wasResumed reports whether Resume interrupted the read, not the end of the connection. It then clears the read
// deadline.
func (c *Conn) wasResumed() bool {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if c.closing || c.broken {
		return false
	}
	c.nc.SetReadDeadline(time.Time{})
	return true
}

// handleBatch handles the complete messages in the buffer. It reports whether the connection stays open.
func (c *Conn) handleBatch() bool {
	s := c.srv
	s.mu.Lock()
	for {
		paused := c.handle()
		open := !c.closing && !c.broken
		c.flushing = s.release(c.flushing)
		if !open || !paused {
			return open
		}
		runtime.Gosched() // otherwise goroutines that wait for the lock would rarely get it
		s.mu.Lock()
		for c.full() && !c.closing && !c.broken {
			c.cond.Wait()
		}
	}
}

// full reports whether the connection must wait before it handles or reads more: too much output is pending because the
// peer does not read it, or the peer has sent maxBuffer bytes or more that the machine does not accept yet.
func (c *Conn) full() bool {
	return c.pending() > c.srv.opts.PauseOutput/2 || c.paused && c.top-c.start >= maxBuffer
}

// handle passes the complete messages in the buffer to the machine. It returns true if it stopped early: after
// batchLimit messages, when more than PauseOutput bytes are pending, or when the machine accepts no messages and the
// buffer has maxBuffer bytes or more.
func (c *Conn) handle() (paused bool) {
	s := c.srv
	for s.work = 0; c.start < c.top; s.work++ {
		if c.closing || c.broken {
			return false
		}
		if c.paused {
			c.backlog, c.need = true, 1
			return c.top-c.start >= maxBuffer
		}
		b := c.buf[c.start:c.top]
		n, found, e := c.stream.Read(b, &s.frame)
		c.start += n
		switch {
		case found == codec.Nothing:
			c.need = c.stream.Need()
			return false
		case found == codec.Skipped:
			continue
		case !s.watching():
			c.deliver(&s.frame, e)
		case c.inspect(&s.frame, b[:n], e):
			c.deliver(&s.frame, e)
		}
		if c.pending() > s.opts.PauseOutput || s.work >= batchLimit {
			return true
		}
	}
	c.start, c.top, c.need = 0, 0, 1
	s.frame.Reset(codec.Peer) // it may have been large
	return false
}

// deliver passes one message to the machine: to Handle, or if e is not nil to Reject.
func (c *Conn) deliver(f *codec.Frame, e *codec.Error) {
	c.crlf = f.CRLF
	if e == nil {
		c.srv.machine.Handle(c, f)
		return
	}
	c.srv.machine.Reject(c, f, e)
	if e.Fatal || c.srv.opts.Strict {
		c.Close()
	}
}

// makeRoom makes space for the next read; n is the size of the last one. The buffer grows only as data arrives, not to the
// length that a header announces.
func (c *Conn) makeRoom(n int) {
	have, size := c.top-c.start, len(c.buf)
	if n >= size/4 {
		c.smallReads = 0
	}
	switch {
	case have == 0 && size > maxBuffer:
		c.buf = make([]byte, maxBuffer)
		return
	case n == size && size < maxBuffer:
		size *= 2
	case have == 0 && n < size/4 && size > minBuffer:
		if c.smallReads++; c.smallReads > 8 {
			size /= 2
			c.smallReads = 0
		}
	case have == size:
		// The message is longer than the buffer. need may be only one byte more while the session searches for the end of the
		// message.
		size = min(2*size, max(c.need, size+size/8, maxBuffer))
	}
	if size == len(c.buf) {
		if c.start > 0 {
			copy(c.buf, c.buf[c.start:c.top])
		}
	} else {
		b := make([]byte, size)
		copy(b, c.buf[c.start:c.top])
		c.buf = b
	}
	c.start, c.top = 0, have
}

// linger keeps a connection open whose peer has closed its direction, as long as the machine has replies for it and the
// limits in Options allow.
func (c *Conn) linger() {
	s := c.srv
	_, can := c.nc.(interface{ CloseWrite() error })
	s.mu.Lock()
	if !can || s.opts.HalfClosed < 0 || c.closing || c.broken {
		s.mu.Unlock()
		return
	}
	stay := s.machine.HalfClosed(c)
	s.mu.Unlock()
	if !c.handleBatch() || !stay { // turn handles the messages that were delayed until Resume
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halfClosed = append(s.halfClosed, c)
	for _, first := range s.halfClosed[:max(0, len(s.halfClosed)-s.opts.MaxHalfClosed)] {
		first.endNow()
	}
	last := c.written()
	var t *time.Timer
	t = time.AfterFunc(s.opts.HalfClosed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.closing || c.broken {
			return
		}
		if now := c.written(); now > last {
			last = now
			t.Reset(s.opts.HalfClosed)
			return
		}
		c.endNow()
	})
	for !c.closing && !c.broken {
		c.cond.Wait()
	}
	t.Stop()
	c.lingering = false
	i := slices.Index(s.halfClosed, c)
	s.halfClosed = slices.Delete(s.halfClosed, i, i+1)
}

// finish reports the end of the connection to the machine, writes the pending output, and closes the connection.
func (c *Conn) finish() {
	s := c.srv
	s.mu.Lock()
	c.gone = true
	s.machine.Close(c)
	c.setWriteDeadline()
	c.flushing = s.release(c.flushing)
	s.mu.Lock()
	for c.busy && !c.broken {
		c.cond.Wait()
	}
	lingering := c.lingering && !c.broken
	s.mu.Unlock()
	if lingering {
		c.closeAfterOutput()
	}
	c.nc.Close()

	s.mu.Lock()
	defer s.mu.Unlock()
	for c.busy {
		c.cond.Wait()
	}
	delete(s.conns, c)
	if len(s.conns) == 0 {
		s.empty.Broadcast()
	}
}

// closeAfterOutput closes the server's direction, then reads and discards what the peer still sends, at most 16 MiB and
// for the time Linger. Closing a TCP connection with unread data would reset it, and the peer could lose the last
// output.
func (c *Conn) closeAfterOutput() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(c.srv.opts.Linger))
	for left := 16 << 20; left > 0; {
		n, err := c.nc.Read(c.buf)
		if err != nil {
			return
		}
		left -= n
	}
}

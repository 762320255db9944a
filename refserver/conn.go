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

// A read buffer is small while little comes, holds many messages while much
// does, and exceeds that only for one message that needs it.
const (
	minBuffer = 512
	maxBuffer = 64 << 10
)

// turnWork is how many messages, those to handle and those to send counted
// alike, may pass before a connection gives the lock back though it has more.
const turnWork = 4096

// Conn is one connection. Its exported methods are for the machine, which calls
// them under the server's lock.
type Conn struct {
	Data any // the machine's

	srv     *Server
	nc      net.Conn
	socket  *sock.Socket // nil if nc is none
	id      uint64
	session codec.Session
	forward codec.Forwarder // the session, or nil if it is none
	stream  codec.Stream
	cond    sync.Cond // output was written, or the connection's state changed

	// What its goroutine has read. The server's lock is not needed.
	buf        []byte
	start, top int // the unread part
	need       int // how much of it is worth another Decode
	quiet      int // reads in a row that used little of buf
	flushing   []*Conn

	// Under the server's lock:
	closing bool // no more is read; what is due is written, then it closes
	polite  bool // the peer may still be sending: read it off before closing
	gone    bool // the machine has been told
	dead    bool // nothing can be written any more
	held    bool // the machine wants no messages at present
	backlog bool // some have come all the same
	crlf    bool // the last text line ended CR LF, and so shall its reply

	output
	watch
}

func newConn(s *Server, nc net.Conn) *Conn {
	session := s.opts.Protocol.NewSession(s.opts.Codec)
	forward, _ := session.(codec.Forwarder)
	c := &Conn{srv: s, nc: nc, session: session, forward: forward, stream: codec.Stream{Session: session, From: codec.Peer}, need: 1, buf: make([]byte, minBuffer)}
	c.cond.L = &s.mu
	c.socket = sock.New(nc)
	c.watch.init(s)
	return c
}

// ID numbers the connections of a server from 1.
func (c *Conn) ID() uint64 { return c.id }

// FD returns the connection's file descriptor, or its ID if it has none.
func (c *Conn) FD() uint64 {
	if c.socket == nil {
		return c.id
	}
	return c.socket.FD()
}

// receive reads what has come, or waits until something does.
func (c *Conn) receive() (int, error) {
	if c.socket == nil {
		return c.nc.Read(c.buf[c.top:])
	}
	return c.socket.Read(c.buf[c.top:])
}

// RemoteIP returns the peer's address without its port, or what stands for an
// address where the connection is not IP.
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

// MaxData is the cap on the data of a message to or from this connection.
func (c *Conn) MaxData() int { return c.srv.opts.Codec.MaxData }

// Close ends the connection after what is due has been written.
func (c *Conn) Close() { c.end(true) }

// Shutdown stops the whole server: at once, or when it is graceful as soon as
// the last connection has ended, while no new ones are taken.
func (c *Conn) Shutdown(graceful bool) { c.srv.halt(graceful) }

// Hold keeps what comes next from the machine until Resume: a protocol whose
// requests are served one behind the other calls it while one of them cannot be
// answered yet. The peer's leaving is still noticed, unless it has sent more
// than 64 KiB ahead. A machine that is told HalfClosed of a connection it holds
// must resume it.
func (c *Conn) Hold() { c.held = true }

// Resume ends a Hold. The machine is given what has come meanwhile later, by the
// connection's own goroutine.
func (c *Conn) Resume() {
	c.held = false
	if c.backlog {
		c.backlog = false
		c.nc.SetReadDeadline(past)
		c.cond.Broadcast()
	}
}

// past wakes a blocked Read when it is set as its deadline.
var past = time.Unix(1, 0)

func (c *Conn) end(polite bool) {
	if c.closing {
		return
	}
	c.closing, c.polite = true, polite
	c.nc.SetReadDeadline(past)
	c.cond.Broadcast()
}

// fail gives the connection up: nothing is written to it any more.
func (c *Conn) fail() {
	c.dead = true
	c.out = nil
	c.nc.Close()
	c.cond.Broadcast()
}

// run serves the connection to its end.
func (c *Conn) run() {
	c.read()
	c.finish()
}

func (c *Conn) read() {
	for {
		n, err := c.receive()
		c.top += n
		if errors.Is(err, os.ErrDeadlineExceeded) && c.woken() {
			err = nil
		}
		if c.top-c.start >= c.need && !c.turn() {
			return
		}
		if err == io.EOF {
			c.linger()
		}
		if err != nil {
			return
		}
		c.room(n)
	}
}

// woken reports whether it was Resume that interrupted a Read.
func (c *Conn) woken() bool {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if c.closing || c.dead {
		return false
	}
	c.nc.SetReadDeadline(time.Time{})
	return true
}

// turn handles the messages in the buffer. It reports whether the connection
// goes on.
func (c *Conn) turn() bool {
	s := c.srv
	s.mu.Lock()
	for {
		paused := c.handle()
		open := !c.closing && !c.dead
		c.flushing = s.release(c.flushing)
		if !open || !paused {
			return open
		}
		runtime.Gosched() // else whoever waits for the lock would hardly ever get it
		s.mu.Lock()
		for c.full() && !c.closing && !c.dead {
			c.cond.Wait()
		}
	}
}

// full reports whether nothing can be done for the connection at present, not
// even reading on: the peer does not take its replies, or sends on and on while
// it is held.
func (c *Conn) full() bool {
	return c.pending() > c.srv.opts.PauseOutput/2 || c.held && c.top-c.start >= maxBuffer
}

// handle gives the complete messages in the buffer to the machine. It stops
// early when the connection is held, and says so when there is nothing to be done
// until that ends or until the peer reads its replies, or when it is the others'
// turn.
func (c *Conn) handle() (paused bool) {
	s := c.srv
	for s.work = 0; c.start < c.top; s.work++ {
		if c.closing || c.dead {
			return false
		}
		if c.held {
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
		if c.pending() > s.opts.PauseOutput || s.work >= turnWork {
			return true
		}
	}
	c.start, c.top, c.need = 0, 0, 1
	return false
}

// deliver hands one message to the machine.
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

// room makes space for the next read, of which the last took n bytes. The
// buffer doubles as bytes really arrive, whatever a header announces.
func (c *Conn) room(n int) {
	have, size := c.top-c.start, len(c.buf)
	switch {
	case have == 0 && size > maxBuffer:
		c.buf = make([]byte, maxBuffer)
		return
	case n == size && size < maxBuffer:
		size *= 2
	case have == 0 && n < size/4 && size > minBuffer:
		if c.quiet++; c.quiet > 8 {
			size /= 2
			c.quiet = 0
		}
	case have == size:
		// One message is longer than the buffer. Where its end is looked for, it may be byte by byte.
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

// linger stays with a peer that has ended its direction for as long as the
// machine has something for it.
func (c *Conn) linger() {
	s := c.srv
	_, can := c.nc.(interface{ CloseWrite() error })
	s.mu.Lock()
	if !can || s.opts.HalfClosed < 0 || c.closing || c.dead {
		s.mu.Unlock()
		return
	}
	stay := s.machine.HalfClosed(c)
	s.mu.Unlock()
	if !c.turn() || !stay { // the turn is for what was held until now
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halfClosed = append(s.halfClosed, c)
	for _, first := range s.halfClosed[:max(0, len(s.halfClosed)-s.opts.MaxHalfClosed)] {
		first.end(false)
	}
	last := c.written()
	var t *time.Timer
	t = time.AfterFunc(s.opts.HalfClosed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.closing || c.dead {
			return
		}
		if now := c.written(); now > last {
			last = now
			t.Reset(s.opts.HalfClosed)
			return
		}
		c.end(false)
	})
	for !c.closing && !c.dead {
		c.cond.Wait()
	}
	t.Stop()
	c.polite = false
	i := slices.Index(s.halfClosed, c)
	s.halfClosed = slices.Delete(s.halfClosed, i, i+1)
}

// finish tells the machine that the connection has ended, writes what is still
// due to the peer, and closes it.
func (c *Conn) finish() {
	s := c.srv
	s.mu.Lock()
	c.gone = true
	s.machine.Close(c)
	c.hurry()
	c.flushing = s.release(c.flushing)
	s.mu.Lock()
	for c.busy && !c.dead {
		c.cond.Wait()
	}
	polite := c.polite && !c.dead
	s.mu.Unlock()
	if polite {
		c.hangUp()
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

// hangUp ends our direction and reads off what the peer is still sending, for a
// while: closing over unread bytes would destroy the last words on their way.
func (c *Conn) hangUp() {
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

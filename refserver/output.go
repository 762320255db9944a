package refserver

import (
	"errors"
	"runtime"
	"time"

	"jobwire/codec"
)

// chunk is how much is written at once to a connection that reads slowly, so
// that its progress is seen.
const chunk = 128 << 10

// output is what waits to be written to a connection. All of it belongs to the
// server's lock, but the bytes of writing, which belong to the one who writes
// while busy is set.
type output struct {
	out     []byte // not yet being written
	writing []byte
	sent    int  // of writing
	busy    bool // somebody writes
	dirty   bool // on the server's list

	total  int64   // bytes ever taken into writing; splits refer to it
	splits []split // pieces that a fault wants written apart

	tried   int // bytes that went at the first attempt
	tryFail error
}

// split says that bytes up to an offset of the stream are written in pieces.
type split struct {
	from, to int64
	size     int
	pause    time.Duration
}

// pending is the number of bytes that wait.
func (o *output) pending() int { return len(o.out) + len(o.writing) - o.sent }

// written is the number of bytes that the peer's side has taken so far.
func (o *output) written() int64 { return o.total + int64(o.sent) }

var errGone = errors.New("the connection is closed")

// Send sends a message of that type with those arguments. It fails if the
// connection has ended, or with a [*codec.Error] if the row does not allow the
// message; nothing is sent then.
func (c *Conn) Send(t *codec.Type, args ...[]byte) error {
	m := &c.srv.msg
	list, size := m.Args[:0], 0
	for _, a := range args {
		list = append(list, a)
		size += len(a)
	}
	*m = codec.Message{Type: t, Args: list}
	return c.send(size)
}

// Forward sends what another peer has said, as Send would. The server must send that row
// too.
func (c *Conn) Forward(f *codec.Frame) error {
	if c.forward == nil || c.srv.watching() {
		f.Message(&c.srv.msg)
		return c.send(len(f.Raw))
	}
	if err := c.admit(len(f.Raw)); err != nil {
		return err
	}
	if out, ok := c.forward.Forward(c.out, codec.Server, f); ok {
		c.out = out
		c.mark()
		return nil
	}
	f.Message(&c.srv.msg)
	return c.appendMessage()
}

// send sends Server.msg, of about that size.
func (c *Conn) send(size int) error {
	if err := c.admit(size); err != nil {
		return err
	}
	return c.appendMessage()
}

// admit reports why a message of about that size cannot be sent, or nil.
func (c *Conn) admit(size int) error {
	s := c.srv
	s.work++
	if c.gone || c.dead {
		return errGone
	}
	if waits := c.pending(); waits > s.opts.PauseOutput && waits+size > s.opts.MaxOutput {
		c.fail()
		return errGone
	}
	return nil
}

// appendMessage appends Server.msg to what waits.
func (c *Conn) appendMessage() error {
	s := c.srv
	s.msg.CRLF = c.crlf
	if s.watching() {
		return c.sendWatched()
	}
	out, err := c.session.Append(c.out, codec.Server, &s.msg)
	if err != nil {
		return err
	}
	c.out = out
	c.mark()
	return nil
}

// mark notes that the connection has something to write.
func (c *Conn) mark() {
	if !c.dirty {
		c.dirty = true
		c.srv.dirty = append(c.srv.dirty, c)
	}
}

// take hands what waits to the one who will write it. It reports whether there
// is anything.
func (c *Conn) take() bool {
	if c.sent == len(c.writing) {
		c.total += int64(len(c.writing))
		next := c.writing[:0]
		if cap(next) > maxBuffer {
			next = nil
		}
		c.writing, c.out, c.sent = c.out, next, 0
	}
	return c.sent < len(c.writing) && !c.dead
}

// release ends a turn: it sets the timer, unlocks the server and writes what is
// to be written. Connections that are ready to have their turn have it first, so
// that what all of them produce is written once to each. list is memory to be used
// again, and returned.
func (s *Server) release(list []*Conn) []*Conn {
	list = list[:0]
	s.arm()
	idle := len(s.dirty) == 0
	s.mu.Unlock()
	if idle {
		return list
	}
	runtime.Gosched()
	s.mu.Lock()
	for i, c := range s.dirty {
		s.dirty[i] = nil
		c.dirty = false
		if c.busy || !c.take() {
			continue
		}
		c.busy = true
		if c.socket == nil || len(c.splits) > 0 {
			go c.drain()
		} else {
			list = append(list, c)
		}
	}
	s.dirty = s.dirty[:0]
	s.mu.Unlock()
	if len(list) == 0 {
		return list
	}
	for _, c := range list {
		c.tried, c.tryFail = c.socket.TryWrite(c.writing[c.sent:])
	}
	s.mu.Lock()
	for i, c := range list {
		list[i] = nil
		c.sent += c.tried
		if c.tryFail != nil {
			c.fail()
		}
		if c.take() {
			go c.drain()
			continue
		}
		c.busy = false
		c.cond.Broadcast()
	}
	s.mu.Unlock()
	return list
}

// drain writes until nothing is left, waiting for the peer as long as it takes.
func (c *Conn) drain() {
	mu := &c.srv.mu
	mu.Lock()
	for c.take() {
		b, pause := c.piece()
		if c.gone && c.srv.state != stopped {
			c.hurry()
		}
		mu.Unlock()
		n, err := c.nc.Write(b)
		time.Sleep(pause)
		mu.Lock()
		c.sent += n
		if err != nil {
			c.fail()
		}
		c.cond.Broadcast()
	}
	c.busy = false
	c.cond.Broadcast()
	mu.Unlock()
}

// hurry gives the peer of a connection that is closing a limited time to take
// what is written next.
func (c *Conn) hurry() { c.nc.SetWriteDeadline(time.Now().Add(c.srv.opts.Linger)) }

// piece returns what to write next and how long to wait behind it.
func (c *Conn) piece() ([]byte, time.Duration) {
	b := c.writing[c.sent:]
	at := c.total + int64(c.sent)
	for len(c.splits) > 0 && c.splits[0].to <= at {
		c.splits = c.splits[1:]
	}
	n, pause := chunk, time.Duration(0)
	if len(c.splits) > 0 {
		if p := c.splits[0]; at < p.from {
			n = int(p.from - at)
		} else {
			n, pause = min(p.size, int(p.to-at)), p.pause
		}
	}
	return b[:min(n, len(b))], pause
}

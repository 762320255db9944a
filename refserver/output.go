package refserver

import (
	"errors"
	"runtime"
	"slices"
	"time"

	"jobwire/codec"
)

// chunk is the maximum number of bytes of one blocking write. After each, the server sees that a slow reader makes
// progress.
const chunk = 128 << 10

// output is the data that is waiting to be written to a connection. The server's lock guards it, except the bytes of
// writing, which belong to the goroutine that writes while busy is set.
type output struct {
	out     []byte // not yet being written
	writing []byte
	sent    int  // number of bytes of writing that are already written
	busy    bool // a goroutine is writing
	dirty   bool // the connection is in Server.dirty

	// length of all earlier values of writing; total+sent is a position in the stream, as are the offsets of splits
	total  int64
	splits []split // messages that a fault writes in pieces

	tried   int // number of bytes that the first, non-blocking attempt wrote
	tryFail error
}

// split is a range of the output, in bytes since the start of the connection, that is written in pieces of size bytes.
type split struct {
	from, to int64
	size     int
	pause    time.Duration
}

// pending returns the number of bytes that are waiting to be written.
func (o *output) pending() int { return len(o.out) + len(o.writing) - o.sent }

// written returns the number of bytes that have been written so far, that is, accepted by the operating system.
func (o *output) written() int64 { return o.total + int64(o.sent) }

var errGone = errors.New("the connection is closed")

// Send sends a message of the type t with the arguments. It does not block. It returns an error if the connection has
// ended, or a [*codec.Error] if the message violates the rules of its type; nothing is sent then. If more output is
// pending than [Options].MaxOutput allows, it closes the connection and returns an error.
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

// Forward sends a message that another peer has sent, unchanged. It has the errors of Send. The server must be allowed
// to send messages of this type.
func (c *Conn) Forward(f *codec.Frame) error {
	if c.forward == nil || c.srv.watching() {
		f.Message(&c.srv.msg)
		return c.send(len(f.Raw))
	}
	if err := c.checkRoom(len(f.Raw)); err != nil {
		return err
	}
	if out, ok := c.forward.Forward(c.out, codec.Server, f); ok {
		c.out = out
		c.markDirty()
		return nil
	}
	f.Message(&c.srv.msg)
	return c.appendMessage()
}

// send sends Server.msg; size is its approximate length in bytes.
func (c *Conn) send(size int) error {
	if err := c.checkRoom(size); err != nil {
		return err
	}
	if size > maxBuffer {
		c.out = slices.Grow(c.out, size+maxBuffer) // do not copy large payloads again
	}
	return c.appendMessage()
}

// checkRoom returns an error if a message of about size bytes cannot be sent. It closes the connection if the message
// would exceed MaxOutput.
func (c *Conn) checkRoom(size int) error {
	s := c.srv
	s.work += 1 + size/workBytes
	if c.gone || c.broken {
		return errGone
	}
	if waits := c.pending(); waits > s.opts.PauseOutput && waits+size > s.opts.MaxOutput {
		c.fail()
		return errGone
	}
	return nil
}

// appendMessage appends Server.msg to the output.
func (c *Conn) appendMessage() error {
	s := c.srv
	s.msg.CRLF = c.crlf
	if s.watching() {
		return c.sendWatched()
	}
	out, err := c.session.Append(c.out, codec.Server, &s.msg)
	clear(s.msg.Args) // they may be large
	if err != nil {
		return err
	}
	c.out = out
	c.markDirty()
	return nil
}

// markDirty adds the connection to Server.dirty, the list of connections with new output.
func (c *Conn) markDirty() {
	if !c.dirty {
		c.dirty = true
		c.srv.dirty = append(c.srv.dirty, c)
	}
}

// swapOutput moves the output to writing if everything in writing has been written. It reports whether there is
// anything to write.
func (c *Conn) swapOutput() bool {
	if c.sent == len(c.writing) {
		c.total += int64(len(c.writing))
		next := c.writing[:0]
		if cap(next) > maxBuffer {
			next = nil
		}
		c.writing, c.out, c.sent = c.out, next, 0
	}
	return c.sent < len(c.writing) && !c.broken
}

// release ends a turn: it sets the timer, unlocks the server and writes the output of all connections in Server.dirty.
// Before that it yields once, so that goroutines that are ready to run can add their output and each connection needs
// only one write. What a connection does not accept at once is left to its drain goroutine. list is reused memory;
// release returns it.
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
		if c.busy || !c.swapOutput() {
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
		if c.swapOutput() {
			go c.drain()
			continue
		}
		c.busy = false
		c.cond.Broadcast()
	}
	s.mu.Unlock()
	return list
}

// drain writes until no output is left. Writes may block for as long as the write deadline allows.
func (c *Conn) drain() {
	mu := &c.srv.mu
	mu.Lock()
	for c.swapOutput() {
		b, pause := c.nextWrite()
		if c.gone && c.srv.state != stopped {
			c.setWriteDeadline()
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

// setWriteDeadline sets the write deadline of a closing connection to Linger from now.
func (c *Conn) setWriteDeadline() { c.nc.SetWriteDeadline(time.Now().Add(c.srv.opts.Linger)) }

// nextWrite returns the bytes to write next and the pause after them.
func (c *Conn) nextWrite() ([]byte, time.Duration) {
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

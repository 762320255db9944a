package loadgen

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"jobwire/codec"
	"jobwire/internal/sock"
)

// Sizes of the read buffer in bytes. It grows while reads fill it.
const (
	minBuffer = 4 << 10
	maxBuffer = 64 << 10
)

// minIncoming is how many bytes of memory all connections of a run may have for received messages, in addition to two
// payloads for each connection. One message has at most this and two payloads.
const minIncoming = 8 << 20

// role is the behavior of a connection: that of a client or of a worker. Its methods are called while the connection
// is locked.
type role interface {
	begin()              // sends the first messages on a new connection
	handle(*codec.Frame) // handles a message of the server
	batchEnded()         // called after all received messages were handled and the replies were written
}

// Conn is the connection of a client or a worker. Its goroutine reads, handles all messages that have arrived, and
// then writes once. An adapter may call the methods of Conn only in Begin, Submit, Handle, and functions passed to
// After.
type Conn struct {
	run     *run
	id      int
	name    string // name in transcripts, such as "Client 1"
	role    role
	nc      net.Conn
	socket  *sock.Socket // for non-blocking writes; nil if nc is not a socket
	sess    codec.Session
	ended   chan struct{} // closed when the goroutine of the connection has ended
	serving atomic.Bool   // the goroutine was started

	in input

	mu     sync.Mutex // guards the fields below and the state of the role
	rand   *rand.Rand
	msg    codec.Message
	now    int64 // time on run.clock at which the batch being handled was read
	out    output
	closed bool
}

// input is what a connection has received.
type input struct {
	buf        []byte // read buffer
	first, top int    // buf[first:top] has been read, but not handled
	need       int    // length of buf[first:top] from which handleReceived can find a message
	stream     codec.Stream
	frame      codec.Frame // memory for the message being handled
	counted    int         // the memory of buf and frame that is a part of memory.used
}

// output is what a connection has to write.
type output struct {
	next    []byte // bytes to write after those of current
	current []byte // bytes being written
	sent    int    // number of bytes of current that are written
	busy    bool   // a goroutine executes drain
}

func newConn(r *run, id int, nc net.Conn, name string) *Conn {
	c := &Conn{run: r, id: id, name: name, in: input{buf: make([]byte, minBuffer)},
		rand: rand.New(rand.NewPCG(r.cfg.Seed, uint64(id)))}
	c.use(nc)
	return c
}

// use replaces the network connection and resets the protocol state.
func (c *Conn) use(nc net.Conn) {
	c.nc, c.socket, c.ended, c.closed = nc, sock.New(nc), make(chan struct{}), false
	c.sess = c.run.cfg.Protocol.NewSession(codec.Options{MaxData: minIncoming + 2*c.run.cfg.Size.Hi})
	c.in.stream = codec.Stream{Session: c.sess, From: codec.Server}
	c.in.first, c.in.top, c.in.need = 0, 0, 1
	c.out = output{next: c.out.next[:0], current: c.out.current[:0]}
}

// receive reads into the free part of the read buffer. It blocks until at least one byte arrives.
func (c *Conn) receive() (int, error) {
	if c.socket == nil {
		return c.nc.Read(c.in.buf[c.in.top:])
	}
	return c.socket.Read(c.in.buf[c.in.top:])
}

// Queues returns the names of the functions or tubes over which the jobs are distributed.
func (c *Conn) Queues() [][]byte {
	names := make([][]byte, c.run.cfg.Functions)
	for i := range names {
		names[i] = []byte(c.run.cfg.Prefix)
		if len(names) > 1 {
			names[i] = fmt.Appendf(names[i], "-%d", i+1)
		}
	}
	return names
}

// Config returns the configuration of the run. The caller must not change it.
func (c *Conn) Config() *Config { return &c.run.cfg }

// Send appends a message to the bytes that are written after the current batch.
func (c *Conn) Send(t *codec.Type, args ...[]byte) {
	c.msg.Type, c.msg.Args = t, append(c.msg.Args[:0], args...)
	c.send(&c.msg)
}

// send encodes a message into the output buffer, which a flush sends. A message that cannot be encoded ends the
// connection.
func (c *Conn) send(m *codec.Message) {
	out, err := c.sess.Append(c.out.next, codec.Peer, m)
	if err != nil {
		c.end(fmt.Errorf("cannot send: the message breaks a rule of the specification: %w", err))
		return
	}
	c.out.next = out
}

// flush writes as many bytes as the socket accepts without blocking, and starts a goroutine that writes the others.
// The caller has locked the connection.
func (c *Conn) flush() {
	if c.out.busy || c.closed || !c.out.take() {
		return
	}
	if c.socket != nil {
		n, err := c.socket.TryWrite(c.out.current[c.out.sent:])
		c.out.sent += n
		if err != nil {
			c.end(err)
			return
		}
		if !c.out.take() {
			return
		}
	}
	c.out.busy = true
	go c.drain()
}

// take makes the bytes of next the current ones, if those are written. It reports whether there are bytes to write.
func (o *output) take() bool {
	if o.sent == len(o.current) {
		o.current, o.next, o.sent = o.next, o.current[:0], 0
	}
	return o.sent < len(o.current)
}

// drain writes until all bytes are written or the connection is closed.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && c.out.take() {
		b := c.out.current[c.out.sent:]
		c.mu.Unlock()
		n, err := c.nc.Write(b)
		c.mu.Lock()
		c.out.sent += n
		if err != nil {
			c.end(err)
		}
	}
	c.out.busy = false
}

// end closes the connection and ends the run with an error, unless the connection is already closed. The caller has
// locked the connection.
func (c *Conn) end(err error) {
	if c.closed {
		return
	}
	c.close()
	c.run.lost(c, err)
}

// closeNow locks the connection and closes it.
func (c *Conn) closeNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

// close closes the connection. The caller has locked the connection.
func (c *Conn) close() {
	if !c.closed {
		c.closed = true
		c.nc.Close()
	}
}

// startServing starts the goroutine of the connection.
func (c *Conn) startServing() {
	c.serving.Store(true)
	go c.serve()
}

// serve reads and handles messages until the connection is closed.
func (c *Conn) serve() {
	defer close(c.ended)
	c.mu.Lock()
	c.now = c.run.clock()
	c.role.begin()
	c.flush()
	c.mu.Unlock()
	for {
		n, err := c.receive()
		c.in.top += n
		c.mu.Lock()
		if c.in.top-c.in.first >= c.in.need && !c.closed { // a killed worker must not handle messages that it has already read
			c.now = c.run.clock()
			c.handleReceived()
			c.mu.Unlock()
			runtime.Gosched() // let other connections add to this connection's output, so that each write has more bytes
			c.mu.Lock()
			c.flush()
			c.role.batchEnded()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			c.end(err)
		}
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return
		}
		c.room(n)
	}
}

// handleReceived handles all messages that were read completely.
func (c *Conn) handleReceived() {
	for c.in.first < c.in.top {
		n, found, err := c.in.stream.Read(c.in.buf[c.in.first:c.in.top], &c.in.frame)
		if c.in.need = c.in.stream.Need(); found == codec.Nothing {
			break
		}
		if err != nil {
			c.end(fmt.Errorf("received a message that breaks a rule of the specification: %w", err))
			return
		}
		c.in.first += n
		c.role.handle(&c.in.frame)
		if c.closed {
			return
		}
	}
	if c.in.first == c.in.top {
		c.in.first, c.in.top, c.in.need = 0, 0, 1
	}
}

// room makes space in the read buffer for the next read. n is the number of bytes of the last read; the buffer grows
// if that read filled it, or if the next message is longer than the buffer. If the connections of the run need too much
// memory for messages that are not complete, room ends the connection.
func (c *Conn) room(n int) {
	have, size := c.in.top-c.in.first, len(c.in.buf)
	switch {
	case c.crowded() && have > maxBuffer:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(fmt.Errorf("received %d bytes of a message that is not complete: too many, because bench keeps at most %d "+
			"bytes of all connections", have, c.run.memory.limit.Load()))
		return
	case n == size && size < maxBuffer:
		size *= 2
	case have == 0 && size > maxBuffer && c.crowded():
		c.in.frame, size = codec.Frame{}, maxBuffer
	case c.in.need > size && 2*have >= size: // the announced size may never arrive
		size = max(2*size, min(c.in.need, maxBuffer))
	}
	if size != len(c.in.buf) {
		b := make([]byte, size)
		copy(b, c.in.buf[c.in.first:c.in.top])
		c.in.buf = b
	} else if c.in.first > 0 {
		copy(c.in.buf, c.in.buf[c.in.first:c.in.top])
	}
	c.in.first, c.in.top = 0, have
}

// crowded counts the memory of the connection for received messages, and reports whether all connections together have
// more than their share.
func (c *Conn) crowded() bool {
	used := len(c.in.buf) + cap(c.in.frame.Spans)*int(unsafe.Sizeof(codec.Span{}))
	all := c.run.memory.used.Add(int64(used - c.in.counted))
	c.in.counted = used
	return all > c.run.memory.limit.Load()
}

// After calls do after d, in the same way as Handle: while the connection is locked, and before a write. It does not
// call do if the connection is closed by then.
func (c *Conn) After(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now = c.run.clock()
		if !c.closed {
			do()
			c.flush()
		}
		c.role.batchEnded()
	})
}

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

	"jobwire/codec"
	"jobwire/internal/sock"
)

// A read buffer is small while little comes and holds many messages while much does.
const (
	minBuffer = 4 << 10
	maxBuffer = 64 << 10
)

// role is what the peer on a connection does: that of a client or of a worker. Its methods are called with the lock of the connection.
type role interface {
	begin()              // sends the first messages
	handle(*codec.Frame) // handles a message of the server
	batchEnded()         // all messages that had arrived are handled, and the replies are written
}

// Conn is the connection of a client or a worker. Its goroutine reads, handles all messages that have
// arrived, and then writes once. An adapter calls its methods from Begin, Submit, Handle and After only.
type Conn struct {
	run     *run
	id      int
	name    string // in transcripts
	role    role
	nc      net.Conn
	socket  *sock.Socket // nil if nc is none
	sess    codec.Session
	ended   chan struct{} // closed when its goroutine has
	serving atomic.Bool

	in         []byte
	first, top int // the unread part
	need       int // how much of it is worth another look
	stream     codec.Stream
	frame      codec.Frame

	mu      sync.Mutex // guards the rest, and what the role has
	rand    *rand.Rand
	msg     codec.Message
	now     int64 // when the batch being handled had come
	out     []byte
	writing []byte
	sent    int  // of writing
	busy    bool // a goroutine writes
	closed  bool
}

func newConn(r *run, id int, nc net.Conn, name string) *Conn {
	c := &Conn{run: r, id: id, name: name, in: make([]byte, minBuffer), rand: rand.New(rand.NewPCG(r.cfg.Seed, uint64(id)))}
	c.use(nc)
	return c
}

// use makes the connection one that nothing was sent or received on.
func (c *Conn) use(nc net.Conn) {
	c.nc, c.socket, c.ended, c.closed = nc, sock.New(nc), make(chan struct{}), false
	c.sess = c.run.cfg.Protocol.NewSession(codec.Options{})
	c.stream = codec.Stream{Session: c.sess, From: codec.Server}
	c.first, c.top, c.need = 0, 0, 1
	c.out, c.writing, c.sent = c.out[:0], c.writing[:0], 0
}

// receive reads what has come, or waits until something does.
func (c *Conn) receive() (int, error) {
	if c.socket == nil {
		return c.nc.Read(c.in[c.top:])
	}
	return c.socket.Read(c.in[c.top:])
}

// Queues returns the names of the functions, or tubes, that jobs are spread over.
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

// Config returns the configuration of the run.
func (c *Conn) Config() *Config { return &c.run.cfg }

// Send appends a message to those that are written next.
func (c *Conn) Send(t *codec.Type, args ...[]byte) {
	c.msg.Type, c.msg.Args = t, append(c.msg.Args[:0], args...)
	c.send(&c.msg)
}

func (c *Conn) send(m *codec.Message) {
	out, err := c.sess.Append(c.out, codec.Peer, m)
	if err != nil {
		c.end(fmt.Errorf("cannot send: the message breaks a rule of the specification: %w", err))
		return
	}
	c.out = out
}

// flush writes what waits, as far as the socket takes it; the rest is left to a goroutine.
// The caller holds the lock.
func (c *Conn) flush() {
	if c.busy || c.closed || !c.take() {
		return
	}
	if c.socket != nil {
		n, err := c.socket.TryWrite(c.writing[c.sent:])
		c.sent += n
		if err != nil {
			c.end(err)
			return
		}
		if !c.take() {
			return
		}
	}
	c.busy = true
	go c.drain()
}

// take moves what waits to the buffer that is written, if that is empty. It reports whether there is anything to write.
func (c *Conn) take() bool {
	if c.sent == len(c.writing) {
		c.writing, c.out, c.sent = c.out, c.writing[:0], 0
	}
	return c.sent < len(c.writing)
}

// drain writes until nothing is left.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && c.take() {
		b := c.writing[c.sent:]
		c.mu.Unlock()
		n, err := c.nc.Write(b)
		c.mu.Lock()
		c.sent += n
		if err != nil {
			c.end(err)
		}
	}
	c.busy = false
}

// end closes the connection. The caller holds the lock.
func (c *Conn) end(err error) {
	if c.closed {
		return
	}
	c.close()
	c.run.lost(c, err)
}

// closeNow closes the connection from outside.
func (c *Conn) closeNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

// close closes the connection. The caller holds the lock.
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

// serve reads to the connection's end.
func (c *Conn) serve() {
	defer close(c.ended)
	c.mu.Lock()
	c.now = c.run.clock()
	c.role.begin()
	c.flush()
	c.mu.Unlock()
	for {
		n, err := c.receive()
		c.top += n
		c.mu.Lock()
		if c.top-c.first >= c.need && !c.closed { // what a killed worker had read, it never saw
			c.now = c.run.clock()
			c.handleReceived()
			c.mu.Unlock()
			runtime.Gosched() // let the others have their turn first: more goes with each write
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

// handleReceived handles all messages that have come.
func (c *Conn) handleReceived() {
	for c.first < c.top {
		n, found, err := c.stream.Read(c.in[c.first:c.top], &c.frame)
		if c.need = c.stream.Need(); found == codec.Nothing {
			break
		}
		if err != nil {
			c.end(fmt.Errorf("received a message that breaks a rule of the specification: %w", err))
			return
		}
		c.first += n
		c.role.handle(&c.frame)
		if c.closed {
			return
		}
	}
	if c.first == c.top {
		c.first, c.top, c.need = 0, 0, 1
	}
}

// room makes space for the next read, of which the last took n bytes.
func (c *Conn) room(n int) {
	have, size := c.top-c.first, len(c.in)
	switch {
	case n == size && size < maxBuffer:
		size *= 2
	case c.need > size:
		size = max(2*size, c.need)
	}
	if size != len(c.in) {
		b := make([]byte, size)
		copy(b, c.in[c.first:c.top])
		c.in = b
	} else if c.first > 0 {
		copy(c.in, c.in[c.first:c.top])
	}
	c.first, c.top = 0, have
}

// After calls do after a pause, as if a message had arrived. It does not if the connection is closed by then.
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

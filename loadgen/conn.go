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

	"jobwire/codec"
	"jobwire/internal/sock"
)

// A read buffer is small while little comes and holds many messages while much does.
const (
	minBuffer = 4 << 10
	maxBuffer = 64 << 10
)

// peer is what one connection says: the client's or the worker's part of a scenario.
type peer interface {
	begin()                // what it says first
	handle(f *codec.Frame) // what it does with what comes
}

// client is a peer that submits jobs.
type client interface {
	peer
	submit(s *slot, payload []byte)
}

// conn is one connection. Its goroutine reads, handles every message that has come, and
// writes once what came of it.
type conn struct {
	run     *run
	id      int
	name    string // in transcripts
	place   int    // among the clients, or the workers
	nc      net.Conn
	socket  *sock.Socket // nil if nc is none
	sess    codec.Session
	peer    peer
	ended   chan struct{} // closed when its goroutine has
	serving atomic.Bool

	in         []byte
	first, top int // the unread part
	need       int // how much of it is worth another Decode
	frame      codec.Frame

	mu      sync.Mutex // guards the rest, but the inbox
	rand    *rand.Rand
	heardOf codec.Message
	msg     codec.Message
	now     int64 // when the batch being handled had come
	out     []byte
	writing []byte
	sent    int  // of writing
	busy    bool // a goroutine writes
	closed  bool

	*submitter                     // of a client
	asks       ring[int64]         // of a worker: when it asked for the jobs that it waits for, if that is kept
	seen       []uint32            // of a worker: the last job, by client, function and priority
	samples    [stageCount][]int64 // of the batch
	told       []*conn             // clients that the batch has something for

	inboxMu sync.Mutex
	inbox   []seenEnd // jobs of this client that others have seen the end of
	spare   []seenEnd // memory for the next inbox
	poked   bool
}

func newConn(r *run, id int, nc net.Conn, name string) *conn {
	c := &conn{run: r, id: id, name: name, nc: nc, sess: r.cfg.Protocol.NewSession(codec.Options{}), need: 1,
		in: make([]byte, minBuffer), ended: make(chan struct{}), rand: rand.New(rand.NewPCG(r.cfg.Seed, uint64(id)))}
	c.socket = sock.New(nc)
	return c
}

// receive reads what has come, or waits until something does.
func (c *conn) receive() (int, error) {
	if c.socket == nil {
		return c.nc.Read(c.in[c.top:])
	}
	return c.socket.Read(c.in[c.top:])
}

// send appends a message to what is to be written.
func (c *conn) send(t *codec.Type, args ...[]byte) {
	c.msg.Type, c.msg.Args = t, append(c.msg.Args[:0], args...)
	out, err := c.sess.Append(c.out, codec.Peer, &c.msg)
	if err != nil {
		c.end(fmt.Errorf("what was to be sent breaks a rule: %w", err))
		return
	}
	c.out = out
}

// arg returns the i-th argument of a message, of a row that has framing between them.
func (c *conn) arg(f *codec.Frame, i int) []byte {
	f.Message(&c.heardOf)
	if i >= len(c.heardOf.Args) {
		return nil
	}
	return c.heardOf.Args[i]
}

// flush writes what waits, as far as the socket takes it; the rest is left to a goroutine.
// The caller holds the lock.
func (c *conn) flush() {
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

// take hands what waits to the one who writes. It reports whether there is anything.
func (c *conn) take() bool {
	if c.sent == len(c.writing) {
		c.writing, c.out, c.sent = c.out, c.writing[:0], 0
	}
	return c.sent < len(c.writing)
}

// drain writes until nothing is left.
func (c *conn) drain() {
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
func (c *conn) end(err error) {
	if c.closed {
		return
	}
	c.closed = true
	c.nc.Close()
	c.run.lost(c, err)
}

// hangUp closes the connection from outside.
func (c *conn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.nc.Close()
	}
}

// serve reads to the connection's end.
func (c *conn) serve() {
	defer close(c.ended)
	c.mu.Lock()
	c.now = c.run.clock()
	c.peer.begin()
	c.flush()
	c.mu.Unlock()
	for {
		n, err := c.receive()
		c.top += n
		c.mu.Lock()
		if c.top-c.first >= c.need && !c.closed { // what a killed worker had read, it never saw
			c.now = c.run.clock()
			c.digest()
			c.mu.Unlock()
			runtime.Gosched() // let the others have their turn first: more goes with each write
			c.mu.Lock()
			c.flush()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			c.end(err)
		}
		closed, told, now := c.closed, c.takeTold(), c.now
		c.mu.Unlock()
		tellAll(told, now)
		if closed {
			return
		}
		c.room(n)
	}
}

// digest handles all messages that have come.
func (c *conn) digest() {
	for c.first < c.top {
		n, err := c.sess.Decode(codec.Server, c.in[c.first:c.top], &c.frame)
		if err == codec.ErrShort {
			c.need = n
			break
		}
		if err != nil {
			c.end(fmt.Errorf("what came breaks a rule: %w", err))
			return
		}
		c.first += n
		c.need = 1
		c.peer.handle(&c.frame)
		if c.closed {
			return
		}
	}
	if c.first == c.top {
		c.first, c.top, c.need = 0, 0, 1
	}
	c.run.record(c)
}

// room makes space for the next read, of which the last took n bytes.
func (c *conn) room(n int) {
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

// seenEnd is a job that a worker has seen the end of. A job can end twice if the server is
// wrong, and its slot be another's by then: so it goes by its number.
type seenEnd struct {
	slot   *slot
	number uint64
}

// tell leaves a job with the client that it belongs to. It is for a worker that has seen the
// job's end, which the client does not hear of.
func (c *conn) tell(s *slot) {
	number := s.number.Load()
	if number == 0 {
		return
	}
	owner := c.run.owner(number)
	owner.inboxMu.Lock()
	owner.inbox = append(owner.inbox, seenEnd{s, number})
	first := !owner.poked
	owner.poked = true
	owner.inboxMu.Unlock()
	if first {
		c.told = append(c.told, owner)
	}
}

// takeTold returns the clients that there is something for. The caller holds the lock.
func (c *conn) takeTold() []*conn {
	told := c.told
	c.told = nil
	return told
}

// tellAll lets clients go on.
func tellAll(told []*conn, now int64) {
	for _, o := range told {
		o.mu.Lock()
		o.now = now
		o.inboxMu.Lock()
		jobs := o.inbox
		o.inbox, o.poked = o.spare, false
		o.inboxMu.Unlock()
		for _, j := range jobs {
			if j.slot.number.Load() == j.number {
				o.over(j.slot)
			}
		}
		o.spare = jobs[:0]
		o.flush()
		o.run.record(o)
		o.mu.Unlock()
	}
}

// Package refserver runs a protocol's reference server: it accepts connections,
// reads messages, hands them to the protocol's [Machine], and writes what the
// machine answers.
//
//	srv := refserver.New(machine, refserver.Options{Protocol: gearman.Protocol})
//	err := srv.Serve(ctx, listener)
//
// One lock guards the machine. A connection's goroutine takes it once per read,
// handles every complete message that has arrived, and gives it back. When the
// others that are ready have done so too, what is due is written, once to each
// connection that got something. Nobody ever
// waits for a connection that does not read: what such a connection does not
// take is left to a goroutine of its own, and to the limits in [Options].
//
// A [Fault] makes the server misbehave on purpose, [Options.Trace] shows every
// message. Both cost nothing when they are not used.
package refserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"jobwire/codec"
)

// Machine is a protocol's state. The server calls it under its lock, so a
// machine needs none of its own and must never block. What it is given (frames,
// arguments) is valid during the call only.
type Machine interface {
	Open(c *Conn)
	Handle(c *Conn, f *codec.Frame)                 // a legal message
	Reject(c *Conn, f *codec.Frame, e *codec.Error) // an illegal one; behind a Fatal one the server closes c
	HalfClosed(c *Conn) (stay bool)                 // nothing more will come from the peer; is anything still due to it?
	Close(c *Conn)                                  // c has ended; sending to it has no effect any more
	Next() time.Time                                // when Tick is due; the zero time if it is not
	Tick(now time.Time)
}

// Limits that hold where Options leaves a zero.
const (
	DefaultMaxOutput     = 128 << 20
	DefaultPauseOutput   = 1 << 20
	DefaultHalfClosed    = 5 * time.Second
	DefaultMaxHalfClosed = 100
	DefaultLinger        = 2 * time.Second
)

// Options are a server's settings. Only Protocol must be set.
type Options struct {
	Protocol *codec.Protocol
	Codec    codec.Options
	Strict   bool // close a connection behind its first illegal message

	// MaxOutput is how many bytes may wait for a connection that does not read
	// them. A message that would make them more closes it, unless no more than
	// PauseOutput waits: a large message is no sign of a slow reader. 0 is
	// DefaultMaxOutput.
	MaxOutput int

	// PauseOutput is how many bytes may wait for a connection before its
	// requests have to: nothing is read from it until half of them are written.
	// 0 is DefaultPauseOutput.
	PauseOutput int

	// HalfClosed is how long the server stays with a peer that has ended its
	// own direction, and is still due something, while nothing can be written
	// to it. A peer that merely closed looks the same, hence the limit. It may
	// take twice as long to notice. 0 is DefaultHalfClosed, less than 0 is not at all.
	HalfClosed time.Duration

	// MaxHalfClosed is with how many such peers the server stays. When there
	// are more, or when descriptors run out, the first of them is given up. 0
	// is DefaultMaxHalfClosed.
	MaxHalfClosed int

	// Linger bounds the last words: how long the peer of a connection that is
	// being closed may read nothing of what is still due, and how long a stopping
	// server waits in all. 0 is DefaultLinger.
	Linger time.Duration

	Intercept Intercept // may be nil
	Trace     Trace
}

// Trace is called for every message that arrives and every one that is sent.
// It must not keep f or raw. Where a message is illegal, err says why, and f is
// what could be read of it.
type Trace func(c *Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error)

func (o Options) withDefaults() Options {
	o.Codec = o.Protocol.Limits(o.Codec)
	if o.MaxOutput == 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	if o.PauseOutput == 0 {
		o.PauseOutput = DefaultPauseOutput
	}
	if o.HalfClosed == 0 {
		o.HalfClosed = DefaultHalfClosed
	}
	if o.MaxHalfClosed == 0 {
		o.MaxHalfClosed = DefaultMaxHalfClosed
	}
	if o.Linger == 0 {
		o.Linger = DefaultLinger
	}
	return o
}

// ErrClosed is what a server that has stopped says to whoever would use it.
var ErrClosed = errors.New("the server has stopped")

// Server serves connections to one machine.
type Server struct {
	machine   Machine
	opts      Options
	intercept Intercept
	quit      chan struct{} // closed when no more connections are taken

	mu         sync.Mutex
	state      state
	listeners  map[*net.Listener]bool // one that is no pointer may not be comparable
	conns      map[*Conn]bool
	empty      sync.Cond // no connections are left
	halfClosed []*Conn   // those that linger, the first first
	lastID     uint64
	dirty      []*Conn // connections that this turn has sent to
	work       int     // messages that passed in this turn
	frame      codec.Frame
	sent       codec.Frame // for watching our own messages
	msg        codec.Message
	scratch    []byte

	timer   *time.Timer
	armed   time.Time // what timer is set to
	delayed []delayed // by time
}

type state uint8

const (
	running  state = iota
	draining       // takes no more connections, serves the ones it has
	stopped
)

// delayed is something a fault has put off.
type delayed struct {
	at time.Time
	do func()
}

// New returns a server that serves the machine.
func New(m Machine, o Options) *Server {
	s := &Server{
		machine:   m,
		opts:      o.withDefaults(),
		quit:      make(chan struct{}),
		listeners: map[*net.Listener]bool{},
		conns:     map[*Conn]bool{},
	}
	s.intercept = o.Intercept
	s.empty.L = &s.mu
	return s
}

// Serve serves the connections that l accepts. It returns when ctx ends, when
// Close is called or when the machine stops the server, with nil and after
// every connection has ended; or when l fails, with its error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	if s.state != running {
		s.mu.Unlock()
		l.Close()
		return ErrClosed
	}
	s.listeners[&l] = true
	s.mu.Unlock()
	defer context.AfterFunc(ctx, func() { s.stop(false) })()

	err := s.accept(l)
	if err != nil {
		s.stop(false)
	}
	s.mu.Lock()
	delete(s.listeners, &l)
	s.mu.Unlock()
	l.Close()
	s.wait()
	return err
}

// accept starts a goroutine for every connection until the server stops.
func (s *Server) accept(l net.Listener) error {
	var backoff time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			backoff = 0
			if c := s.open(nc); c != nil {
				go c.run()
			}
			continue
		}
		select {
		case <-s.quit:
			return nil
		default:
		}
		// Running out of descriptors passes; the connections that exist go on,
		// but for those that may be nobody's any more.
		var t interface{ Temporary() bool }
		if !errors.As(err, &t) || !t.Temporary() {
			return err
		}
		s.giveUp()
		backoff = min(max(2*backoff, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(backoff):
		case <-s.quit:
			return nil
		}
	}
}

// giveUp ends the first of the connections that linger, if any do.
func (s *Server) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.halfClosed {
		if !c.closing {
			c.end(false)
			return
		}
	}
}

// ServeConn serves one connection and returns when it has ended, or when ctx
// does.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	if c := s.open(nc); c != nil {
		defer context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			c.end(false)
		})()
		c.run()
	}
}

// Close stops the server and returns when every connection has ended.
func (s *Server) Close() {
	s.stop(false)
	s.wait()
}

func (s *Server) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.conns) > 0 {
		s.empty.Wait()
	}
	if s.state != running {
		s.state = stopped
		s.disarm()
	}
}

func (s *Server) stop(graceful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt(graceful)
}

// halt closes the listeners and, unless it is graceful, ends every connection.
// The caller holds the lock.
func (s *Server) halt(graceful bool) {
	if s.state == running {
		close(s.quit)
		s.state = draining
	}
	for l := range s.listeners {
		(*l).Close()
	}
	if graceful {
		return
	}
	s.state = stopped
	s.disarm()
	for c := range s.conns {
		c.end(false)
		c.hurry()
	}
}

// open takes a connection in, or closes it if the server no longer does.
func (s *Server) open(nc net.Conn) *Conn {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.state != running {
		s.mu.Unlock()
		nc.Close()
		return nil
	}
	s.lastID++
	c.id = s.lastID
	s.conns[c] = true
	s.machine.Open(c)
	c.flushing = s.release(c.flushing)
	return c
}

// later puts something off. The caller holds the lock.
func (s *Server) later(d time.Duration, do func()) {
	at := time.Now().Add(d)
	i := len(s.delayed)
	for i > 0 && s.delayed[i-1].at.After(at) {
		i--
	}
	s.delayed = append(s.delayed, delayed{})
	copy(s.delayed[i+1:], s.delayed[i:])
	s.delayed[i] = delayed{at, do}
}

// arm sets the timer to the earliest thing that is due.
func (s *Server) arm() {
	next := s.machine.Next()
	if len(s.delayed) > 0 && (next.IsZero() || s.delayed[0].at.Before(next)) {
		next = s.delayed[0].at
	}
	switch {
	case next.Equal(s.armed) || s.state == stopped:
		return
	case next.IsZero():
		s.timer.Stop()
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Until(next), s.tick)
	default:
		s.timer.Reset(time.Until(next))
	}
	s.armed = next
}

func (s *Server) disarm() {
	s.delayed = nil
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *Server) tick() {
	s.mu.Lock()
	if s.state == stopped {
		s.mu.Unlock()
		return
	}
	s.armed = time.Time{}
	now := time.Now()
	for len(s.delayed) > 0 && !s.delayed[0].at.After(now) {
		do := s.delayed[0].do
		s.delayed = s.delayed[1:]
		do()
	}
	if next := s.machine.Next(); !next.IsZero() && !next.After(now) {
		s.machine.Tick(now)
	}
	s.release(nil)
}

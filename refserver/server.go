// Package refserver runs the reference server of a protocol: it accepts connections, decodes messages, passes them to
// the protocol's [Machine], and writes the replies of the machine.
//
//	srv := refserver.New(machine, refserver.Options{Protocol: gearman.Protocol})
//	err := srv.Serve(ctx, listener)
//
// One lock guards the machine. The goroutine of a connection locks it once per read, handles all complete messages that
// have arrived, and unlocks it. Output is written after other connections that are ready have been handled, too, so
// that each connection gets one write for all of them. Writes never block the handling of messages: if a peer does not
// read, a separate goroutine writes to it, within the limits in [Options].
//
// [Options].Intercept changes messages to inject faults, and [Options].Trace observes every message. When neither is
// set, messages are not decoded a second time.
package refserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"jobwire/codec"
)

// Machine is the state of a protocol's server. The server calls its methods under a lock; they must not block. Frames
// and their arguments are valid only during the call.
type Machine interface {
	// Open is called for each new connection.
	Open(c *Conn)
	// Handle handles a legal message.
	Handle(c *Conn, f *codec.Frame)
	// Reject handles an illegal message; e is the violation. If e is fatal or Options.Strict is set, the server closes c
	// afterwards.
	Reject(c *Conn, f *codec.Frame, e *codec.Error)
	// HalfClosed is called when the peer has closed its direction. It reports whether the machine still has replies for
	// the peer; if not, the server closes c.
	HalfClosed(c *Conn) (stay bool)
	// Close is called when c has ended. Sending to c has no effect from then on.
	Close(c *Conn)
	// Next returns the time at which Tick must be called, or the zero time if no timer is set.
	Next() time.Time
	// Tick handles the timers that have expired at now.
	Tick(now time.Time)
}

// Limits that apply where Options has a zero: bytes, times and a number of connections.
const (
	DefaultMaxOutput     = 128 << 20
	DefaultPauseOutput   = 1 << 20
	DefaultHalfClosed    = 5 * time.Second
	DefaultMaxHalfClosed = 100
	DefaultLinger        = 2 * time.Second
)

// Options are the settings of a server. Only Protocol must be set.
type Options struct {
	Protocol *codec.Protocol
	Codec    codec.Options
	Strict   bool // close a connection after its first illegal message

	// MaxOutput is the maximum number of bytes pending for one connection. The server closes a connection when a message
	// would exceed it, unless at most PauseOutput bytes are pending: one large message does not mean that the peer reads
	// slowly. 0: DefaultMaxOutput.
	MaxOutput int

	// PauseOutput is the number of bytes pending for a connection above which the server stops reading from it, until at
	// most half as many are pending. 0: DefaultPauseOutput.
	PauseOutput int

	// HalfClosed is how long the server keeps a connection that the peer has half-closed, and for which the machine has
	// replies, while nothing can be written to it. A limit is necessary because the server cannot distinguish a
	// half-closed connection from a closed one. The connection may be kept up to twice as long. 0: DefaultHalfClosed;
	// negative: half-closed connections are closed at once.
	HalfClosed time.Duration

	// MaxHalfClosed is the maximum number of half-closed connections that are kept. When there are more, or when the
	// process runs out of file descriptors, the server closes the one that was half-closed first. 0: DefaultMaxHalfClosed.
	MaxHalfClosed int

	// Linger is how long the server waits for the peer of a closing connection to read any of the pending output, and then
	// to stop sending. When the server stops, it is the limit for all of the output. 0: DefaultLinger.
	Linger time.Duration

	Intercept Intercept // may be nil

	// Wrap replaces each connection. nil: no change.
	Wrap  func(net.Conn) net.Conn
	Trace Trace // may be nil
}

// Trace is called for every message received or sent. It must not keep f or raw. If the message is illegal, err is the
// violation, and f has the fields that could be decoded.
type Trace func(c *Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error)

// withDefaults returns the options with the defaults in place of those that are 0.
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

// ErrClosed is returned by [Server.Serve] if the server has stopped or is stopping.
var ErrClosed = errors.New("the server has stopped")

// Server serves the connections to one machine.
type Server struct {
	machine   Machine
	opts      Options
	intercept Intercept
	quit      chan struct{} // closed when no more connections are accepted

	mu         sync.Mutex
	state      state
	listeners  map[*net.Listener]bool // pointers, because a listener may not be comparable
	conns      map[*Conn]bool
	empty      sync.Cond // signaled when no connections are left
	halfClosed []*Conn   // kept by linger, in the order in which they were half-closed
	lastID     uint64
	dirty      []*Conn // connections with new output
	work       int     // messages handled and sent in this turn
	frame      codec.Frame
	sent       codec.Frame // for decoding the server's own messages
	msg        codec.Message
	scratch    []byte

	timer   *time.Timer
	armed   time.Time // the time that timer is set to
	delayed []delayed // in the order of their times
}

type state uint8

const (
	running  state = iota
	draining       // accepts no more connections, serves the existing ones
	stopped
)

// delayed is an action that a fault has postponed.
type delayed struct {
	at time.Time
	do func()
}

// New returns a server for the machine m.
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

// Serve serves the connections that l accepts, and closes l. When ctx is canceled, Close is called or the machine stops
// the server, Serve returns nil after all connections have ended. It returns the error of l if l fails, and ErrClosed
// if the server had already stopped.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	if s.state != running {
		s.mu.Unlock()
		l.Close()
		return ErrClosed
	}
	s.listeners[&l] = true
	s.mu.Unlock()
	defer context.AfterFunc(ctx, func() { s.stop() })()

	err := s.accept(l)
	if err != nil {
		s.stop()
	}
	s.mu.Lock()
	delete(s.listeners, &l)
	s.mu.Unlock()
	l.Close()
	s.wait()
	return err
}

// accept accepts connections and starts a goroutine for each, until the server stops or l fails.
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
		// A temporary error usually means that there are no file descriptors left. Existing connections are kept, except one
		// half-closed connection, whose peer may not exist anymore.
		var t interface{ Temporary() bool }
		if !errors.As(err, &t) || !t.Temporary() {
			return err
		}
		s.dropOldestHalfClosed()
		backoff = min(max(2*backoff, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(backoff):
		case <-s.quit:
			return nil
		}
	}
}

// dropOldestHalfClosed ends the connection that was half-closed first, if there is one.
func (s *Server) dropOldestHalfClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.halfClosed {
		if !c.closing {
			c.endNow()
			return
		}
	}
}

// ServeConn serves one connection and returns when it has ended. When ctx is canceled, it ends the connection. If the
// server has stopped, it closes nc at once.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	if c := s.open(nc); c != nil {
		defer context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			c.endNow()
		})()
		c.run()
	}
}

// Close stops the server, ends all connections, and returns when they have ended.
func (s *Server) Close() {
	s.stop()
	s.wait()
}

// wait waits until all connections have ended. If the server is stopping, it then stops the timer, and the state
// becomes stopped.
func (s *Server) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.conns) > 0 {
		s.empty.Wait()
	}
	if s.state != running {
		s.state = stopped
		s.stopTimers()
	}
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
}

// drain closes the listeners, so that no more connections are accepted. The caller must have locked s.mu.
func (s *Server) drain() {
	if s.state == running {
		close(s.quit)
		s.state = draining
	}
	for l := range s.listeners {
		(*l).Close()
	}
}

// halt closes the listeners and ends all connections. Peers that do not read delay this at most by Linger. The caller
// must have locked s.mu.
func (s *Server) halt() {
	s.drain()
	s.state = stopped
	s.stopTimers()
	for c := range s.conns {
		c.endNow()
		c.setWriteDeadline()
	}
}

// open registers a connection. If the server is not running, it closes nc and returns nil.
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

// later schedules do to be called after d, under the lock. The caller must have locked s.mu.
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

// arm sets the timer to the earliest time that the machine or a delayed action requires.
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

// stopTimers stops the timer and discards the delayed actions.
func (s *Server) stopTimers() {
	s.delayed = nil
	if s.timer != nil {
		s.timer.Stop()
	}
}

// tick runs when the server's timer expires: it performs the delayed actions whose time has come, and calls the
// machine's Tick if the machine needs it.
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

package play

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Through performs a script in which a program plays one of the actors: whatever
// connects to ln is relayed to the server, on as many connections as the program likes, and
// what both say is held against the actor's steps. All other actors are performed as
// [Peers] does. The actor's "closes" is that the last of its connections has ended.
//
// With Bytewise the relay passes on what comes byte by byte, in both directions.
func Through(ctx context.Context, s *transcript.Script, dial Dialer, program string, ln net.Listener, o Options) *Result {
	p := newPerformer(s, codec.Peer, o)
	p.connect = p.dialer(dial)
	actor := transcript.Actor{Name: program, Role: s.Protocol.RoleNamed(program)}
	ctx, cancel := context.WithCancel(ctx)
	r := &relay{
		actor:    actor,
		protocol: s.Protocol,
		opts:     o,
		dial:     func() (net.Conn, error) { return dial(ctx, actor) },
		conns:    map[net.Conn]bool{},
		first:    make(chan struct{}),
		wake:     p.wake,
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r.accept(ln)
	}()
	p.links = append(p.links, &link{actor: actor, relay: r, done: gone, loose: p.script.Protocol.NewSession(loosely(o.Codec))})
	r.stop = func() {
		cancel()
		interrupt(ln, gone)
		r.hangUp()
	}
	result := p.run(ctx)
	r.pumps.Wait()
	return result
}

// partingTime is how long the ends of a relay may take for what is on its way to them when the
// performance is over.
const partingTime = time.Second

// interrupt makes a listener's Accept return, and waits until gone is closed. A listener without
// deadlines is closed, as nothing else ends its Accept.
func interrupt(ln net.Listener, gone <-chan struct{}) {
	d, ok := ln.(interface{ SetDeadline(time.Time) error })
	if !ok {
		ln.Close()
		<-gone
		return
	}
	d.SetDeadline(time.Unix(1, 0))
	<-gone
	d.SetDeadline(time.Time{})
}

// relay stands between a program and the server. It passes on what they say and keeps
// it for the performer.
type relay struct {
	actor    transcript.Actor
	protocol *codec.Protocol
	opts     Options
	dial     func() (net.Conn, error)
	stop     func()
	wake     chan<- struct{}
	pumps    sync.WaitGroup
	first    chan struct{} // closed when the program has connected for the first time
	booted   bool          // it was waited for

	mu     sync.Mutex
	heard  [2][]overheard // by who said it, in the order of their coming
	unread int            // bytes in heard
	conns  map[net.Conn]bool
	open   int  // connections of the program
	met    bool // it has connected since it was last seen to be gone
	over   bool // hung up
}

// overheard is a message that was passed on, or bytes that are none.
type overheard struct {
	outcome
	frame codec.Frame
}

// accept relays connections until ln is interrupted.
func (r *relay) accept(ln net.Listener) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		far, err := r.dial()
		if err != nil || !r.admit(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		r.pumps.Go(func() { r.serve(near, far) })
	}
}

func (r *relay) admit(near, far net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.conns[near], r.conns[far] = true, true
	r.open++
	r.met = true
	select {
	case <-r.first:
	default:
		close(r.first)
	}
	return true
}

// boot waits, once, for the program to connect for the first time: what it takes to start is
// no time of the protocol's. It reports whether it has waited.
func (r *relay) boot(ctx context.Context) bool {
	if r.booted {
		return false
	}
	r.booted = true
	t := time.NewTimer(r.opts.Boot)
	defer t.Stop()
	select {
	case <-r.first:
	case <-r.opts.Left:
	case <-t.C:
	case <-ctx.Done():
	}
	return true
}

// serve relays one connection to its end.
func (r *relay) serve(near, far net.Conn) {
	e := &ear{relay: r, streams: codec.Streams(r.protocol.NewSession(r.opts.Codec))}
	var wg sync.WaitGroup
	wg.Go(func() { r.pump(e, codec.Peer, near, far) })
	wg.Go(func() { r.pump(e, codec.Server, far, near) })
	wg.Wait()
	near.Close()
	far.Close()
	r.mu.Lock()
	delete(r.conns, near)
	delete(r.conns, far)
	r.open--
	r.mu.Unlock()
	r.tell()
}

// pump passes on what one side says until it ends its direction.
func (r *relay) pump(e *ear, from codec.Side, src, dst net.Conn) {
	write := func(b []byte) error { _, err := dst.Write(b); return err }
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if e.hear(from, buf[:n]) {
				r.tell()
			}
			failed := error(nil)
			if r.opts.Segments == Bytewise {
				failed = bytewise(buf[:n], write)
			} else {
				failed = write(buf[:n])
			}
			if failed != nil {
				src.Close()
				return
			}
		}
		if err != nil {
			if hc, ok := dst.(interface{ CloseWrite() error }); ok {
				hc.CloseWrite()
			} else {
				dst.Close()
			}
			return
		}
	}
}

func (r *relay) tell() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next returns the first message that one side has sent, without consuming it.
func (r *relay) next(from codec.Side, f *codec.Frame) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.heard[from]) > 0:
		*f = r.heard[from][0].frame
		return r.heard[from][0].outcome
	case r.met && r.open == 0:
		return outcome{kind: ended, at: time.Now()}
	}
	return outcome{kind: waiting}
}

func (r *relay) consume(from codec.Side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.heard[from]) > 0 {
		r.unread -= len(r.heard[from][0].frame.Raw)
		r.heard[from] = r.heard[from][1:]
	}
}

// parted notes that the program was seen to have gone. It may come back.
func (r *relay) parted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met = r.open > 0
}

// hangUp ends all connections, for good. What was heard is passed on to its end first, as the
// performer may have seen a message of which the program has yet to get the last bytes.
func (r *relay) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for c := range r.conns {
		c.SetReadDeadline(time.Unix(1, 0))
		c.SetWriteDeadline(time.Now().Add(partingTime))
	}
}

// ear makes messages of what passes on one connection.
type ear struct {
	*relay
	streams [2]codec.Stream
}

// hear takes in bytes, and reports whether they made a message. A flood is cut off.
func (e *ear) hear(from codec.Side, b []byte) (any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var f codec.Frame
	for p := range e.streams[from].Feed(b, &f) {
		switch p.Found {
		case codec.Skipped:
			continue
		case codec.Whole:
			e.keep(from, overheard{outcome{kind: message, at: time.Now(), size: len(p.Raw)}, f.Clone()})
		case codec.Illegal:
			f.Raw = p.Raw
			e.keep(from, overheard{outcome{kind: broken, at: time.Now(), size: len(p.Raw), err: p.Err}, f.Clone()})
		}
		any = true
	}
	return any
}

func (e *ear) keep(from codec.Side, o overheard) {
	o.frame.From = from
	e.heard[from] = append(e.heard[from], o)
	if e.unread += len(o.frame.Raw); e.unread > maxUnread {
		e.over = true
		for c := range e.conns {
			c.Close()
		}
	}
}

// rest returns what was said and never asked for, up to a bound.
func (r *relay) rest(bound int) (said []codec.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range slices.Concat(r.heard[codec.Peer], r.heard[codec.Server]) {
		if len(said) < bound && o.kind == message {
			said = append(said, o.frame)
		}
	}
	return said
}

package play

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/transport"
)

// Proxy runs a script in which a program plays one of the actors. It relays each connection to ln over a connection of
// its own to the server, and compares the messages of both sides with the steps of the actor. The program may use
// several connections. The other actors are played as by [Peers]. For the actor, "closes" means that its last
// connection has ended.
//
// With Bytewise, the relay forwards the bytes one by one, in both directions.
func Proxy(ctx context.Context, s *transcript.Script, dial Dialer, program string, ln net.Listener, o Options) *Result {
	p := newPerformer(s, codec.Peer, o)
	p.connect = p.dialer(dial)
	actor := transcript.Actor{Name: program, Role: s.Protocol.RoleNamed(program)}
	open, cancel := context.WithCancel(ctx)
	r := &relay{protocol: s.Protocol, opts: o, cancel: cancel, first: make(chan struct{}), wake: p.wake}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		connect := func(ctx context.Context) (net.Conn, error) { return dial(ctx, actor) }
		new(transport.Relay).Serve(open, staysOpen{ln}, connect, r.serve)
	}()
	p.conns = append(p.conns, &conn{actor: actor, relay: r, done: gone,
		nonStrict: p.script.Protocol.NewSession(nonStrict(o.Codec))})
	r.stop = func() {
		cancel()
		interrupt(ln, gone)
	}
	return p.run(ctx)
}

// staysOpen is a listener that a relay does not close.
type staysOpen struct{ net.Listener }

func (staysOpen) Close() error { return nil }

// interrupt makes Accept of a listener return, and waits until gone is closed.
func interrupt(ln net.Listener, gone <-chan struct{}) {
	d := ln.(interface{ SetDeadline(time.Time) error })
	d.SetDeadline(time.Unix(1, 0))
	<-gone
	d.SetDeadline(time.Time{})
}

// maxCaptured limits the messages, in bytes, that no step has consumed yet. If a program and the server send more,
// their connections are closed.
const maxCaptured = 128 << 20

// relay forwards the bytes between a program and the server, and keeps the messages for the performer.
type relay struct {
	protocol *codec.Protocol
	opts     Options
	cancel   func() // ends all connections
	stop     func() // ends all connections, and waits for that
	wake     chan<- struct{}
	first    chan struct{} // closed after the first connection of the program
	awaited  bool          // awaitProgram was called

	mu        sync.Mutex
	captured  [2][]captured // messages by sender, in the order of arrival
	unread    int           // bytes of the messages in captured
	open      int           // connections of the program
	connected bool          // the program has connected since the last end of its connections that a step has accepted
}

// captured is a captured message, or captured bytes that are not a message.
type captured struct {
	outcome
	frame codec.Frame
}

// awaitProgram waits for the first connection of the program, so that its startup time does not count for the step. It
// waits only once, and reports whether it has waited.
func (r *relay) awaitProgram(ctx context.Context) bool {
	if r.awaited {
		return false
	}
	r.awaited = true
	t := time.NewTimer(r.opts.StartupTimeout)
	defer t.Stop()
	select {
	case <-r.first:
	case <-r.opts.Exited:
	case <-t.C:
	case <-ctx.Done():
	}
	return true
}

// serve relays one connection until both directions have ended.
func (r *relay) serve(near, far net.Conn) {
	r.mu.Lock()
	r.open++
	r.connected = true
	select {
	case <-r.first:
	default:
		close(r.first)
	}
	r.mu.Unlock()
	e := &tap{relay: r, streams: codec.Streams(r.protocol.NewSession(r.opts.Codec))}
	var wg sync.WaitGroup
	wg.Go(func() { r.pump(e, codec.Peer, near, far) })
	wg.Go(func() { r.pump(e, codec.Server, far, near) })
	wg.Wait()
	r.mu.Lock()
	r.open--
	r.mu.Unlock()
	r.notify()
}

// pump forwards the bytes of one side until this side ends its direction.
func (r *relay) pump(e *tap, from codec.Side, src, dst net.Conn) {
	write := func(b []byte) error { _, err := dst.Write(b); return err }
	transport.Forward(dst, src, func(b []byte) error {
		if e.add(from, b) {
			r.notify()
		}
		if r.opts.Segments == Bytewise {
			return bytewise(b, write)
		}
		return write(b)
	})
}

func (r *relay) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next returns the first unconsumed message of one side, without consuming it.
func (r *relay) next(from codec.Side, f *codec.Frame) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.captured[from]) > 0:
		*f = r.captured[from][0].frame
		return r.captured[from][0].outcome
	case r.connected && r.open == 0:
		return outcome{kind: ended, at: time.Now()}
	}
	return outcome{kind: waiting}
}

func (r *relay) consume(from codec.Side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.captured[from]) > 0 {
		r.unread -= len(r.captured[from][0].frame.Raw)
		r.captured[from] = r.captured[from][1:]
	}
}

// disconnected records that a step has accepted the end of the program's connections. The program may connect again.
func (r *relay) disconnected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = r.open > 0
}

// tap decodes the messages on one connection.
type tap struct {
	*relay
	streams [2]codec.Stream
}

// add decodes bytes, and reports whether they completed a message. If too many messages are pending, it closes the
// connections.
func (t *tap) add(from codec.Side, b []byte) (any bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f codec.Frame
	for p := range t.streams[from].Feed(b, &f) {
		switch p.Found {
		case codec.Skipped:
			continue
		case codec.Whole:
			t.store(from, captured{outcome{kind: message, at: time.Now(), size: len(p.Raw)}, f.Clone()})
		case codec.Illegal:
			f.Raw = p.Raw
			t.store(from, captured{outcome{kind: broken, at: time.Now(), size: len(p.Raw), err: p.Err}, f.Clone()})
		}
		any = true
	}
	return any
}

func (t *tap) store(from codec.Side, o captured) {
	o.frame.From = from
	t.captured[from] = append(t.captured[from], o)
	if t.unread += len(o.frame.Raw); t.unread > maxCaptured {
		t.cancel()
	}
}

// unconsumed returns at most bound messages that no step consumed.
func (r *relay) unconsumed(bound int) (said []codec.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range slices.Concat(r.captured[codec.Peer], r.captured[codec.Server]) {
		if len(said) < bound && o.kind == message {
			said = append(said, o.frame)
		}
	}
	return said
}

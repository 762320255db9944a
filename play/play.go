package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/sock"
	"jobwire/internal/transport"
)

// DefaultTimeout is how long an expectation without its own deadline waits.
const DefaultTimeout = 5 * time.Second

// Options are the options of a run.
type Options struct {
	Timeout time.Duration // 0: DefaultTimeout
	Exact   bool          // send and expect handles literally as in the script
	Codec   codec.Options // waived rules, and limits

	// Segments is how sent bytes are divided into writes, each of which TCP is likely to carry in its own segment. If
	// it is Plain, a line @segments of the script selects the segmentation; an unknown name there is ignored.
	Segments Segmentation

	// Actors contains the actors to be played, by name or by role. Steps of other actors are skipped. If it is empty, all
	// actors are played. Server ignores it.
	Actors []string

	// Names contains the initial values of names in the script.
	Names map[string]string

	// Unique, if it is not nil, returns the values of the names that first occur in a message to be sent. nil: UniqueName.
	Unique func(name string) string

	// StartupTimeout is how long a program may take until its first connection, in addition to the time of its first
	// step. Left, if it is not nil, is closed when the program has exited and will not connect any more. Both are used
	// only by Proxy.
	StartupTimeout time.Duration
	Exited         <-chan struct{}

	// Keep is the number of bytes up to which a result keeps messages whole; 0: 32 MiB.
	Keep int

	// Large, if it is not nil, has room for the conversations of several runs that may have large messages at the same
	// time. The others wait.
	Large chan struct{}

	// Settle, if it is not nil, is called after each step, also after one that failed. In virtual time, it waits until the
	// other side has handled the step.
	Settle func()

	// AtSample, if it is not nil, is called before a step that belongs to another sample than the one before it, and after
	// the last step.
	AtSample func(transcript.Sample)

	// AtEnd, if it is not nil, is called after the last step, before the connections are closed, unless a step failed.
	AtEnd func()

	// Accept, if it is not nil, reports whether a step accepts a message that its choices do not accept. The message
	// may be invalid. Names in the step stay without a value.
	Accept func(step int, ev *Event) bool
}

// Segmentation is how the bytes that a side sends are divided into writes. The other side must behave the same in all
// segmentations.
type Segmentation uint8

const (
	Plain     Segmentation = iota // one write per message
	Bytewise                      // one write per byte, except in the middle of long messages
	Coalesced                     // one write for consecutive messages on a connection
)

var segmentations = [...]string{Plain: "plain", Bytewise: "bytewise", Coalesced: "coalesced"}

func (s Segmentation) String() string { return segmentations[s] }

// Joins reports whether clients or workers of a script send consecutive messages. If not, a run with the segmentation
// Coalesced sends the same writes as one with Plain.
func Joins(s *transcript.Script) bool {
	for i := 1; i < len(s.Steps); i++ {
		if peer := s.Steps[i].Peer; sends(&s.Steps[i-1], codec.Peer, peer) && sends(&s.Steps[i], codec.Peer, peer) {
			return true
		}
	}
	return false
}

// sends reports whether a side sends a message in a step, on the connection of the actor.
func sends(st *transcript.Step, side codec.Side, a transcript.Actor) bool {
	return st.From == side && st.Peer == a && st.Choices[0].Verb <= transcript.Raw
}

// SegmentationNamed returns the segmentation with the name. The error for an unknown name lists the known ones.
func SegmentationNamed(name string) (Segmentation, error) {
	i := slices.Index(segmentations[:], name)
	if i < 0 {
		return Plain, fmt.Errorf("unknown segmentation %q: expected %s", name, strings.Join(segmentations[:], ", "))
	}
	return Segmentation(i), nil
}

// Dialer connects on behalf of an actor.
type Dialer func(ctx context.Context, a transcript.Actor) (net.Conn, error)

// Peers plays the clients and workers of a script. Each actor connects at its first step. Peers closes the connections
// before it returns.
func Peers(ctx context.Context, s *transcript.Script, dial Dialer, o Options) *Result {
	p := newPerformer(s, codec.Peer, o)
	p.connect = p.dialer(dial)
	return p.run(ctx)
}

// Server plays the server of a script for the clients and workers that connect to ln. It assigns a connection to the
// actor whose first step matches the first message. It closes connections without an actor at the end. ln must have a
// method SetDeadline, as all listeners of package transport have. It stays open.
func Server(ctx context.Context, s *transcript.Script, ln net.Listener, o Options) *Result {
	o.Actors = nil
	p := newPerformer(s, codec.Server, o)
	accepted := make(chan net.Conn)
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			select {
			case accepted <- c:
			case <-ctx.Done():
				c.Close()
				return
			}
		}
	}()
	p.connect = func(ctx context.Context, a transcript.Actor, st *transcript.Step, deadline time.Time) (*conn, error) {
		return p.await(ctx, a, st, accepted, deadline)
	}
	r := p.run(ctx)
	cancel()
	interrupt(ln, gone)
	return r
}

// performer runs a script for one side.
type performer struct {
	script  *transcript.Script
	side    codec.Side
	opts    Options
	bind    transcript.Bindings
	conns   []*conn // all connections, in the order in which they were opened
	large   *large
	kept    int // bytes of the messages in result
	wake    chan struct{}
	result  Result
	start   time.Time
	since   time.Time // when the previous step ended
	sample  transcript.Sample
	sent    map[*codec.Type]time.Time // when the own side last sent a message of the type
	connect func(context.Context, transcript.Actor, *transcript.Step, time.Time) (*conn, error)
}

// newPerformer returns a performer with defaults in place of the options that are not set. A large script waits here
// until fewer other large conversations run than Options.Large allows.
func newPerformer(s *transcript.Script, side codec.Side, o Options) *performer {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if how, err := SegmentationNamed(s.Value("segments")); err == nil && o.Segments == Plain {
		o.Segments = how
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	place := &large{place: o.Large, got: make(chan struct{})}
	if size(s) > largeFrom {
		place.take(nil)
	}
	now := time.Now()
	p := &performer{script: s, side: side, opts: o, large: place, wake: make(chan struct{}, 1), start: now, since: now,
		sent: map[*codec.Type]time.Time{}}
	for name, value := range o.Names {
		p.bind.Set(name, []byte(value))
	}
	return p
}

// dialer returns a function that connects an actor.
func (p *performer) dialer(dial Dialer) func(context.Context, transcript.Actor, *transcript.Step, time.Time) (*conn,
	error) {
	return func(ctx context.Context, a transcript.Actor, _ *transcript.Step, _ time.Time) (*conn, error) {
		c, err := dial(ctx, a)
		if err != nil {
			return nil, err
		}
		return p.adopt(c), nil
	}
}

// adopt adds a new connection to the performer and starts the goroutine that reads from it.
func (p *performer) adopt(nc net.Conn) *conn {
	cn := newConn(nc, p.script.Protocol, p.opts.Codec, p.wake, p.large)
	p.conns = append(p.conns, cn)
	go func() {
		defer close(cn.done)
		cn.read()
	}()
	return cn
}

// run performs the steps of the actors that the performer plays, up to the first failure, and returns the result.
// Before it returns, it closes all connections and waits for their goroutines.
func (p *performer) run(ctx context.Context) *Result {
	defer func() {
		for _, cn := range p.conns {
			cn.close()
			<-cn.done
		}
		p.large.release()
	}()
	for i := range p.script.Steps {
		st := &p.script.Steps[i]
		if !p.acts(st.Peer) {
			continue
		}
		f := p.release(st)
		p.enter(st.Sample)
		if f == nil {
			f = p.step(ctx, st, i)
		}
		if p.opts.Settle != nil {
			p.opts.Settle()
		}
		if f != nil {
			f.Step, f.Index = st, i
			p.result.Failure = f
			break
		}
		p.since = time.Now()
	}
	p.enter(transcript.Sample{})
	p.release(nil) // an error here is ignored, because no step depends on it
	if p.opts.AtEnd != nil && p.result.Failure == nil {
		p.opts.AtEnd()
	}
	p.recordUnconsumed()
	p.result.Names = p.bind.Names()
	p.result.Took = time.Since(p.start)
	result := p.result // a pointer into p would keep the connections and what they have received
	return &result
}

// enter calls AtSample if another sample begins.
func (p *performer) enter(s transcript.Sample) {
	if p.opts.AtSample != nil && p.sample != s {
		p.opts.AtSample(s)
	}
	p.sample = s
}

func (p *performer) acts(a transcript.Actor) bool {
	if len(p.opts.Actors) == 0 {
		return true
	}
	role := p.script.Protocol.RoleNames(a.Role)
	return slices.ContainsFunc(p.opts.Actors, func(name string) bool { return name == a.Name || name == role })
}

// step performs a step of the own side, or checks one of the other side.
func (p *performer) step(ctx context.Context, st *transcript.Step, index int) *Failure {
	deadline := time.Now().Add(cmp.Or(st.Within, p.opts.Timeout))
	cn := p.conn(st.Peer)
	if cn == nil {
		var err error
		if cn, err = p.connect(ctx, st.Peer, st, deadline); err != nil && p.mayBeRefused(st, index) {
			cn, err = p.refused(), nil
		}
		if err != nil {
			return &Failure{Reason: Unreachable, Err: err, Text: fmt.Sprintf("%s could not connect: %v", st.Peer.Name, err)}
		}
		cn.actor = st.Peer
	}
	if cn.relay != nil && cn.relay.awaitProgram(ctx) {
		deadline = time.Now().Add(cmp.Or(st.Within, p.opts.Timeout))
	}
	if st.From == p.side && cn.relay == nil {
		if st.After > 0 {
			if err := p.pause(ctx, st.After-time.Since(p.since)); err != nil {
				return &Failure{Reason: CannotSend, Err: err,
					Text: fmt.Sprintf("the run ended before the message was sent: %v", err)}
			}
			deadline = deadline.Add(st.After)
		}
		return p.act(cn, st, index, deadline)
	}
	return p.watch(ctx, cn, st, index, deadline)
}

// pause waits for the duration, or until ctx ends.
func (p *performer) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayBeRefused reports whether a refused connection is as good as one that the server closes immediately: the step
// opens the connection, and the actor's next step expects the server to close it.
func (p *performer) mayBeRefused(st *transcript.Step, index int) bool {
	if p.side != codec.Peer || st.Choices[0].Verb != transcript.Opens {
		return false
	}
	for _, next := range p.script.Steps[index+1:] {
		if next.Peer == st.Peer {
			return next.From == codec.Server && slices.ContainsFunc(next.Choices, func(c transcript.Choice) bool { return c.Verb == transcript.Closes })
		}
	}
	return false
}

// refused returns a connection that is already closed by the other side.
func (p *performer) refused() *conn {
	near, far := net.Pipe()
	far.Close()
	return p.adopt(near)
}

// conn returns the actor's open connection, or nil.
func (p *performer) conn(a transcript.Actor) *conn {
	for _, cn := range p.conns {
		if cn.actor == a && !cn.closed {
			return cn
		}
	}
	return nil
}

// act performs a step of the own side.
func (p *performer) act(cn *conn, st *transcript.Step, index int, deadline time.Time) *Failure {
	c := &st.Choices[0]
	ev := Event{Actor: st.Peer, From: p.side, Verb: c.Verb, Step: index}
	if len(st.Choices) > 1 {
		return &Failure{Reason: CannotSend, Text: "a message that jobwire sends cannot have alternatives (\"or\")"}
	}
	var err error
	switch c.Verb {
	case transcript.Send, transcript.Raw:
		var out []byte
		if out, err = p.encode(cn, c); err == nil {
			ev.Frame = cn.sent(p.side, out)
			p.sent[c.Type] = time.Now()
			err = cn.write(out, p.opts.Segments, deadline)
		}
	case transcript.Nothing:
		return &Failure{Reason: CannotSend, Text: fmt.Sprintf("%s: the transcript expects no message (\"nothing for\") from a connection that jobwire itself plays", st.Peer.Name)}
	case transcript.Opens:
	case transcript.Closes:
		cn.close()
	case transcript.HalfCloses:
		err = transport.CloseWrite(cn.net)
	case transcript.Resets:
		if !transport.Reset(cn.net) {
			return unsupported("reset a connection", "a Unix socket has no resets")
		}
		cn.close()
	case transcript.Urgent:
		if _, ok := cn.net.(*net.TCPConn); !ok {
			return unsupported("send urgent data", "only TCP without TLS has urgent data")
		}
		ev.Frame = codec.Frame{From: p.side, Raw: c.Bytes}
		cn.net.SetWriteDeadline(deadline)
		err = sock.WriteUrgent(cn.net, c.Bytes)
	case transcript.StopsReading:
		cn.stopReading()
	}
	if cn.stopped && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil // if this side does not read, the other side may not read either
	}
	p.record(&ev)
	if err != nil {
		f := p.sendFailure(err, cmp.Or(st.Within, p.opts.Timeout))
		f.Event = &ev
		return f
	}
	return nil
}

// unsupported returns the failure of a step that the transport of the connection does not have.
func unsupported(what, why string) *Failure {
	return &Failure{Reason: Unsupported, Text: fmt.Sprintf("cannot %s: %s", what, why)}
}

// release writes the messages that connections have coalesced. A connection keeps its messages if the next step sends
// another message on it.
func (p *performer) release(next *transcript.Step) *Failure {
	for _, cn := range p.conns {
		if len(cn.unsent) == 0 || cn.closed {
			continue
		}
		if next != nil && sends(next, p.side, cn.actor) {
			continue
		}
		if err := cn.flush(time.Now().Add(p.opts.Timeout)); err != nil {
			return p.sendFailure(err, p.opts.Timeout)
		}
	}
	return nil
}

// sendFailure returns the failure for an error of sending. timeout is how long sending was tried.
func (p *performer) sendFailure(err error, timeout time.Duration) *Failure {
	f := &Failure{Reason: CannotSend, Err: err, Text: fmt.Sprintf("cannot send: %v", err)}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f.Waited = timeout
		f.Text = fmt.Sprintf("cannot send: the other side read no data for %v", timeout)
	}
	return f
}

// peerLeft reports whether an error means that the other side has closed the connection.
func peerLeft(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// encode returns the bytes of a message to be sent.
func (p *performer) encode(cn *conn, c *transcript.Choice) ([]byte, error) {
	if c.Verb == transcript.Raw || p.opts.Exact && c.Bytes != nil {
		return c.Bytes, nil
	}
	unique := p.opts.Unique
	if unique == nil {
		unique = UniqueName
	}
	bindUnique(&p.bind, c, func(name string, _ *codec.Field) string { return unique(name) })
	m, err := p.bind.Resolve(c, time.Now(), p.opts.Exact)
	if err != nil {
		return nil, err
	}
	return cn.nonStrict.Append(nil, p.side, &m)
}

// UniqueName returns a value for a name that no other process and no other run uses.
func UniqueName(name string) string {
	return name + "-" + strconv.FormatUint(runID, 36) + "-" + strconv.FormatUint(lastName.Add(1), 36)
}

var (
	runID    = rand.Uint64N(36 * 36 * 36 * 36 * 36)
	lastName atomic.Uint64
)

// bindUnique sets the names that first occur in a message to be sent.
func bindUnique(b *transcript.Bindings, c *transcript.Choice, word func(name string, fd *codec.Field) string) {
	for i, a := range c.Args {
		if a.Kind != transcript.Name {
			continue
		}
		if _, bound := b.Value(a.Name); !bound {
			b.Set(a.Name, []byte(word(a.Name, c.Type.FieldAt(i))))
		}
	}
}

// recordUnconsumed records messages that arrived but that no step consumed. It decodes about maxRecorded bytes, because
// a side that keeps sending may have sent long ones.
func (p *performer) recordUnconsumed() {
	decoded := 0
	for _, cn := range p.conns {
		if cn.relay != nil {
			for _, f := range cn.relay.unconsumed(maxIgnored) {
				p.record(&Event{Actor: cn.actor, From: f.From, Frame: f, Step: -1})
			}
			continue
		}
		for n := 0; n < maxIgnored && decoded < maxRecorded && !cn.closed && cn.actor.Name != ""; n++ {
			out := cn.next(p.side.Other())
			if out.kind != message {
				break
			}
			p.record(&Event{Actor: cn.actor, From: p.side.Other(), Frame: cn.frame, Step: -1})
			decoded += out.size
			cn.consume(out.size)
		}
	}
}

func (p *performer) record(ev *Event) {
	p.keep(ev)
	ev.At = time.Since(p.start)
	p.result.Events = append(p.result.Events, *ev)
}

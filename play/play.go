package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// DefaultTimeout is how long an expectation without a deadline of its own waits.
const DefaultTimeout = 5 * time.Second

// Options are how a performance is given.
type Options struct {
	Timeout time.Duration // 0 is DefaultTimeout
	Exact   bool          // send and expect literal handles as they are written
	Codec   codec.Options // what to be lenient about, and limits

	// Segments is how what is sent is cut into writes, each of which TCP is
	// likely to carry in a segment of its own.
	Segments Segmentation

	// Cast names the actors to be played, by name or by role; the steps of all others are
	// left out. Empty means everybody. It has no meaning for Server.
	Cast []string

	// Watch is told of every event as it happens.
	Watch func(Event)
}

// Segmentation is how the bytes that a side sends are cut into writes. It must
// make no difference to the other side.
type Segmentation uint8

const (
	Plain     Segmentation = iota // a write for each message
	Bytewise                      // a write for each byte, the middle of long messages excepted
	Coalesced                     // one write for messages that follow each other on a connection
)

func (s Segmentation) String() string { return [...]string{"plain", "bytewise", "coalesced"}[s] }

// Dialer connects on behalf of an actor.
type Dialer func(ctx context.Context, a transcript.Actor) (net.Conn, error)

// Peers performs the connecting ends of a script. Each actor connects at its
// first step. The connections are closed when it returns.
func Peers(ctx context.Context, s *transcript.Script, dial Dialer, o Options) *Result {
	p := newPerformer(s, codec.Peer, o)
	p.connect = func(ctx context.Context, a transcript.Actor, _ *transcript.Step, _ time.Time) (*link, error) {
		c, err := dial(ctx, a)
		if err != nil {
			return nil, err
		}
		return p.adopt(c), nil
	}
	return p.run(ctx)
}

// Server performs the server's end of a script for whoever connects to ln. A
// connection is taken for the actor whose first step its first message fits;
// one that the script does not know is closed at the end. ln stays open.
func Server(ctx context.Context, s *transcript.Script, ln net.Listener, o Options) *Result {
	o.Cast = nil
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
	p.connect = func(ctx context.Context, a transcript.Actor, st *transcript.Step, deadline time.Time) (*link, error) {
		return p.await(ctx, a, st, accepted, deadline)
	}
	r := p.run(ctx)
	cancel()
	if d, ok := ln.(interface{ SetDeadline(time.Time) error }); ok {
		d.SetDeadline(time.Unix(1, 0)) // ends Accept, and only that
		<-gone
		d.SetDeadline(time.Time{})
	}
	return r
}

// performer plays one side of a script.
type performer struct {
	script  *transcript.Script
	side    codec.Side
	opts    Options
	bind    transcript.Bindings
	links   []*link // every connection, in the order of their making
	wake    chan struct{}
	result  Result
	start   time.Time
	since   time.Time // when the step before ended
	connect func(context.Context, transcript.Actor, *transcript.Step, time.Time) (*link, error)
}

func newPerformer(s *transcript.Script, side codec.Side, o Options) *performer {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	now := time.Now()
	return &performer{script: s, side: side, opts: o, wake: make(chan struct{}, 1), start: now, since: now}
}

func (p *performer) adopt(c net.Conn) *link {
	l := newLink(c, p.script.Protocol, p.opts.Codec, p.wake)
	p.links = append(p.links, l)
	go func() {
		defer close(l.done)
		l.read()
	}()
	return l
}

func (p *performer) run(ctx context.Context) *Result {
	defer func() {
		for _, l := range p.links {
			l.close()
			<-l.done
		}
	}()
	for i := range p.script.Steps {
		st := &p.script.Steps[i]
		if !p.plays(st.Peer) {
			continue
		}
		f := p.release(st)
		if f == nil {
			f = p.step(ctx, st, i)
		}
		if f != nil {
			f.Step, f.Index = st, i
			p.result.Failure = f
			break
		}
		p.since = time.Now()
	}
	p.release(nil) // what fails now, nobody waits for
	p.leftovers()
	p.result.Took = time.Since(p.start)
	return &p.result
}

func (p *performer) plays(a transcript.Actor) bool {
	if len(p.opts.Cast) == 0 {
		return true
	}
	role := p.script.Protocol.RoleNames(a.Role)
	return slices.ContainsFunc(p.opts.Cast, func(name string) bool { return name == a.Name || name == role })
}

// step performs or watches one step.
func (p *performer) step(ctx context.Context, st *transcript.Step, index int) *Failure {
	deadline := time.Now().Add(cmp.Or(st.Within, p.opts.Timeout))
	l := p.link(st.Peer)
	if l == nil {
		var err error
		if l, err = p.connect(ctx, st.Peer, st, deadline); err != nil && p.mayBeRefused(st, index) {
			l, err = p.refused(), nil
		}
		if err != nil {
			return &Failure{Reason: Unreachable, Err: err, Text: fmt.Sprintf("%s has no connection: %v", st.Peer.Name, err)}
		}
		l.actor = st.Peer
	}
	if st.From == p.side {
		if st.After > 0 {
			if err := p.pause(ctx, st.After-time.Since(p.since)); err != nil {
				return &Failure{Reason: CannotSend, Err: err, Text: fmt.Sprintf("the run ended before its time: %v", err)}
			}
			deadline = deadline.Add(st.After)
		}
		return p.act(l, st, index, deadline)
	}
	return p.watch(ctx, l, st, index, deadline)
}

// pause waits.
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

// mayBeRefused reports whether a connection that cannot be made is as good as one
// that is closed at once: where an actor opens one, and the server's closing it
// is the next that is to happen on it.
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

// refused returns a connection that has ended before it began.
func (p *performer) refused() *link {
	near, far := net.Pipe()
	far.Close()
	return p.adopt(near)
}

// link returns the actor's open connection, or nil.
func (p *performer) link(a transcript.Actor) *link {
	for _, l := range p.links {
		if l.actor == a && !l.closed {
			return l
		}
	}
	return nil
}

// act does what a step of our own side says.
func (p *performer) act(l *link, st *transcript.Step, index int, deadline time.Time) *Failure {
	c := &st.Choices[0]
	ev := Event{Actor: st.Peer, From: p.side, Verb: c.Verb, Step: index}
	if len(st.Choices) > 1 {
		return &Failure{Reason: CannotSend, Text: "a step to be performed cannot have alternatives"}
	}
	var err error
	switch c.Verb {
	case transcript.Send, transcript.Raw:
		var out []byte
		if out, err = p.encode(l, c); err == nil {
			ev.Frame = l.sent(p.side, out)
			err = l.write(out, p.opts.Segments, deadline)
		}
	case transcript.Nothing:
		return &Failure{Reason: CannotSend, Text: fmt.Sprintf("%s is to say nothing, but that is for the end that watches", st.Peer.Name)}
	case transcript.Opens:
	case transcript.Closes:
		l.close()
	case transcript.HalfCloses:
		if hc, ok := l.net.(interface{ CloseWrite() error }); ok {
			err = hc.CloseWrite()
		} else {
			err = fmt.Errorf("a %T cannot be half-closed", l.net)
		}
	case transcript.Resets:
		if tc, ok := l.net.(*net.TCPConn); ok {
			tc.SetLinger(0)
		}
		l.close()
	}
	p.record(&ev)
	if err != nil {
		return &Failure{Reason: CannotSend, Err: err, Event: &ev, Text: fmt.Sprintf("cannot send: %v", err)}
	}
	return nil
}

// release writes what connections have held back to be coalesced. Messages go on
// being held back only while the next step sends more on the same connection.
func (p *performer) release(next *transcript.Step) *Failure {
	for _, l := range p.links {
		if len(l.held) == 0 || l.closed {
			continue
		}
		if next != nil && next.From == p.side && next.Peer == l.actor && next.Choices[0].Verb <= transcript.Raw {
			continue
		}
		if err := l.flush(time.Now().Add(p.opts.Timeout)); err != nil {
			return &Failure{Reason: CannotSend, Err: err, Text: fmt.Sprintf("cannot send: %v", err)}
		}
	}
	return nil
}

// peerLeft reports whether an error means that the other side is gone.
func peerLeft(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// encode returns the bytes of a step to be sent.
func (p *performer) encode(l *link, c *transcript.Choice) ([]byte, error) {
	if c.Verb == transcript.Raw || p.opts.Exact && c.Bytes != nil {
		return c.Bytes, nil
	}
	bindFresh(&p.bind, c, func(name string, _ *codec.Field) string {
		return name + "-" + strconv.FormatUint(runID, 36) + "-" + strconv.FormatUint(lastFresh.Add(1), 36)
	})
	m, err := p.bind.Resolve(c, time.Now(), p.opts.Exact)
	if err != nil {
		return nil, err
	}
	return l.loose.Append(nil, p.side, &m)
}

// runID and lastFresh make words that no other process and no other
// performance uses.
var (
	runID     = rand.Uint64N(36 * 36 * 36 * 36 * 36)
	lastFresh atomic.Uint64
)

// bindFresh binds the names that a message to be sent mentions for the first
// time.
func bindFresh(b *transcript.Bindings, c *transcript.Choice, word func(name string, fd *codec.Field) string) {
	for i, a := range c.Args {
		if a.Kind != transcript.Name {
			continue
		}
		if _, bound := b.Value(a.Name); !bound {
			b.Set(a.Name, []byte(word(a.Name, c.Type.FieldAt(i))))
		}
	}
}

// maxPassed bounds how many messages are recorded that a step passes over, or
// that come when the script is over. A side that floods would fill the memory.
const maxPassed = 100

// watch holds what comes against a step of the other side.
func (p *performer) watch(ctx context.Context, l *link, st *transcript.Step, index int, deadline time.Time) *Failure {
	for i := range st.Choices {
		// Silence among the choices is over sooner than the default deadline.
		if c := &st.Choices[i]; c.Verb == transcript.Nothing && st.Within == 0 {
			deadline = time.Now().Add(c.For)
		}
	}
	for past := 0; ; {
		if c := p.rawFits(l, st); c != nil {
			got := Event{Actor: st.Peer, From: st.From, Verb: transcript.Raw, Step: index, Frame: codec.Frame{From: st.From, Raw: c.Bytes}}
			var f codec.Frame
			l.sess.Decode(st.From, c.Bytes, &f)
			l.consume(len(c.Bytes))
			return p.accept(c, got)
		}
		out := l.next(st.From)
		if out.kind == waiting || out.kind == broken && p.rawMayFit(l, st) {
			if !p.wait(ctx, deadline) {
				return p.silence(ctx, l, st, index)
			}
			continue
		}
		ev := Event{Actor: st.Peer, From: st.From, Step: index, Err: out.err}
		switch out.kind {
		case ended:
			ev.Verb = transcript.Closes
		case reset:
			ev.Verb = transcript.Resets
		case broken:
			ev.Verb, ev.Frame = transcript.Raw, l.frame.Clone()
			if ev.Frame.Raw == nil {
				b, _ := l.peek()
				ev.Frame.Raw = slices.Clone(b[:out.size])
			}
		case message:
			ev.Frame = l.frame.Clone()
		}
		if out.kind == message && slices.Contains(st.Past, l.frame.Type) && p.fitting(st, &ev) == nil {
			l.consume(out.size)
			if past++; past <= maxPassed {
				ev.Step = -1
				p.record(&ev)
			}
			switch late := out.at.After(deadline); {
			case late && p.mayBeSilent(st):
				return p.silence(ctx, l, st, index)
			case late:
				return &Failure{Reason: TimedOut, Waited: cmp.Or(st.Within, p.opts.Timeout), Text: fmt.Sprintf("only what may be passed over came within %v, %d messages", cmp.Or(st.Within, p.opts.Timeout), past)}
			}
			continue
		}
		var diff *transcript.Mismatch
		for i := range st.Choices {
			c := &st.Choices[i]
			d, ok := p.fits(c, &ev)
			if !ok && out.kind == broken {
				ok = p.fitsUnchecked(l, c, &ev)
			}
			if !ok {
				if d != nil && (diff == nil || diff.Arg < 0 && d.Arg >= 0) {
					diff = d // the first of its type says most
				}
				continue
			}
			if early := st.After - out.at.Sub(p.since); early > 0 && st.After > 0 {
				p.record(&ev)
				return &Failure{Reason: TooEarly, Event: &ev, Waited: st.After, Text: fmt.Sprintf("it came %v after the step before, not to be earlier than %v", out.at.Sub(p.since).Round(time.Millisecond), st.After)}
			}
			if out.kind == message || out.kind == broken {
				l.consume(out.size)
			} else if c.Verb == transcript.Closes || c.Verb == transcript.Resets {
				l.close() // the actor connects anew if it acts again
			}
			return p.accept(c, ev)
		}
		p.record(&ev)
		if out.size > 0 {
			l.consume(out.size)
		}
		return p.differs(st, &ev, diff)
	}
}

// fits reports whether an event is what a choice asks for; if not, and both are
// messages, it says what differs.
func (p *performer) fits(c *transcript.Choice, ev *Event) (*transcript.Mismatch, bool) {
	switch c.Verb {
	case transcript.Send:
		if ev.Verb != transcript.Send {
			return nil, false
		}
		d := p.bind.Match(c, &ev.Frame, time.Now(), p.opts.Exact)
		return d, d == nil
	case transcript.Closes, transcript.HalfCloses:
		return nil, ev.Verb == transcript.Closes || ev.Verb == transcript.Resets
	case transcript.Resets:
		return nil, ev.Verb == transcript.Resets
	case transcript.Opens:
		return nil, true
	}
	return nil, false
}

// fitsUnchecked reports whether a message that breaks rules is what a choice asks for
// that does not judge it.
func (p *performer) fitsUnchecked(l *link, c *transcript.Choice, ev *Event) bool {
	var f codec.Frame
	if c.Verb != transcript.Send || !c.Unchecked {
		return false
	}
	n, err := l.loose.Decode(ev.From, ev.Frame.Raw, &f)
	return err == nil && n == len(ev.Frame.Raw) && p.bind.Match(c, &f, time.Now(), p.opts.Exact) == nil
}

// fitting returns the first choice that names the event's type, whatever its
// arguments.
func (p *performer) fitting(st *transcript.Step, ev *Event) *transcript.Choice {
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Send && c.Type == ev.Frame.Type {
			return c
		}
	}
	return nil
}

// rawFits returns the raw choice whose bytes have all arrived, if there is one.
func (p *performer) rawFits(l *link, st *transcript.Step) *transcript.Choice {
	b, _ := l.peek()
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Raw && len(b) >= len(c.Bytes) && string(b[:len(c.Bytes)]) == string(c.Bytes) {
			return c
		}
	}
	return nil
}

// rawMayFit reports whether what has arrived may become a raw choice.
func (p *performer) rawMayFit(l *link, st *transcript.Step) bool {
	b, more := l.peek()
	return more && slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Raw && len(b) < len(c.Bytes) && strings.HasPrefix(string(c.Bytes), string(b))
	})
}

// silence judges a deadline that has passed.
func (p *performer) silence(ctx context.Context, l *link, st *transcript.Step, index int) *Failure {
	if err := ctx.Err(); err != nil {
		return &Failure{Reason: TimedOut, Err: err, Text: fmt.Sprintf("the run ended while waiting: %v", err)}
	}
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Nothing {
			return p.accept(c, Event{Actor: st.Peer, From: st.From, Verb: transcript.Nothing, For: c.For, Step: index})
		}
	}
	text := fmt.Sprintf("nothing came within %v", cmp.Or(st.Within, p.opts.Timeout))
	var ev *Event
	if b, _ := l.peek(); len(b) > 0 {
		ev = &Event{Actor: st.Peer, From: st.From, Verb: transcript.Raw, Step: index, Frame: codec.Frame{From: st.From, Raw: slices.Clone(b)}}
		p.record(ev)
		text = fmt.Sprintf("the message is still incomplete after %v: %d bytes came", cmp.Or(st.Within, p.opts.Timeout), len(b))
	}
	return &Failure{Reason: TimedOut, Event: ev, Waited: cmp.Or(st.Within, p.opts.Timeout), Text: text}
}

// accept takes an event for a step.
func (p *performer) accept(c *transcript.Choice, ev Event) *Failure {
	p.record(&ev)
	p.result.Grade = max(p.result.Grade, c.Grade)
	return nil
}

// mayBeSilent reports whether silence is one of a step's choices.
func (p *performer) mayBeSilent(st *transcript.Step) bool {
	return slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return c.Verb == transcript.Nothing })
}

// differs builds the failure of an event that no choice asks for.
func (p *performer) differs(st *transcript.Step, ev *Event, diff *transcript.Mismatch) *Failure {
	f := &Failure{Reason: Mismatched, Event: ev, Diff: diff}
	switch {
	case ev.Err != nil:
		f.Reason, f.Err, f.Text = Broken, ev.Err, "what came breaks a rule: "+ev.Err.Error()
	case ev.Verb == transcript.Closes:
		f.Reason, f.Text = Ended, "the connection was closed"
	case ev.Verb == transcript.Resets:
		f.Reason, f.Text = Ended, "the connection was reset"
	case diff != nil:
		f.Text = diff.String()
	default:
		f.Text = fmt.Sprintf("%s came", ev.Frame.Type.Name)
	}
	return f
}

// wait returns true when something may have arrived, false at the deadline.
func (p *performer) wait(ctx context.Context, deadline time.Time) bool {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-p.wake:
		return true
	case <-t.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// await finds the connection of an actor that connects to us.
func (p *performer) await(ctx context.Context, a transcript.Actor, st *transcript.Step, accepted <-chan net.Conn, deadline time.Time) (*link, error) {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	for {
		var second *link // of the right type, if nothing better comes
		for _, l := range p.links {
			if l.actor.Name != "" || l.closed {
				continue
			}
			out := l.next(st.From)
			ev := Event{Verb: transcript.Send, Frame: l.frame}
			switch {
			case st.From == p.side, st.Choices[0].Verb != transcript.Send:
				return l, nil
			case out.kind != message || p.fitting(st, &ev) == nil:
			case slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return p.bind.Fits(&c, &l.frame, time.Now(), p.opts.Exact) }):
				return l, nil
			case second == nil:
				second = l
			}
		}
		select {
		case c := <-accepted:
			p.adopt(c)
		case <-p.wake:
		case <-t.C:
			if second != nil {
				return second, nil
			}
			return nil, fmt.Errorf("nobody connected that begins as %s does", a.Name)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// leftovers records what has arrived by the end and was never asked for.
func (p *performer) leftovers() {
	for _, l := range p.links {
		for n := 0; n < maxPassed && !l.closed && l.actor.Name != ""; n++ {
			out := l.next(p.side.Other())
			if out.kind != message {
				break
			}
			p.record(&Event{Actor: l.actor, From: p.side.Other(), Frame: l.frame.Clone(), Step: -1})
			l.consume(out.size)
		}
	}
}

func (p *performer) record(ev *Event) {
	ev.At = time.Since(p.start)
	p.result.Events = append(p.result.Events, *ev)
	if p.opts.Watch != nil {
		p.opts.Watch(*ev)
	}
}

package play

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// maxIgnored limits how many messages are recorded that a step ignores, or that arrive after the last step. Otherwise a
// side that keeps sending would fill the memory.
const maxIgnored = 100

// watch compares what is received with a step of the other side.
func (p *performer) watch(ctx context.Context, cn *conn, st *transcript.Step, index int, deadline time.Time) *Failure {
	since, of := p.since, "the previous message"
	if st.Since != nil {
		since, of = p.sent[st.Since], st.Since.Name
	}
	if since.IsZero() {
		return &Failure{Reason: CannotSend, Text: fmt.Sprintf("the transcript measures a time from %s and does not send it before", of)}
	}
	for i := range st.Choices {
		// A choice that expects silence ends before the default deadline.
		if c := &st.Choices[i]; c.Verb == transcript.Nothing && st.Within == 0 {
			deadline = time.Now().Add(c.For)
		}
	}
	cn.expect(st)
	for past := 0; ; {
		out := cn.next(st.From)
		b, more := cn.peek() // after next, so that it contains at least the bytes that next has decoded
		if c := rawFits(b, st); c != nil {
			got := Event{Actor: st.Peer, From: st.From, Verb: transcript.Raw, Step: index,
				Frame: codec.Frame{From: st.From, Raw: c.Bytes}}
			if out.kind == waiting { // the session has not seen these bytes
				var f codec.Frame
				cn.sess.Decode(st.From, c.Bytes, &f)
			}
			cn.consume(len(c.Bytes))
			return p.accept(c, got)
		}
		if p.undecided(cn, st, out, more && rawMayFit(b, st)) {
			if !p.wait(ctx, deadline) {
				return p.deadlinePassed(ctx, cn, st, index, past)
			}
			continue
		}
		ev := cn.event(out)
		ev.Actor, ev.From, ev.Step = st.Peer, st.From, index
		if out.kind == message && p.ignores(st, &ev) {
			cn.consume(out.size)
			if past++; past <= maxIgnored {
				ev.Step = -1
				p.record(&ev)
			}
			if !out.at.After(deadline) {
				continue
			}
			if p.mayBeSilent(st) {
				return p.deadlinePassed(ctx, cn, st, index, past)
			}
			return &Failure{Reason: TimedOut, Waited: cmp.Or(st.Within, p.opts.Timeout), Text: p.timeoutText(st, past)}
		}
		took := out.at.Sub(since)
		c, diff := p.choose(cn, st, &ev)
		if c == nil {
			p.record(&ev)
			if out.size > 0 {
				cn.consume(out.size)
				if p.opts.Accept != nil && p.opts.Accept(index, &ev) {
					return nil
				}
			}
			f := p.differs(st, &ev, diff)
			if st.Until > 0 && took > st.Until && f.Reason == Mismatched {
				f.Reason = TooLate
				f.Text = fmt.Sprintf("the message arrived %v after %s, but a wrong message proves a fault only within %v: %s",
					took.Round(time.Millisecond), of, st.Until, f.Text)
			}
			return f
		}
		if st.After > 0 && took < st.After {
			p.record(&ev)
			return &Failure{Reason: TooEarly, Event: &ev, Waited: st.After,
				Text: fmt.Sprintf("expected the message at least %v after %s, got it after %v", st.After, of,
					took.Round(time.Millisecond))}
		}
		if out.kind == message || out.kind == broken {
			cn.consume(out.size)
		} else if c.Verb == transcript.Closes || c.Verb == transcript.Resets {
			cn.disconnected()
		}
		return p.accept(c, ev)
	}
}

// undecided reports whether more must arrive before an outcome can be compared with a step. rawMayFit reports whether
// further bytes may complete one of the step's raw choices, which can comprise several messages or a part of one.
func (p *performer) undecided(cn *conn, st *transcript.Step, out outcome, rawMayFit bool) bool {
	switch out.kind {
	case waiting:
		return true
	case broken:
		return rawMayFit
	case message:
		if !rawMayFit {
			return false
		}
		ev := cn.event(out)
		c, _ := p.choose(cn, st, &ev)
		return c == nil
	case ended:
		return cn.mayReturn(st)
	}
	return false
}

// event returns the event of an outcome. Its frame shares the memory of cn.frame.
func (cn *conn) event(out outcome) Event {
	ev := Event{Err: out.err}
	switch out.kind {
	case ended:
		ev.Verb = transcript.Closes
	case reset:
		ev.Verb = transcript.Resets
	case broken:
		ev.Verb, ev.Frame = transcript.Raw, cn.frame
		if ev.Frame.Raw == nil {
			b, _ := cn.peek()
			ev.Frame.Raw = b[:min(out.size, out.err.Offset+maxRecorded)]
		}
	case message:
		ev.Frame = cn.frame // record copies it
	}
	return ev
}

// choose returns the first choice that an event matches, or what differs from the choice of its type.
func (p *performer) choose(cn *conn, st *transcript.Step, ev *Event) (*transcript.Choice, *transcript.Mismatch) {
	var diff *transcript.Mismatch
	for i := range st.Choices {
		c := &st.Choices[i]
		d, ok := p.fits(cn, c, ev)
		if ok {
			return c, nil
		}
		if d != nil && (diff == nil || diff.Arg < 0 && d.Arg >= 0) {
			diff = d // the difference from the first choice of this type is the most informative
		}
	}
	return nil, diff
}

// expect makes the session decode the replies that a step expects to a message of no known type. Otherwise such a
// reply would violate the rule that a reply is one of those of its request.
func (cn *conn) expect(st *transcript.Step) {
	e, ok := cn.sess.(codec.Expecter)
	if !ok || cn.head.kind != waiting {
		return
	}
	var types []*codec.Type
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Send {
			types = append(types, c.Type)
		}
	}
	e.Expect(types...)
}

// fits reports whether an event matches a choice. If not, and both are messages, it returns what differs.
func (p *performer) fits(cn *conn, c *transcript.Choice, ev *Event) (*transcript.Mismatch, bool) {
	switch c.Verb {
	case transcript.Send:
		if ev.Verb == transcript.Raw {
			return nil, c.Unchecked && p.fitsUnchecked(cn, c, ev)
		}
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

// fitsUnchecked reports whether a message that violates rules matches a choice that does not check rules.
func (p *performer) fitsUnchecked(cn *conn, c *transcript.Choice, ev *Event) bool {
	var f codec.Frame
	n, err := cn.nonStrict.Decode(ev.From, ev.Frame.Raw, &f)
	return err == nil && n == len(ev.Frame.Raw) && p.bind.Match(c, &f, time.Now(), p.opts.Exact) == nil
}

// fitting returns the first choice with the type of the event, whatever its arguments.
func (p *performer) fitting(st *transcript.Step, ev *Event) *transcript.Choice {
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Send && c.Type == ev.Frame.Type {
			return c
		}
	}
	return nil
}

// ignores reports whether the step ignores a message: the step ignores messages of this type, and no choice expects
// one. A choice of grade transcript.NonStrict expects only messages with its own arguments.
func (p *performer) ignores(st *transcript.Step, ev *Event) bool {
	return slices.Contains(st.Ignored, ev.Frame.Type) && !slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Send && c.Type == ev.Frame.Type &&
			(c.Grade != transcript.NonStrict || p.bind.Fits(&c, &ev.Frame, time.Now(), p.opts.Exact))
	})
}

// timeoutText returns the text for a step whose time is over. past is the number of ignored messages.
func (p *performer) timeoutText(st *transcript.Step, past int) string {
	within := cmp.Or(st.Within, p.opts.Timeout)
	if past == 0 {
		return fmt.Sprintf("expected %s, got nothing within %v", wanted(st), within)
	}
	return fmt.Sprintf("expected %s within %v, got only messages that the transcript says to ignore (\"past\"): %d",
		wanted(st), within, past)
}

// rawFits returns the raw choice with which the received bytes begin, if there is one.
func rawFits(b []byte, st *transcript.Step) *transcript.Choice {
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Raw && bytes.HasPrefix(b, c.Bytes) {
			return c
		}
	}
	return nil
}

// rawMayFit reports whether the received bytes are the beginning of a raw choice.
func rawMayFit(b []byte, st *transcript.Step) bool {
	return slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Raw && bytes.HasPrefix(c.Bytes, b)
	})
}

// deadlinePassed handles a deadline that has passed. past is the number of ignored messages.
func (p *performer) deadlinePassed(ctx context.Context, cn *conn, st *transcript.Step, index, past int) *Failure {
	if err := ctx.Err(); err != nil {
		return &Failure{Reason: TimedOut, Err: err, Text: fmt.Sprintf("the run ended while waiting for a message: %v", err)}
	}
	for i := range st.Choices {
		if c := &st.Choices[i]; c.Verb == transcript.Nothing {
			return p.accept(c, Event{Actor: st.Peer, From: st.From, Verb: transcript.Nothing, For: c.For, Step: index})
		}
	}
	text := p.timeoutText(st, past)
	var ev *Event
	if b, _ := cn.peek(); len(b) > 0 {
		ev = &Event{Actor: st.Peer, From: st.From, Verb: transcript.Raw, Step: index,
			Frame: codec.Frame{From: st.From, Raw: b}}
		p.record(ev)
		text = fmt.Sprintf("expected %s, got an incomplete message of %d bytes after %v", wanted(st), len(b),
			cmp.Or(st.Within, p.opts.Timeout))
	}
	return &Failure{Reason: TimedOut, Event: ev, Waited: cmp.Or(st.Within, p.opts.Timeout), Text: text}
}

// accept records an event that matches a choice of its step.
func (p *performer) accept(c *transcript.Choice, ev Event) *Failure {
	p.record(&ev)
	p.result.Grade = max(p.result.Grade, c.Grade)
	if c.Grade != transcript.Strict && p.result.Accepted == nil {
		p.result.Accepted = &Accepted{&p.script.Steps[ev.Step], c}
	}
	return nil
}

// mayBeSilent reports whether silence is one of a step's choices.
func (p *performer) mayBeSilent(st *transcript.Step) bool {
	return slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return c.Verb == transcript.Nothing })
}

// differs returns the failure for an event that matches no choice.
func (p *performer) differs(st *transcript.Step, ev *Event, diff *transcript.Mismatch) *Failure {
	f := &Failure{Reason: Mismatched, Event: ev, Diff: diff}
	switch {
	case ev.Err != nil:
		f.Reason, f.Err, f.Text = Broken, ev.Err, "the received message is invalid: "+ev.Err.Error()
	case ev.Verb == transcript.Closes:
		f.Reason, f.Text = Ended, fmt.Sprintf("expected %s, got the end of the connection", wanted(st))
	case ev.Verb == transcript.Resets:
		f.Reason, f.Text = Ended, fmt.Sprintf("expected %s, got a connection reset", wanted(st))
	case diff != nil:
		f.Text = diff.String()
	default:
		f.Text = fmt.Sprintf("expected %s, got %s", wanted(st), ev.Frame.Type.Label())
	}
	return f
}

// wanted describes what a step expects, as in "JOB_CREATED or ERROR".
func wanted(st *transcript.Step) string {
	var all []string
	for i := range st.Choices {
		all = append(all, name(&st.Choices[i]))
	}
	return strings.Join(all, " or ")
}

// wait returns true when something may have arrived, and false at the deadline or the end of ctx.
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

// await returns the connection of an actor that connects to the server. It waits until a connection arrives whose first
// message matches the step.
func (p *performer) await(ctx context.Context, a transcript.Actor, st *transcript.Step, accepted <-chan net.Conn,
	deadline time.Time) (*conn, error) {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	for {
		var second *conn // matches only the type of the message; used if no connection matches better
		for _, cn := range p.conns {
			if cn.actor.Name != "" || cn.closed {
				continue
			}
			out := cn.next(st.From)
			ev := Event{Verb: transcript.Send, Frame: cn.frame}
			switch {
			case st.From == p.side, st.Choices[0].Verb != transcript.Send:
				return cn, nil
			case out.kind != message || p.fitting(st, &ev) == nil:
			case slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return p.bind.Fits(&c, &cn.frame, time.Now(), p.opts.Exact) }):
				return cn, nil
			case second == nil:
				second = cn
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
			return nil, fmt.Errorf("no new connection began with the first message of %s", a.Name)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

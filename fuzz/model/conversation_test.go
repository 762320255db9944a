package model

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Wire carries conversations to a server.
type Wire interface {
	Open(conn int) error
	Send(conn int, b []byte) error
	Close(conn int) // and returns when the server has noticed, if that can be known

	// Receive returns what has come for any connection; b is nil when the server has
	// closed it. It waits no longer than patience; conn is -1 then.
	Receive(patience time.Duration) (conn int, b []byte)

	// Exact reports whether all that a server does of a message has come once Receive
	// finds nothing, without sentinels.
	Exact() bool
	Wait(d time.Duration) // lets time pass
}

// Talk performs a conversation and holds it against a model.
type Talk struct {
	d     *Diction
	wire  Wire
	model Model
	peers [maxPeers]*talker
	known map[string][][]byte // values that the server chose, by the field's name
	names map[string]string   // what the transcript calls them
	Steps []transcript.Step   // what has happened

	// Patience is how long a server that is not exact is given for what is due.
	Patience time.Duration
	last     time.Time
	frame    codec.Frame
}

const maxPeers = 8

// tick is the step in which a conversation waits.
const tick = 250 * time.Millisecond

type talker struct {
	session codec.Session
	in      []byte
	next    *codec.Frame // sent already, but to be told when what was sent before it is answered
	known   map[string][][]byte
}

// NewTalk returns a conversation that has not begun.
func NewTalk(d *Diction, w Wire, m Model) *Talk {
	return &Talk{d: d, wire: w, model: m, known: map[string][][]byte{}, names: map[string]string{}, last: time.Now(), Patience: 2 * time.Second}
}

// Do makes a move and returns what is wrong with what followed: a *Complaint, or an
// error of the wire.
func (t *Talk) Do(mv Move) error {
	if t.model.Tainted() && !t.wire.Exact() && !t.d.always {
		return nil // nothing proves any more what has come of what
	}
	start := time.Now()
	err := t.do(mv)
	var c *Complaint
	if t.wire.Exact() || mv.Deed == Wait || time.Since(start) < Slack/2 || errors.As(err, &c) && c.Law == missing {
		return err
	}
	// On so busy a machine nobody can tell when the server did what it did, by the clock.
	t.model.Garbled(nobody)
	if c != nil {
		return nil
	}
	return err
}

// nobody is a connection that there is not.
const nobody = -1

func (t *Talk) do(mv Move) error {
	t.elapse()
	conn := int(mv.Conn)
	switch mv.Deed {
	case Wait:
		d := t.d.waits[int(mv.Args[0])%len(t.d.waits)]
		// In steps shorter than timers are, so that what they do is seen one by one.
		for range d / tick {
			t.wire.Wait(tick)
			t.note(transcript.Step{Peer: t.actor(0), From: codec.Peer, After: tick})
			t.elapse()
			if err := t.settle(-1); err != nil {
				return err
			}
		}
		return nil
	case Leave:
		if t.peers[conn] == nil {
			return nil
		}
		t.note(transcript.Step{Peer: t.actor(conn), From: codec.Peer, Choices: []transcript.Choice{{Verb: transcript.Closes}}})
		t.peers[conn] = nil
		t.model.Closed(conn)
		t.wire.Close(conn)
	case Say:
		if t.model.Blocked(conn) {
			return nil
		}
		m := t.message(mv)
		if m.Type == nil {
			return nil
		}
		if err := t.say(conn, m, true); err != nil {
			return err
		}
	}
	return t.settle(conn)
}

func (t *Talk) elapse() {
	now := time.Now()
	t.model.Elapsed(now.Sub(t.last))
	t.last = now
}

func (t *Talk) note(st transcript.Step) { t.Steps = append(t.Steps, st) }

func (t *Talk) actor(conn int) transcript.Actor {
	name := t.d.actors[conn%len(t.d.actors)]
	role, _, _ := strings.Cut(name, " ")
	return transcript.Actor{Name: name, Role: t.d.p.RoleNamed(role)}
}

func (t *Talk) open(conn int) error {
	if t.peers[conn] != nil {
		return nil
	}
	if err := t.wire.Open(conn); err != nil {
		return err
	}
	t.peers[conn] = &talker{session: t.d.p.NewSession(t.d.options), known: map[string][][]byte{}}
	t.model.Opened(conn)
	return nil
}

// say sends a message. One that its row does not allow is not sent.
func (t *Talk) say(conn int, m codec.Message, note bool) error {
	if err := t.open(conn); err != nil {
		return err
	}
	p := t.peers[conn]
	// By sessions of its own: that of the connection must see requests in the order in which they
	// are sent, each once.
	raw, err := t.d.p.NewSession(t.d.options).Append(nil, codec.Peer, &m)
	if err != nil {
		return nil
	}
	if n, err := t.d.p.NewSession(t.d.options).Decode(codec.Peer, raw, &t.frame); err != nil || n != len(raw) {
		return fmt.Errorf("the message %q was written and cannot be read back: %w", raw, err)
	}
	if note {
		t.note(t.step(conn, &t.frame))
	}
	if t.wire.Exact() || !t.d.blocks[m.Type.Name] {
		p.session.Append(nil, codec.Peer, &m)
		t.model.Sent(conn, &t.frame)
		return t.wire.Send(conn, raw)
	}
	// Nothing proves that the server has read a request that blocks, unless it comes
	// in one piece with another that is answered.
	f := t.frame.Clone()
	p.next = &f
	first, err := p.session.Append(nil, codec.Peer, t.sentinelMessage())
	if err != nil {
		return err
	}
	p.session.Append(nil, codec.Peer, &m)
	if _, err := t.d.p.NewSession(t.d.options).Decode(codec.Peer, first, &t.frame); err != nil {
		return err
	}
	t.model.Sent(conn, &t.frame)
	return t.wire.Send(conn, append(first, raw...))
}

// learn keeps the values that the server chose.
func (t *Talk) learn(conn int, f *codec.Frame) {
	for i := range f.Spans {
		fd := f.Spans[i].Field
		if !fd.Assigned {
			continue
		}
		v := f.Value(i)
		own := t.peers[conn].known
		if !holds(t.known[fd.Name], v) {
			t.known[fd.Name] = append(t.known[fd.Name], bytes.Clone(v))
			if len(v) > 0 {
				t.names[fd.Name+string(v)] = fmt.Sprintf("%s%d", t.d.named, len(t.names)+1)
			}
		}
		if t.d.gives[f.Type.Name] && !holds(own[fd.Name], v) {
			own[fd.Name] = append(own[fd.Name], bytes.Clone(v))
		}
	}
}

func holds(all [][]byte, v []byte) bool {
	return slices.ContainsFunc(all, func(a []byte) bool { return bytes.Equal(a, v) })
}

// settle reads all that follows from the last move.
func (t *Talk) settle(conn int) error {
	if t.wire.Exact() {
		for {
			c, b := t.wire.Receive(0)
			if c < 0 {
				t.elapse()
				return t.model.Settled()
			}
			if err := t.received(c, b); err != nil {
				return err
			}
		}
	}
	if err := t.sentinel(conn); err != nil {
		return err
	}
	if err := t.await(); err != nil {
		return err
	}
	for c := range t.peers {
		if c != conn {
			if err := t.sentinel(c); err != nil {
				return err
			}
		}
	}
	return t.await()
}

func (t *Talk) sentinel(conn int) error {
	if conn < 0 || t.peers[conn] == nil || t.model.Blocked(conn) || t.model.Tainted() && !t.d.always {
		return nil
	}
	if t.peers[conn].next != nil {
		return nil
	}
	return t.say(conn, *t.sentinelMessage(), false)
}

func (t *Talk) sentinelMessage() *codec.Message {
	m := &codec.Message{Type: t.d.p.TypeNamed(t.d.sentinel[0])}
	for _, a := range t.d.sentinel[1:] {
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// await reads until nothing is due.
func (t *Talk) await() error {
	end := time.Now().Add(t.Patience)
	for {
		t.elapse()
		due := t.model.Settled()
		if due == nil {
			// What has come meanwhile is judged too.
			if conn, b := t.wire.Receive(0); conn >= 0 {
				if err := t.received(conn, b); err != nil {
					return err
				}
				continue
			}
			return nil
		}
		left := time.Until(end)
		if left <= 0 {
			return due
		}
		conn, b := t.wire.Receive(min(left, 50*time.Millisecond))
		if conn < 0 {
			continue
		}
		if err := t.received(conn, b); err != nil {
			return err
		}
	}
}

// received reads messages out of what came.
func (t *Talk) received(conn int, b []byte) error {
	p := t.peers[conn]
	if p == nil {
		return nil
	}
	t.elapse() // it may have been long in coming
	if b == nil {
		t.peers[conn] = nil
		t.note(transcript.Step{Peer: t.actor(conn), From: codec.Server, Choices: []transcript.Choice{{Verb: transcript.Closes}}})
		err := t.model.Gone(conn)
		t.wire.Close(conn)
		return err
	}
	p.in = append(p.in, b...)
	for len(p.in) > 0 {
		n, err := p.session.Decode(codec.Server, p.in, &t.frame)
		if err == codec.ErrShort {
			return nil
		}
		var e *codec.Error
		if errors.As(err, &e) {
			t.note(transcript.Step{Peer: t.actor(conn), From: codec.Server, Choices: []transcript.Choice{{Verb: transcript.Raw, Bytes: bytes.Clone(p.in)}}})
			return &Complaint{Conn: conn, Rule: e.Rule, Law: "broken rule", Text: fmt.Sprintf("%v, in %.80q", e, p.in)}
		}
		t.learn(conn, &t.frame)
		if !t.isSentinel(&t.frame) {
			t.note(t.step(conn, &t.frame))
		}
		if err := t.model.Received(conn, &t.frame); err != nil {
			return err
		}
		p.in = p.in[n:]
		if f := p.next; f != nil {
			p.next = nil
			t.model.Sent(conn, f)
		}
	}
	return nil
}

// isSentinel reports whether a message answers one, so that a transcript need not have it.
func (t *Talk) isSentinel(f *codec.Frame) bool {
	if t.wire.Exact() || f.Type.Name != t.d.answer {
		return false
	}
	return len(t.d.mark) == 0 || string(f.Arg(0)) == t.d.mark
}

// End leaves on all connections.
func (t *Talk) End() {
	for c, p := range t.peers {
		if p != nil {
			t.wire.Close(c)
		}
	}
}

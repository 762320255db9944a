package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/watch"
	"jobwire/play"
)

// scripter writes a finding as a transcript.
type scripter struct {
	p        *codec.Protocol
	d        *dialect
	fd       *Finding
	right    *Record // of a server without the fault, or nil
	short    bool    // where the right reply is waited for, nobody is asked whether he is there
	exact    bool    // and all of its values are due
	past     bool    // what came before that does not count is passed over where the fault shows
	thorough bool    // wait for what each step leads to before the next
	full     bool    // all that the server says is written
	leaves   bool    // everybody leaves before the server is asked how it is
	met      bool    // somebody else has used the server before
	script   *transcript.Script
	roles    []codec.Role
	names    map[int]string // by the ID of a step: what the server chose behind it is called
	bound    map[int]bool
	called   map[string]string // by the field and the value of the server's choice
	held     []transcript.Step // of the server's, where messages go ahead of replies
	shown    bool              // where the fault shows, the right reply stands
	after    time.Duration
}

func (w *scripter) write() *transcript.Script {
	fd := w.fd
	w.script = &transcript.Script{Protocol: w.p, File: fd.Name + ".wire"}
	w.names, w.bound, w.called = map[int]string{}, map[int]bool{}, map[string]string{}
	w.cast()
	for i := range fd.Conv.Steps {
		for _, a := range fd.Conv.Steps[i].Args {
			if a.Of > 0 && w.chose(a.Of) != nil {
				w.names[a.Of] = fmt.Sprintf("v%d", a.Of)
			}
		}
	}
	witness := transcript.Actor{Name: w.p.RoleNames(1) + " 9", Role: 1}
	v := fd.Fault
	if v.Oracle == Disturbed || w.met {
		w.ask(witness, true)
	}
	for i := range fd.Conv.Steps {
		w.step(i)
	}
	switch v.Oracle {
	case HangConn, Framing, Disclosure, Law:
		switch {
		case v.Conn < 0 || v.Conn >= len(w.roles) || w.left(v.Conn):
		case w.short && w.shown:
		case w.waits(v):
			w.add(w.actor(v.Conn), codec.Server, transcript.Choice{Verb: transcript.Nothing, For: 500 * time.Millisecond}, false)
		default:
			w.ask(w.actor(v.Conn), v.Oracle == HangConn || v.Oracle == Framing || w.past)
		}
	default:
		for conn := range w.roles {
			if w.leaves && !w.left(conn) {
				w.add(w.actor(conn), codec.Peer, transcript.Choice{Verb: transcript.Resets}, false)
			}
		}
		if watched[v.Oracle] == "" {
			w.after = max(w.after, toNotice) // to die takes a while
		}
		w.ask(witness, true)
	}
	w.release()
	w.meta()
	out := text(w.script)
	if _, err := transcript.Parse(w.p, fd.Name, out); err != nil {
		w.script.Meta = nil
		return nil
	}
	return w.script
}

// waits reports whether a server without the fault has nothing to say where the fault shows: a
// request waits there.
func (w *scripter) waits(v *Fault) bool {
	if v.Oracle != Law || w.right == nil {
		return false
	}
	for i := range w.right.Events {
		if e := &w.right.Events[i]; e.Conn == v.Conn && e.From == codec.Server && e.Step >= v.Step {
			return false
		}
	}
	return true
}

// watched is what whoever plays a finding has to watch to see it.
var watched = map[string]string{Processor: watch.Processor, Memory: watch.Memory, Descriptors: watch.Descriptors}

// meta lets the transcript be a case of conform.
func (w *scripter) meta() {
	rule := w.p.Rule(w.fd.Fault.Rule)
	if rule == nil && w.fd.Record != nil {
		for i := range w.fd.Record.Events {
			if e := &w.fd.Record.Events[i]; e.From == codec.Peer && e.Err != nil {
				rule = w.p.Rule(e.Err.Rule)
			}
		}
	}
	if rule == nil {
		rule = &w.p.Rules[0]
	}
	about := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, w.fd.Fault.Text)), " ")
	for _, m := range [][2]string{{"case", "fuzz." + strings.TrimPrefix(w.fd.Name, w.p.Name+"-")}, {"about", about}, {"section", rule.Section}, {"rules", string(rule.ID)}, {"watch", watched[w.fd.Fault.Oracle]}, {"segments", w.segments()}} {
		if m[1] != "" {
			w.script.Meta = append(w.script.Meta, transcript.Meta{Key: m[0], Value: m[1]})
		}
	}
}

// segments says how the messages have to be sent, or "" where that does not count.
func (w *scripter) segments() string {
	if w.fd.Conv.Ahead {
		return play.Coalesced.String()
	}
	return ""
}

// cast gives each connection the role that allows most of what it says.
func (w *scripter) cast() {
	w.roles = make([]codec.Role, w.fd.Conv.conns())
	for conn := range w.roles {
		best := -1
		for i := range w.p.Roles {
			n := 0
			for k := range w.fd.Conv.Steps {
				if s := &w.fd.Conv.Steps[k]; s.Conn == conn && s.Type != nil && s.Type.Req&(1<<i) != 0 {
					n++
				}
			}
			if n > best {
				best = n
				w.roles[conn] = 1 << i
			}
		}
	}
}

func (w *scripter) actor(conn int) transcript.Actor {
	name := w.p.RoleNames(w.roles[conn])
	n := 1
	for k := range conn {
		if w.roles[k] == w.roles[conn] {
			n++
		}
	}
	if n > 1 {
		name += fmt.Sprintf(" %d", n)
	}
	return transcript.Actor{Name: name, Role: w.roles[conn]}
}

// left reports whether a connection cannot be asked any more.
func (w *scripter) left(conn int) bool {
	for i := range w.fd.Conv.Steps {
		if s := &w.fd.Conv.Steps[i]; s.Conn == conn && (s.Verb == transcript.Closes || s.Verb == transcript.Resets || s.Verb == transcript.HalfCloses) {
			return true
		}
	}
	return false
}

// chose returns the first message that the server sent behind a step with a value of its
// choice.
func (w *scripter) chose(id int) *Event {
	r := w.right
	if r == nil {
		r = w.fd.Record
	}
	if r == nil {
		return nil
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.From != codec.Server || e.Sentinel || e.Step < 0 || e.Step >= len(w.fd.Conv.Steps) || w.fd.Conv.Steps[e.Step].ID != id {
			continue
		}
		for k := range e.Args {
			if assignedField(e.Type, k) != nil {
				return e
			}
		}
	}
	return nil
}

func (w *scripter) add(a transcript.Actor, from codec.Side, c transcript.Choice, past bool) {
	st := transcript.Step{Peer: a, From: from, Choices: []transcript.Choice{c}}
	if from == codec.Peer {
		st.After, w.after = w.after, 0
	} else if past {
		st.Past = w.p.Sent(codec.Server, a.Role)
	}
	if from == codec.Server && w.fd.Conv.Ahead {
		w.held = append(w.held, st)
		return
	}
	w.script.Steps = append(w.script.Steps, st)
}

// release writes what the server has to say to messages that have gone together.
func (w *scripter) release() {
	w.script.Steps = append(w.script.Steps, w.held...)
	w.held = nil
}

// waitsFor reports whether a step needs a value from what has still to be written.
func (w *scripter) waitsFor(s *Step) bool {
	for i := range w.held {
		for _, a := range w.held[i].Choices[0].Args {
			for k := range s.Args {
				if a.Kind == transcript.Name && w.nameOf(s, k) == a.Name {
					return true
				}
			}
		}
	}
	return false
}

// ask has an actor say what must be answered. Where all values are due, they are those with which the
// server without the fault has answered him last.
func (w *scripter) ask(a transcript.Actor, past bool) {
	w.release()
	nonce := []byte("there")
	t := w.p.TypeNamed(w.d.sentinel)
	c := transcript.Choice{Type: t, Unchecked: t.Req&a.Role == 0}
	for _, v := range w.d.sentinelArgs(nonce) {
		c.Args = append(c.Args, transcript.Arg{Value: v})
	}
	w.add(a, codec.Peer, c, false)
	t = w.p.TypeNamed(w.d.reply)
	r := transcript.Choice{Type: t, Unchecked: t.Res&a.Role == 0}
	right := w.answered(a)
	for i := 0; argField(t, i) != nil && i < len(t.Fields); i++ {
		arg := transcript.Arg{Kind: transcript.Any}
		if w.d.nonced {
			arg = transcript.Arg{Value: nonce}
		} else if w.exact && i < len(right) {
			arg = transcript.Arg{Value: right[i]}
		}
		r.Args = append(r.Args, arg)
	}
	w.add(a, codec.Server, r, past)
}

// answered returns the values of the last reply to an actor's sentinels of the server without the
// fault, if there is one.
func (w *scripter) answered(a transcript.Actor) [][]byte {
	if w.right == nil {
		return nil
	}
	var raw []byte
	for i := range w.right.Events {
		if e := &w.right.Events[i]; e.Sentinel && e.From == codec.Server && e.Conn < len(w.roles) && w.actor(e.Conn) == a {
			raw = e.Raw
		}
	}
	sess := w.p.NewSession(codec.Options{})
	m := codec.Message{Type: w.p.TypeNamed(w.d.sentinel), Args: w.d.sentinelArgs(nil)}
	var f codec.Frame
	_, err := sess.Append(nil, codec.Peer, &m) // what a reply is depends on the request
	if err == nil {
		_, err = sess.Decode(codec.Server, raw, &f)
	}
	if err != nil {
		return nil
	}
	f.Message(&m)
	return m.Args
}

// step writes a step, and what came behind it as far as that counts.
func (w *scripter) step(i int) {
	s := &w.fd.Conv.Steps[i]
	if s.Verb == transcript.Nothing {
		w.after += s.For
		return
	}
	a := w.actor(s.Conn)
	c := transcript.Choice{Verb: s.Verb, Bytes: s.Bytes}
	if s.Verb == transcript.Send {
		c = w.message(s)
	}
	if s.Verb == transcript.Opens && w.acted(a) {
		return
	}
	if (s.Verb == transcript.Closes || s.Verb == transcript.HalfCloses || s.Verb == transcript.Resets) && !w.acted(a) {
		return
	}
	if !w.fd.Conv.follows(i) || w.waitsFor(s) {
		w.release()
	}
	w.add(a, codec.Peer, c, false)
	if slices.Contains(goings, s.Verb) {
		w.after = toNotice
	}
	w.replies(i)
}

// toNotice is how long a server may take to see that somebody has left, or others that it has.
const toNotice = 100 * time.Millisecond

func (w *scripter) acted(a transcript.Actor) bool {
	for i := range w.script.Steps {
		if w.script.Steps[i].Peer == a {
			return true
		}
	}
	return false
}

// nameOf returns what a value of the server's is called that a step sends back, or "".
func (w *scripter) nameOf(s *Step, i int) string {
	arg := &s.Args[i]
	if w.bound[arg.Of] {
		return w.names[arg.Of]
	}
	if f := assignedField(s.Type, i); f != nil {
		return w.called[f.Name+string(arg.Value)] // a guess that is right
	}
	return ""
}

func (w *scripter) message(s *Step) transcript.Choice {
	c := transcript.Choice{Type: s.Type, CRLF: s.CRLF}
	m := codec.Message{Type: s.Type, CRLF: s.CRLF}
	for i, arg := range s.Args {
		if name := w.nameOf(s, i); name != "" {
			c.Args = append(c.Args, transcript.Arg{Kind: transcript.Name, Name: name})
			m.Args = append(m.Args, []byte("1"))
			continue
		}
		c.Args = append(c.Args, transcript.Arg{Value: arg.Value})
		m.Args = append(m.Args, arg.Value)
	}
	_, err := w.p.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
	c.Unchecked = err != nil || s.Type.Req&w.roles[s.Conn] == 0
	return c
}

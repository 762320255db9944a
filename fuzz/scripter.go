package fuzz

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/watch"
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
	script   *transcript.Script
	roles    []codec.Role
	names    map[int]string // by the ID of a step: what the server chose behind it is called
	bound    map[int]bool
	called   map[string]string // by the field and the value of the server's choice
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
	if v.Oracle == Disturbed {
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
			w.after += 100 * time.Millisecond // to die takes a while
		}
		w.ask(witness, true)
	}
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
	for _, m := range [][2]string{{"case", "fuzz." + strings.TrimPrefix(w.fd.Name, w.p.Name+"-")}, {"about", about}, {"section", rule.Section}, {"rules", string(rule.ID)}, {"watch", watched[w.fd.Fault.Oracle]}} {
		if m[1] != "" {
			w.script.Meta = append(w.script.Meta, transcript.Meta{Key: m[0], Value: m[1]})
		}
	}
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
	w.script.Steps = append(w.script.Steps, st)
}

// ask has an actor say what must be answered.
func (w *scripter) ask(a transcript.Actor, past bool) {
	nonce := []byte("there")
	t := w.p.TypeNamed(w.d.sentinel)
	c := transcript.Choice{Type: t, Unchecked: t.Req&a.Role == 0}
	for _, v := range w.d.sentinelArgs(nonce) {
		c.Args = append(c.Args, transcript.Arg{Value: v})
	}
	w.add(a, codec.Peer, c, false)
	t = w.p.TypeNamed(w.d.reply)
	r := transcript.Choice{Type: t, Unchecked: t.Res&a.Role == 0}
	for i := 0; argField(t, i) != nil && i < len(t.Fields); i++ {
		arg := transcript.Arg{Kind: transcript.Any}
		if w.d.nonced {
			arg = transcript.Arg{Value: nonce}
		}
		r.Args = append(r.Args, arg)
	}
	w.add(a, codec.Server, r, past)
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
	w.add(a, codec.Peer, c, false)
	w.replies(i)
}

func (w *scripter) acted(a transcript.Actor) bool {
	for i := range w.script.Steps {
		if w.script.Steps[i].Peer == a {
			return true
		}
	}
	return false
}

func (w *scripter) message(s *Step) transcript.Choice {
	c := transcript.Choice{Type: s.Type, CRLF: s.CRLF}
	m := codec.Message{Type: s.Type, CRLF: s.CRLF}
	for _, arg := range s.Args {
		if name := w.names[arg.Of]; name != "" && w.bound[arg.Of] {
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

// replies writes what the server has to say behind a step, where that counts: it binds a name,
// it is where the fault shows, or somebody else goes on.
func (w *scripter) replies(i int) {
	r := w.right
	if r == nil {
		r = w.fd.Record
	}
	if r == nil {
		return
	}
	s, v := &w.fd.Conv.Steps[i], w.fd.Fault
	at := v.Step == i && (v.Oracle == Law || v.Oracle == Disclosure || v.Oracle == Framing) && w.right != nil
	before := v.Step < 0 || i < v.Step
	id := s.ID
	var lastOn *Event
	for k := range r.Events {
		e := &r.Events[k]
		if e.Step != i || e.From != codec.Server || e.Sentinel || e.Verb != transcript.Send || e.Conn >= len(w.roles) {
			continue
		}
		binds := w.names[id] != "" && !w.bound[id] && w.chose(id) == e
		if e.Conn == s.Conn {
			lastOn = e
		}
		// What the role is never sent cannot be passed over.
		if stray := before && e.Type.Res&w.roles[e.Conn] == 0; binds || at || stray || w.full {
			w.expect(e, id, (before || w.past || w.short) && !w.full, at && w.exact)
			w.shown = w.shown || at && e.Conn == v.Conn
			lastOn = nil
		}
	}
	switch next := w.nextConn(i); {
	case next < 0 || next == s.Conn || at || !before || w.left(s.Conn) && !w.stays(i, s.Conn):
	case lastOn != nil:
		w.expect(lastOn, 0, true, false)
	case w.thorough && w.proved(r, i, s.Conn):
		w.ask(w.actor(s.Conn), true)
	}
}

// stays reports whether a connection does not end before or with step i.
func (w *scripter) stays(i, conn int) bool {
	for k := range i + 1 {
		if s := &w.fd.Conv.Steps[k]; s.Conn == conn && (s.Verb == transcript.Closes || s.Verb == transcript.Resets || s.Verb == transcript.HalfCloses) {
			return false
		}
	}
	return true
}

// nextConn returns who acts behind step i, or -1.
func (w *scripter) nextConn(i int) int {
	for _, s := range w.fd.Conv.Steps[i+1:] {
		if s.Verb != transcript.Nothing {
			return s.Conn
		}
	}
	return -1
}

// proved reports whether a sentinel was answered behind a step.
func (w *scripter) proved(r *Record, i, conn int) bool {
	for k := range r.Events {
		if e := &r.Events[k]; e.Step == i && e.Conn == conn && e.From == codec.Server && e.Sentinel {
			return true
		}
	}
	return false
}

// expect writes a message of the server's. What peers have not said may differ, unless it is to be
// exact.
func (w *scripter) expect(e *Event, id int, past, exact bool) {
	a := w.actor(e.Conn)
	c := transcript.Choice{Type: e.Type, Unchecked: e.Type.Res&a.Role == 0}
	if len(e.Type.Repeat) > 0 && !exact {
		c.Args = []transcript.Arg{{Kind: transcript.Rest}}
		w.add(a, codec.Server, c, past)
		return
	}
	var f codec.Frame
	f.Type = e.Type
	for k, v := range e.Args {
		fd := argField(e.Type, k)
		arg := transcript.Arg{Kind: transcript.Any}
		switch {
		case fd != nil && fd.Assigned && w.names[id] != "" && !w.bound[id]:
			arg = transcript.Arg{Kind: transcript.Name, Name: w.names[id]}
			w.bound[id] = true
			w.called[fd.Name+string(v)] = arg.Name
		case fd != nil && fd.Assigned && w.full:
			arg = transcript.Arg{Kind: transcript.Name, Name: w.call(fd.Name + string(v))}
		case fd != nil && fd.Assigned, fd == nil:
		case exact:
			arg = transcript.Arg{Value: v}
		case bytes.Contains(w.allSaid(), v) && len(v) > 0 && fd.Kind != codec.Number && fd.Kind != codec.Signed:
			arg = transcript.Arg{Value: v}
		}
		c.Args = append(c.Args, arg)
	}
	w.add(a, codec.Server, c, past)
}

// call returns what a value of the server's is called: the same each time that it comes.
func (w *scripter) call(value string) string {
	name := w.called[value]
	if name == "" {
		name = fmt.Sprintf("w%d", len(w.called)+1)
		w.called[value] = name
	}
	return name
}

// allSaid returns all values that peers have sent.
func (w *scripter) allSaid() []byte {
	var b []byte
	for i := range w.fd.Conv.Steps {
		s := &w.fd.Conv.Steps[i]
		b = append(b, s.Bytes...)
		for _, a := range s.Args {
			b = append(append(b, a.Value...), 0xff)
		}
	}
	return b
}

package fuzz

import (
	"bytes"
	"fmt"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

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
	for k, v := range e.Args {
		fd := argField(e.Type, k)
		arg := transcript.Arg{Kind: transcript.Any}
		switch {
		case fd != nil && fd.Assigned && w.names[id] != "" && !w.bound[id]:
			if name := w.called[fd.Name+string(v)]; name != "" {
				w.names[id] = name // it was told before
			} else {
				w.called[fd.Name+string(v)] = w.names[id]
			}
			arg = transcript.Arg{Kind: transcript.Name, Name: w.names[id]}
			w.bound[id] = true
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

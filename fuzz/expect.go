package fuzz

import (
	"bytes"
	"fmt"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// replies writes the messages of the server, after a step, that matter: those with a value that gets a name, those that
// show the fault, and the last reply before a message of another peer.
func (w *transcriptWriter) replies(i int) {
	r := w.right
	if r == nil {
		r = w.fd.Record
	}
	if r == nil {
		return
	}
	s, v := &w.fd.Input.Steps[i], w.fd.Fault
	at := v.Step == i && (v.Oracle == exec.Law || v.Oracle == exec.Disclosure || v.Oracle == exec.Framing) && w.right != nil
	before := v.Step < 0 || i < v.Step
	id := s.ID
	var lastOn *exec.Event
	for k := range r.Events {
		e := &r.Events[k]
		if e.Step != i || e.From != codec.Server || e.Barrier || e.Verb != transcript.Send || e.Conn >= len(w.actors) {
			continue
		}
		binds := w.names[id] != "" && !w.bound[id] && w.chose(id) == e
		if e.Conn == s.Conn {
			lastOn = e
		}
		// A message that the role never receives cannot be skipped.
		if stray := before && e.Type.Res&w.actors[e.Conn].Role == 0; binds || at || stray || w.full {
			w.expect(e, id, (before || w.past || w.omitBarrier) && !w.full, at && w.exact)
			w.shown = w.shown || at && e.Conn == v.Conn
			lastOn = nil
		}
	}
	switch next := w.nextConn(i); {
	case next < 0 || next == s.Conn || at || !before || w.fd.Input.Ends(s.Conn, i+1, input.Leaves...):
	case lastOn != nil:
		w.expect(lastOn, 0, true, false)
	case w.thorough && w.barrierAnswered(r, i, s.Conn):
		w.ask(w.actors[s.Conn], true)
	}
}

// nextConn returns the connection of the next message or action, or -1 if there is none.
func (w *transcriptWriter) nextConn(i int) int {
	for _, s := range w.fd.Input.Steps[i+1:] {
		if s.Verb != transcript.Nothing {
			return s.Conn
		}
	}
	return -1
}

// barrierAnswered reports whether the server replied to a barrier on the connection after step i.
func (w *transcriptWriter) barrierAnswered(r *exec.Record, i, conn int) bool {
	return slices.ContainsFunc(r.Events, func(e exec.Event) bool { return e.Step == i && e.Conn == conn && e.From == codec.Server && e.Barrier })
}

// expect writes an expected message of the server. Unless exact is set, the transcript accepts any value for arguments
// that no peer has sent. past lets the transcript ignore other messages before this one.
func (w *transcriptWriter) expect(e *exec.Event, id int, past, exact bool) {
	a := w.actors[e.Conn]
	c := transcript.Choice{Type: e.Type, Unchecked: e.Type.Res&a.Role == 0}
	if len(e.Type.Repeat) > 0 && !exact {
		c.Args = []transcript.Arg{{Kind: transcript.Rest}}
		w.add(a, codec.Server, c, past)
		return
	}
	for k, v := range e.Args {
		fd := e.Type.FieldAt(k)
		arg := transcript.Arg{Kind: transcript.Any}
		switch {
		case fd != nil && fd.Assigned && w.names[id] != "" && !w.bound[id]:
			if name := w.valueNames[fd.Name+string(v)]; name != "" {
				w.names[id] = name // the value has a name already
			} else {
				w.valueNames[fd.Name+string(v)] = w.names[id]
			}
			arg = transcript.Arg{Kind: transcript.Name, Name: w.names[id]}
			w.bound[id] = true
		case fd != nil && fd.Assigned && w.full:
			arg = transcript.Arg{Kind: transcript.Name, Name: w.call(fd.Name + string(v))}
		case fd != nil && fd.Assigned, fd == nil:
		case exact:
			arg = transcript.Arg{Value: v}
		case bytes.Contains(w.sentValues(), v) && len(v) > 0 && fd.Kind != codec.Number && fd.Kind != codec.Signed:
			arg = transcript.Arg{Value: v}
		}
		c.Args = append(c.Args, arg)
	}
	w.add(a, codec.Server, c, past)
}

// call returns the name of a value that the server chose, and assigns a name if it has none.
func (w *transcriptWriter) call(value string) string {
	name := w.valueNames[value]
	if name == "" {
		name = fmt.Sprintf("w%d", len(w.valueNames)+1)
		w.valueNames[value] = name
	}
	return name
}

// sentValues returns all values that peers have sent.
func (w *transcriptWriter) sentValues() []byte {
	var b []byte
	for i := range w.fd.Input.Steps {
		s := &w.fd.Input.Steps[i]
		b = append(b, s.Bytes...)
		for _, a := range s.Args {
			b = append(append(b, a.Value...), 0xff)
		}
	}
	return b
}

package transcribe

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
func (w *writer) replies(i int) {
	r := w.observed
	if r == nil {
		return
	}
	s, v := &w.Input.Steps[i], w.Fault
	at := v.Step == i && (v.Oracle == exec.Law || v.Oracle == exec.Disclosure || v.Oracle == exec.Framing) && w.Right != nil
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
		if stray := before && e.Type.Res&w.actors[e.Conn].Role == 0; binds || at || stray || w.is(full) {
			w.expect(e, id, (before || w.is(past) || w.is(omitBarrier)) && !w.is(full), at && w.is(exact))
			w.shown = w.shown || at && e.Conn == v.Conn
			lastOn = nil
		}
	}
	if before && !at {
		w.complete(i, lastOn)
	}
}

// complete writes what proves that the server has processed step i, if another peer sends the next message: the reply
// on its connection, which is nil if there is none, or a barrier.
func (w *writer) complete(i int, reply *exec.Event) {
	conn := w.Input.Steps[i].Conn
	switch next := w.nextConn(i); {
	case next < 0 || next == conn || w.Input.Ends(conn, i+1, input.Leaves...):
	case reply != nil:
		w.expect(reply, 0, true, false)
	case w.is(thorough) && w.barrierAnswered(w.observed, i, conn):
		w.ask(w.actors[conn], true)
	}
}

// nextConn returns the connection of the next message or action, or -1 if there is none.
func (w *writer) nextConn(i int) int {
	for _, s := range w.Input.Steps[i+1:] {
		if s.Verb != transcript.Nothing {
			return s.Conn
		}
	}
	return -1
}

// barrierAnswered reports whether the server replied to a barrier on the connection after step i.
func (w *writer) barrierAnswered(r *exec.Record, i, conn int) bool {
	return slices.ContainsFunc(r.Events, func(e exec.Event) bool { return e.Step == i && e.Conn == conn && e.From == codec.Server && e.Barrier })
}

// expect writes an expected message of the server. Unless exact is set, the transcript accepts any value for arguments
// that no peer has sent. ignoring lets the transcript ignore other messages before this one.
func (w *writer) expect(e *exec.Event, id int, ignoring, exact bool) {
	a := w.actors[e.Conn]
	c := transcript.Choice{Type: e.Type, Unchecked: e.Type.Res&a.Role == 0}
	if len(e.Type.Repeat) > 0 && !exact {
		c.Args = []transcript.Arg{{Kind: transcript.Rest}}
		w.addExpected(a, c, ignoring)
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
		case fd != nil && fd.Assigned && w.is(full):
			arg = transcript.Arg{Kind: transcript.Name, Name: w.call(fd.Name + string(v))}
		case fd != nil && fd.Assigned, fd == nil:
		case exact:
			arg = transcript.Arg{Value: v}
		case bytes.Contains(w.sentValues(), v) && len(v) > 0 && fd.Kind != codec.Number && fd.Kind != codec.Signed:
			arg = transcript.Arg{Value: v}
		}
		c.Args = append(c.Args, arg)
	}
	c.Args = withoutOptional(e.Type, c.Args)
	w.addExpected(a, c, ignoring, w.freeRefusals(e)...)
}

// freeRefusals returns the refusals in free text that a correct server may send instead of the refusal e.
func (w *writer) freeRefusals(e *exec.Event) (all []transcript.Choice) {
	request := w.Input.Steps[e.Step].Type
	if e.Type.Does != codec.Refuse || request == nil {
		return nil
	}
	for _, t := range request.Answers {
		if t != e.Type && t.Does == codec.Refuse && t.Free != nil {
			all = append(all, transcript.Choice{Type: t, Unchecked: t.Res&w.actors[e.Conn].Role == 0,
				Args: []transcript.Arg{{Kind: transcript.Rest}}})
		}
	}
	return all
}

// withoutOptional returns expected arguments of a message, without those at its end that may have any value and that a
// correct server may leave out.
func withoutOptional(t *codec.Type, args []transcript.Arg) []transcript.Arg {
	n := len(args)
	for n > 0 && args[n-1].Kind == transcript.Any && (t.FieldAt(n-1) == nil || t.FieldAt(n-1).Optional) {
		n--
	}
	if n == len(args) {
		return args
	}
	return append(args[:n], transcript.Arg{Kind: transcript.Rest})
}

// call returns the name of a value that the server chose, and assigns a name if it has none.
func (w *writer) call(value string) string {
	name := w.valueNames[value]
	if name == "" {
		name = fmt.Sprintf("w%d", len(w.valueNames)+1)
		w.valueNames[value] = name
	}
	return name
}

// sentValues returns all values that peers have sent.
func (w *writer) sentValues() []byte {
	var b []byte
	for i := range w.Input.Steps {
		s := &w.Input.Steps[i]
		b = append(b, s.Bytes...)
		for _, a := range s.Args {
			b = append(append(b, a.Value...), 0xff)
		}
	}
	return b
}

package fuzz

import (
	"bytes"

	"jobwire/codec/transcript"
)

// introduction returns what a connection says first where others use the server too.
func (d *dialect) introduction() []Step {
	var steps []Step
	for _, row := range d.prelude {
		s := Step{Verb: transcript.Send, Type: d.protocol.TypeNamed(row[0])}
		for _, a := range row[1:] {
			s.Args = append(s.Args, Arg{Value: []byte(a)})
		}
		steps = append(steps, s)
	}
	return steps
}

// apart writes out what a conversation says under a prefix, so that others may be held on the same
// server without one.
func (d *dialect) apart(c *Conv, prefix string) *Conv {
	out := &Conv{Burst: c.Burst, Ahead: c.Ahead}
	id := c.nextID()
	open := make([]bool, c.conns())
	for _, s := range c.clone().Steps {
		if !open[s.Conn] {
			open[s.Conn] = true
			for _, first := range d.introduction() {
				first.ID, first.Conn = id, s.Conn
				id++
				d.place(&first, prefix)
				out.Steps = append(out.Steps, first)
			}
		}
		if d.place(&s, prefix) {
			out.Steps = append(out.Steps, s)
		}
	}
	return out
}

// alone returns what one conversation of many can be where nobody else uses the server: the same, and with
// what its connections had said first.
func (d *dialect) alone(c *Conv) []*Conv {
	if len(d.prelude) == 0 {
		return []*Conv{c}
	}
	return []*Conv{c, d.apart(c, place)}
}

// place puts a prefix in its place. It reports whether the step is said at all: what the server numbers
// for all, and has not told this peer, may be somebody else's.
func (d *dialect) place(s *Step, prefix string) bool {
	own := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(place), []byte(prefix)) }
	s.Bytes = own(s.Bytes)
	for i := range s.Args {
		a := &s.Args[i]
		if a.Of == 0 && d.shared != nil && assignedField(s.Type, i) != nil {
			return false
		}
		a.Value = own(d.own(argField(s.Type, i), a.Value, prefix))
	}
	return s.Verb != transcript.Raw || !d.shares(nil, s.Bytes)
}

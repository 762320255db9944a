package input

import (
	"bytes"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// role returns a random role of a connection, preferably one that may send the messages of the connection.
func (g *Generator) role(in *Input, conn int) codec.Role {
	var may codec.Role
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Conn == conn && s.Type != nil {
			may |= s.Type.Req
		}
	}
	for range 8 {
		if role := codec.Role(1) << g.r.IntN(len(g.p.Roles)); may == 0 || may&role != 0 {
			return role
		}
	}
	return 1
}

// mutations are the functions that change an input. Frequent ones are listed several times.
var mutations = []func(b *Generator, c *Input, pick func() *Input){
	(*Generator).addMessage, (*Generator).addMessage, (*Generator).addMessage, (*Generator).addMessage,
	(*Generator).changeArg, (*Generator).changeArg, (*Generator).changeArg, (*Generator).changeArg,
	(*Generator).regenerate, (*Generator).regenerate,
	(*Generator).mutateBytes, (*Generator).mutateBytes,
	(*Generator).leave, (*Generator).leave, (*Generator).leave,
	(*Generator).splitWrite,
	(*Generator).pad,
	(*Generator).repeat,
	(*Generator).drop,
	(*Generator).swap,
	(*Generator).move, (*Generator).twin,
	(*Generator).splice, (*Generator).splice,
	(*Generator).drain, (*Generator).drain, (*Generator).drain, (*Generator).drain,
	(*Generator).AddPause,
}

// drain adds a connection that requests, at the end of the input, the jobs of a queue that the input uses. The replies
// reveal jobs that the server has lost or changed.
func (g *Generator) drain(in *Input, _ func() *Input) {
	conn := in.Conns()
	if conn >= MaxConns {
		return
	}
	var used [][]byte
	for i := range in.Steps {
		for k, a := range in.Steps[i].Args {
			if isName(in.Steps[i].Type.FieldAt(k)) {
				used = append(used, a.Value)
			}
		}
	}
	if len(used) == 0 || len(g.drains) == 0 {
		return
	}
	name := used[g.r.IntN(len(used))]
	for _, sl := range g.drains[g.r.IntN(len(g.drains))] {
		if sl.optional && g.r.IntN(2) == 0 {
			continue
		}
		t := sl.types[g.r.IntN(len(sl.types))]
		s := Step{ID: in.nextID(), Conn: conn, Verb: transcript.Send, Type: t}
		m := gen.Of(g.r, t, gen.Options{Safe: true})
		for i, v := range m.Args {
			switch f := t.FieldAt(i); {
			case isName(f):
				v = name
			case f.Means == codec.Timeout && t.Blocks == codec.UnlessZero:
				v = []byte("0")
			case f.Means == codec.Timeout || f.Means == codec.TimeLimit:
				v = []byte("1")
			}
			s.Args = append(s.Args, Arg{Value: v})
		}
		if t.At(codec.Queue) == 0 && len(s.Args) == 0 {
			s.Args = []Arg{{Value: name}}
		}
		in.Steps = append(in.Steps, s)
	}
}

func (g *Generator) any(in *Input) *Step { return &in.Steps[g.r.IntN(len(in.Steps))] }

// addMessage is a mutation that inserts a random message on one of the connections or on a new one, half of the time at
// the end.
func (g *Generator) addMessage(in *Input, _ func() *Input) {
	conn := g.r.IntN(min(in.Conns()+1, MaxConns))
	at := g.r.IntN(len(in.Steps) + 1)
	if g.r.IntN(2) == 0 {
		at = len(in.Steps)
	}
	g.insert(in, at, conn, g.role(in, conn))
}

// changeArg is a mutation that changes one argument of a random message: to a value that the server has chosen in reply
// to an earlier step, an extreme value, or a random value for the field.
func (g *Generator) changeArg(in *Input, _ func() *Input) {
	for range 4 {
		s := g.any(in)
		if len(s.Args) == 0 {
			continue
		}
		i := g.r.IntN(len(s.Args))
		f := s.Type.FieldAt(i)
		switch {
		case f != nil && f.Assigned && g.r.IntN(4) > 0:
			s.Args[i].Of = g.source(in, 1+g.r.IntN(len(in.Steps)))
		case g.r.IntN(2) == 0:
			g.extreme(s, i)
		default:
			if m := gen.Of(g.r, s.Type, gen.Options{}); i < len(m.Args) {
				s.Args[i] = g.arg(f, m.Args[i])
			}
		}
		return
	}
}

// regenerate replaces a message with another message of the same type, or changes its type to another type that the
// same peer may send.
func (g *Generator) regenerate(in *Input, _ func() *Input) {
	at := g.r.IntN(len(in.Steps))
	s := in.Steps[at]
	if s.Type == nil {
		return
	}
	if g.r.IntN(2) == 0 { // a type with the same number of fields can use the same values
		var alike []*codec.Type
		for _, t := range g.p.Types {
			if t.Req&s.Type.Req != 0 && len(t.Fields) == len(s.Type.Fields) {
				alike = append(alike, t)
			}
		}
		if len(alike) > 0 {
			in.Steps[at].Type = alike[g.r.IntN(len(alike))]
		}
		return
	}
	m := gen.Of(g.r, s.Type, gen.Options{Safe: g.r.IntN(2) == 0})
	for i := range m.Args {
		if i < len(s.Args) && s.Args[i].Of == 0 {
			in.Steps[at].Args[i].Value = placed(s.Type.FieldAt(i), m.Args[i])
		}
	}
}

// encode returns the bytes of a step, or nil if it cannot be encoded.
func (g *Generator) encode(s *Step) []byte {
	if s.Verb != transcript.Send {
		return s.Bytes
	}
	m := s.Message()
	raw, err := g.sess.Append(nil, codec.Peer, &m)
	if err != nil {
		return nil
	}
	return raw
}

// mutateBytes is a mutation that replaces a message with mutated bytes, which are usually illegal. It leaves the input
// unchanged if the bytes would be empty, longer than 256 KiB, or break a rule in Known.Avoid.
func (g *Generator) mutateBytes(in *Input, _ func() *Input) {
	s := g.any(in)
	raw := g.encode(s)
	if len(raw) == 0 {
		return
	}
	f := &g.frame
	if _, err := g.p.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Peer, raw, f); err != nil {
		f = nil
	}
	out := gen.Mutate(g.r, g.p, raw, f)
	if len(out) == 0 || len(out) > 256<<10 || g.avoided(out) {
		return
	}
	*s = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: out}
}

// avoided reports whether bytes break a rule in Known.Avoid.
func (g *Generator) avoided(raw []byte) bool {
	if len(g.known.Avoid) == 0 {
		return false
	}
	var f codec.Frame
	_, err := g.p.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f)
	e, ok := err.(*codec.Error)
	return ok && slices.Contains(g.known.Avoid, e.Rule)
}

// leave inserts a step that closes, half-closes or resets a connection.
func (g *Generator) leave(in *Input, _ func() *Input) {
	at := 1 + g.r.IntN(len(in.Steps))
	in.Steps = slices.Insert(in.Steps, at, Step{ID: in.nextID(), Conn: in.Steps[g.r.IntN(at)].Conn, Verb: Leaves[g.r.IntN(len(Leaves))]})
}

// splitWrite splits a message into two steps, between which other peers may send messages.
func (g *Generator) splitWrite(in *Input, _ func() *Input) {
	at := g.r.IntN(len(in.Steps))
	s := in.Steps[at]
	raw := g.encode(&s)
	if len(raw) < 2 {
		return
	}
	n := 1 + g.r.IntN(len(raw)-1)
	in.Steps[at] = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: raw[:n:n]}
	if g.r.IntN(4) == 0 {
		return // the rest is never sent
	}
	to := at + 1 + g.r.IntN(len(in.Steps)-at)
	in.Steps = slices.Insert(in.Steps, to, Step{ID: in.nextID(), Conn: s.Conn, Verb: transcript.Raw, Bytes: raw[n:]})
}

// pad adds spaces or tabs to a line, at its end or at an existing space.
func (g *Generator) pad(in *Input, _ func() *Input) {
	s := g.any(in)
	if s.Type == nil || s.Type.End == "" {
		return
	}
	raw := g.encode(s)
	at := bytes.IndexAny(raw, "\r\n")
	if at < 0 {
		return
	}
	if gap := bytes.IndexByte(raw, ' '); gap > 0 && gap < at && g.r.IntN(3) == 0 {
		at = gap
	}
	out := slices.Insert(raw, at, bytes.Repeat([]byte{" \t"[g.r.IntN(4)/3]}, 1+g.r.IntN(3))...)
	if !g.avoided(out) {
		*s = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: out}
	}
}

// repeat is a mutation that inserts 1, 2 or 4 copies of up to four consecutive steps after these steps.
func (g *Generator) repeat(in *Input, _ func() *Input) {
	at := g.r.IntN(len(in.Steps))
	n := 1 + g.r.IntN(min(4, len(in.Steps)-at))
	part := (&Input{Steps: in.Steps[at : at+n]}).Clone().Steps
	for range 1 << g.r.IntN(3) {
		in.splice(at+n, part, func(conn int) int { return conn })
	}
}

// drop is a mutation that removes a random step, except the only one.
func (g *Generator) drop(in *Input, _ func() *Input) {
	if len(in.Steps) > 1 {
		at := g.r.IntN(len(in.Steps))
		in.Steps = slices.Delete(in.Steps, at, at+1)
	}
}

func (g *Generator) swap(in *Input, _ func() *Input) {
	i, k := g.r.IntN(len(in.Steps)), g.r.IntN(len(in.Steps))
	in.Steps[i], in.Steps[k] = in.Steps[k], in.Steps[i]
}

// move moves a step to another connection.
func (g *Generator) move(in *Input, _ func() *Input) {
	g.any(in).Conn = g.r.IntN(min(in.Conns()+1, MaxConns))
}

// splice inserts a part of another input, on the same connections or on new ones.
func (g *Generator) splice(in *Input, pick func() *Input) {
	o := pick()
	if o == nil || len(o.Steps) == 0 {
		return
	}
	from := g.r.IntN(len(o.Steps))
	n := 1 + g.r.IntN(min(12, len(o.Steps)-from))
	if g.r.IntN(2) == 0 {
		from, n = 0, len(o.Steps)
	}
	shift := 0
	if g.r.IntN(2) == 0 {
		shift = in.Conns()
	}
	in.splice(g.r.IntN(len(in.Steps)+1), o.Steps[from:from+n], func(conn int) int { return (conn + shift) % MaxConns })
}

// AddPause inserts a pause, usually one that ends near the end of a timer, if inputs may contain pauses.
func (g *Generator) AddPause(in *Input, _ func() *Input) {
	if !g.Slow || len(in.Steps) == 0 || in.Waits() > mostPauses {
		return
	}
	at := 1 + g.r.IntN(len(in.Steps))
	s := Step{ID: in.nextID(), Conn: in.Steps[at-1].Conn, Verb: transcript.Nothing}
	s.For = g.pause(&Input{Steps: in.Steps[:at]})
	in.Steps = slices.Insert(in.Steps, at, s)
}

package fuzz

import (
	"bytes"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// role returns a random role of a connection, preferably one that may send the messages of the connection.
func (b *generator) role(c *Input, conn int) codec.Role {
	var may codec.Role
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Conn == conn && s.Type != nil {
			may |= s.Type.Req
		}
	}
	for range 8 {
		if role := codec.Role(1) << b.r.IntN(len(b.p.Roles)); may == 0 || may&role != 0 {
			return role
		}
	}
	return 1
}

// mutations are the functions that change an input. Frequent ones are listed several times.
var mutations = []func(b *generator, c *Input, pick func() *Input){
	(*generator).addMessage, (*generator).addMessage, (*generator).addMessage, (*generator).addMessage,
	(*generator).changeArg, (*generator).changeArg, (*generator).changeArg, (*generator).changeArg,
	(*generator).regenerate, (*generator).regenerate,
	(*generator).mutateBytes, (*generator).mutateBytes,
	(*generator).leave, (*generator).leave, (*generator).leave,
	(*generator).splitWrite,
	(*generator).pad,
	(*generator).repeat,
	(*generator).drop,
	(*generator).swap,
	(*generator).move,
	(*generator).splice, (*generator).splice,
	(*generator).drain, (*generator).drain, (*generator).drain, (*generator).drain,
	(*generator).wait,
}

// drain adds a connection that requests, at the end of the input, the jobs of a queue that the input uses. The replies
// reveal jobs that the server has lost or changed.
func (b *generator) drain(c *Input, _ func() *Input) {
	conn := c.conns()
	if conn >= maxConns {
		return
	}
	var used [][]byte
	for i := range c.Steps {
		for k, a := range c.Steps[i].Args {
			if isName(c.Steps[i].Type.FieldAt(k)) {
				used = append(used, a.Value)
			}
		}
	}
	if len(used) == 0 || len(b.drains) == 0 {
		return
	}
	name := used[b.r.IntN(len(used))]
	for _, sl := range b.drains[b.r.IntN(len(b.drains))] {
		if sl.optional && b.r.IntN(2) == 0 {
			continue
		}
		t := sl.types[b.r.IntN(len(sl.types))]
		s := Step{ID: c.nextID(), Conn: conn, Verb: transcript.Send, Type: t}
		m := gen.Of(b.r, t, gen.Options{Safe: true})
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
		c.Steps = append(c.Steps, s)
	}
}

func (b *generator) any(c *Input) *Step { return &c.Steps[b.r.IntN(len(c.Steps))] }

func (b *generator) addMessage(c *Input, _ func() *Input) {
	conn := b.r.IntN(min(c.conns()+1, maxConns))
	at := b.r.IntN(len(c.Steps) + 1)
	if b.r.IntN(2) == 0 {
		at = len(c.Steps)
	}
	b.insert(c, at, conn, b.role(c, conn))
}

// limits are common maximum lengths of names, in bytes, and lengths near them.
var limits = []int{0, 1, 2, 15, 16, 31, 32, 63, 64, 65, 127, 128, 129, 200, 201, 255, 256, 257}

// lengths are common sizes of buffers, in bytes, and lengths near them.
var lengths = []int{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 129, 200, 201, 224, 255, 256, 257, 511, 512,
	1000, 1023, 1024, 1025, 2047, 2048, 4095, 4096, 4097, 8000, 8191, 8192, 8193, 16384, 32768, 65535, 65536, 65537}

func (b *generator) changeArg(c *Input, _ func() *Input) {
	for range 4 {
		s := b.any(c)
		if len(s.Args) == 0 {
			continue
		}
		i := b.r.IntN(len(s.Args))
		f := s.Type.FieldAt(i)
		switch {
		case f != nil && f.Assigned && b.r.IntN(4) > 0:
			s.Args[i].Of = b.source(c, 1+b.r.IntN(len(c.Steps)))
		case b.r.IntN(2) == 0:
			b.extreme(s, i)
		default:
			if m := gen.Of(b.r, s.Type, gen.Options{}); i < len(m.Args) {
				s.Args[i] = b.arg(f, m.Args[i])
			}
		}
		return
	}
}

// regenerate replaces a message with another message of the same type, or changes its type to another type that the
// same peer may send.
func (b *generator) regenerate(c *Input, _ func() *Input) {
	at := b.r.IntN(len(c.Steps))
	s := c.Steps[at]
	if s.Type == nil {
		return
	}
	if b.r.IntN(2) == 0 { // a type with the same number of fields can use the same values
		var alike []*codec.Type
		for _, t := range b.p.Types {
			if t.Req&s.Type.Req != 0 && len(t.Fields) == len(s.Type.Fields) {
				alike = append(alike, t)
			}
		}
		if len(alike) > 0 {
			c.Steps[at].Type = alike[b.r.IntN(len(alike))]
		}
		return
	}
	m := gen.Of(b.r, s.Type, gen.Options{Safe: b.r.IntN(2) == 0})
	for i := range m.Args {
		if i < len(s.Args) && s.Args[i].Of == 0 {
			c.Steps[at].Args[i].Value = placed(s.Type.FieldAt(i), m.Args[i])
		}
	}
}

// encode returns the bytes of a step, or nil if it cannot be encoded.
func (b *generator) encode(s *Step) []byte {
	if s.Verb != transcript.Send {
		return s.Bytes
	}
	m := s.message()
	raw, err := b.sess.Append(nil, codec.Peer, &m)
	if err != nil {
		return nil
	}
	return raw
}

func (b *generator) mutateBytes(c *Input, _ func() *Input) {
	s := b.any(c)
	raw := b.encode(s)
	if len(raw) == 0 {
		return
	}
	f := &b.frame
	if _, err := b.p.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Peer, raw, f); err != nil {
		f = nil
	}
	out := gen.Mutate(b.r, b.p, raw, f)
	if len(out) == 0 || len(out) > 256<<10 || b.avoided(out) {
		return
	}
	*s = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: out}
}

// avoided reports whether bytes break a rule in Known.Avoid.
func (b *generator) avoided(raw []byte) bool {
	if len(b.known.Avoid) == 0 {
		return false
	}
	var f codec.Frame
	_, err := b.p.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f)
	e, ok := err.(*codec.Error)
	return ok && slices.Contains(b.known.Avoid, e.Rule)
}

// leave inserts a step that closes, half-closes or resets a connection.
func (b *generator) leave(c *Input, _ func() *Input) {
	at := 1 + b.r.IntN(len(c.Steps))
	c.Steps = slices.Insert(c.Steps, at, Step{ID: c.nextID(), Conn: c.Steps[b.r.IntN(at)].Conn, Verb: leaves[b.r.IntN(len(leaves))]})
}

// splitWrite splits a message into two steps, between which other peers may send messages.
func (b *generator) splitWrite(c *Input, _ func() *Input) {
	at := b.r.IntN(len(c.Steps))
	s := c.Steps[at]
	raw := b.encode(&s)
	if len(raw) < 2 {
		return
	}
	n := 1 + b.r.IntN(len(raw)-1)
	c.Steps[at] = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: raw[:n:n]}
	if b.r.IntN(4) == 0 {
		return // the rest is never sent
	}
	to := at + 1 + b.r.IntN(len(c.Steps)-at)
	c.Steps = slices.Insert(c.Steps, to, Step{ID: c.nextID(), Conn: s.Conn, Verb: transcript.Raw, Bytes: raw[n:]})
}

// pad adds spaces or tabs to a line, at its end or at an existing space.
func (b *generator) pad(c *Input, _ func() *Input) {
	s := b.any(c)
	if s.Type == nil || s.Type.End == "" {
		return
	}
	raw := b.encode(s)
	at := bytes.IndexAny(raw, "\r\n")
	if at < 0 {
		return
	}
	if gap := bytes.IndexByte(raw, ' '); gap > 0 && gap < at && b.r.IntN(3) == 0 {
		at = gap
	}
	out := slices.Insert(raw, at, bytes.Repeat([]byte{" \t"[b.r.IntN(4)/3]}, 1+b.r.IntN(3))...)
	if !b.avoided(out) {
		*s = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: out}
	}
}

func (b *generator) repeat(c *Input, _ func() *Input) {
	at := b.r.IntN(len(c.Steps))
	n := 1 + b.r.IntN(min(4, len(c.Steps)-at))
	part := (&Input{Steps: c.Steps[at : at+n]}).clone().Steps
	for range 1 << b.r.IntN(3) {
		c.splice(at+n, part, func(conn int) int { return conn })
	}
}

func (b *generator) drop(c *Input, _ func() *Input) {
	if len(c.Steps) > 1 {
		at := b.r.IntN(len(c.Steps))
		c.Steps = slices.Delete(c.Steps, at, at+1)
	}
}

func (b *generator) swap(c *Input, _ func() *Input) {
	i, k := b.r.IntN(len(c.Steps)), b.r.IntN(len(c.Steps))
	c.Steps[i], c.Steps[k] = c.Steps[k], c.Steps[i]
}

// move moves a step to another connection.
func (b *generator) move(c *Input, _ func() *Input) {
	b.any(c).Conn = b.r.IntN(min(c.conns()+1, maxConns))
}

// splice inserts a part of another input, on the same connections or on new ones.
func (b *generator) splice(c *Input, pick func() *Input) {
	o := pick()
	if o == nil || len(o.Steps) == 0 {
		return
	}
	from := b.r.IntN(len(o.Steps))
	n := 1 + b.r.IntN(min(12, len(o.Steps)-from))
	if b.r.IntN(2) == 0 {
		from, n = 0, len(o.Steps)
	}
	shift := 0
	if b.r.IntN(2) == 0 {
		shift = c.conns()
	}
	c.splice(b.r.IntN(len(c.Steps)+1), o.Steps[from:from+n], func(conn int) int { return (conn + shift) % maxConns })
}

// wait inserts a pause, often longer than 1 s, if inputs may contain pauses.
func (b *generator) wait(c *Input, _ func() *Input) {
	if !b.slow || len(c.Steps) == 0 {
		return
	}
	d := b.pause()
	at := b.r.IntN(len(c.Steps) + 1)
	if most := 5 * time.Second; c.waits()+d > most && !(b.long && c.waits()+d <= 6*most) {
		return
	}
	c.Steps = slices.Insert(c.Steps, at, Step{ID: c.nextID(), Conn: c.Steps[max(0, at-1)].Conn, Verb: transcript.Nothing, For: d})
}

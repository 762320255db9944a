package fuzz

import (
	"bytes"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// role returns one that a connection has by what it says.
func (b *breeder) role(c *Conv, conn int) codec.Role {
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

// changes are what can be done with a conversation. Those that are done most stand more than
// once.
var changes = []func(b *breeder, c *Conv, pick func() *Conv){
	(*breeder).addMessage, (*breeder).addMessage, (*breeder).addMessage, (*breeder).addMessage,
	(*breeder).changeArg, (*breeder).changeArg, (*breeder).changeArg, (*breeder).changeArg,
	(*breeder).redraw, (*breeder).redraw,
	(*breeder).mutateBytes, (*breeder).mutateBytes,
	(*breeder).leave, (*breeder).leave, (*breeder).leave,
	(*breeder).cut,
	(*breeder).pad,
	(*breeder).double,
	(*breeder).drop,
	(*breeder).swap,
	(*breeder).move,
	(*breeder).cross, (*breeder).cross,
	(*breeder).harvest, (*breeder).harvest, (*breeder).harvest, (*breeder).harvest,
	(*breeder).wait,
}

// harvest has somebody new ask, at the end, for all that is queued under a name: what is lost, or
// is not as it was, comes to light.
func (b *breeder) harvest(c *Conv, _ func() *Conv) {
	conn := c.conns()
	if conn >= maxConns || len(b.d.harvest) == 0 {
		return
	}
	var names [][]byte
	for i := range c.Steps {
		for k, a := range c.Steps[i].Args {
			if f := argField(c.Steps[i].Type, k); f != nil && b.d.names[f.Name] != nil {
				names = append(names, a.Value)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	name := names[b.r.IntN(len(names))]
	rows := b.d.harvest[b.r.IntN(len(b.d.harvest))]
	for _, row := range rows {
		s := Step{ID: c.nextID(), Conn: conn, Verb: transcript.Send, Type: b.p.TypeNamed(row[0])}
		for _, a := range row[1:] {
			v := []byte(a)
			if a == "$" {
				v = name
			}
			s.Args = append(s.Args, Arg{Value: v})
		}
		c.Steps = append(c.Steps, s)
	}
}

func (b *breeder) any(c *Conv) *Step { return &c.Steps[b.r.IntN(len(c.Steps))] }

func (b *breeder) addMessage(c *Conv, _ func() *Conv) {
	conn := b.r.IntN(min(c.conns()+1, maxConns))
	at := b.r.IntN(len(c.Steps) + 1)
	if b.r.IntN(2) == 0 {
		at = len(c.Steps)
	}
	b.insert(c, at, conn, b.role(c, conn))
}

// limits are those that names mostly have.
var limits = []int{0, 1, 2, 15, 16, 31, 32, 63, 64, 65, 127, 128, 129, 200, 201, 255, 256, 257}

// lengths are those at which buffers end.
var lengths = []int{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 129, 200, 201, 224, 255, 256, 257, 511, 512, 1000, 1023, 1024, 1025, 2047, 2048, 4095, 4096, 4097, 8000, 8191, 8192, 8193, 16384, 32768, 65535, 65536, 65537}

func (b *breeder) changeArg(c *Conv, _ func() *Conv) {
	for range 4 {
		s := b.any(c)
		if len(s.Args) == 0 {
			continue
		}
		i := b.r.IntN(len(s.Args))
		f := argField(s.Type, i)
		switch {
		case f != nil && f.Assigned && b.r.IntN(4) > 0:
			s.Args[i].Of = b.source(c, 1+b.r.IntN(len(c.Steps)))
		case b.r.IntN(2) == 0:
			b.stretch(s, i)
		default:
			if m := gen.Of(b.r, s.Type, gen.Options{}); i < len(m.Args) {
				s.Args[i] = Arg{Value: b.d.placed(f, m.Args[i])}
			}
		}
		return
	}
}

// redraw makes another message of the row, or of another that the same may send.
func (b *breeder) redraw(c *Conv, _ func() *Conv) {
	at := b.r.IntN(len(c.Steps))
	s := c.Steps[at]
	if s.Type == nil {
		return
	}
	if b.r.IntN(2) == 0 { // what is alike takes the same values
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
	m := gen.Of(b.r, s.Type, gen.Options{Tame: b.r.IntN(2) == 0})
	for i := range m.Args {
		if i < len(s.Args) && s.Args[i].Of == 0 {
			c.Steps[at].Args[i].Value = b.d.placed(argField(s.Type, i), m.Args[i])
		}
	}
}

// encode returns the bytes of a step, or nil.
func (b *breeder) encode(s *Step) []byte {
	if s.Verb != transcript.Send {
		return s.Bytes
	}
	m := codec.Message{Type: s.Type, CRLF: s.CRLF}
	for _, a := range s.Args {
		m.Args = append(m.Args, a.Value)
	}
	raw, err := b.sess.Append(nil, codec.Peer, &m)
	if err != nil {
		return nil
	}
	return raw
}

func (b *breeder) mutateBytes(c *Conv, _ func() *Conv) {
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

// avoided reports whether bytes break a rule as is known not to end well.
func (b *breeder) avoided(raw []byte) bool {
	if len(b.known.Avoid) == 0 {
		return false
	}
	var f codec.Frame
	_, err := b.p.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f)
	e, ok := err.(*codec.Error)
	return ok && slices.Contains(b.known.Avoid, e.Rule)
}

// leave ends a connection in one of the ways.
func (b *breeder) leave(c *Conv, _ func() *Conv) {
	at := 1 + b.r.IntN(len(c.Steps))
	c.Steps = slices.Insert(c.Steps, at, Step{ID: c.nextID(), Conn: c.Steps[b.r.IntN(at)].Conn, Verb: goings[b.r.IntN(len(goings))]})
}

// cut has a message arrive in two parts, between which others speak.
func (b *breeder) cut(c *Conv, _ func() *Conv) {
	at := b.r.IntN(len(c.Steps))
	s := c.Steps[at]
	raw := b.encode(&s)
	if len(raw) < 2 {
		return
	}
	n := 1 + b.r.IntN(len(raw)-1)
	c.Steps[at] = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Raw, Bytes: raw[:n:n]}
	if b.r.IntN(4) == 0 {
		return // the rest never comes
	}
	to := at + 1 + b.r.IntN(len(c.Steps)-at)
	c.Steps = slices.Insert(c.Steps, to, Step{ID: c.nextID(), Conn: s.Conn, Verb: transcript.Raw, Bytes: raw[n:]})
}

// pad puts blanks into a line, at its end or where one is.
func (b *breeder) pad(c *Conv, _ func() *Conv) {
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

func (b *breeder) double(c *Conv, _ func() *Conv) {
	at := b.r.IntN(len(c.Steps))
	n := 1 + b.r.IntN(min(4, len(c.Steps)-at))
	part := (&Conv{Steps: c.Steps[at : at+n]}).clone().Steps
	for range 1 << b.r.IntN(3) {
		c.splice(at+n, part, func(conn int) int { return conn })
	}
}

func (b *breeder) drop(c *Conv, _ func() *Conv) {
	if len(c.Steps) > 1 {
		at := b.r.IntN(len(c.Steps))
		c.Steps = slices.Delete(c.Steps, at, at+1)
	}
}

func (b *breeder) swap(c *Conv, _ func() *Conv) {
	i, k := b.r.IntN(len(c.Steps)), b.r.IntN(len(c.Steps))
	c.Steps[i], c.Steps[k] = c.Steps[k], c.Steps[i]
}

// move has somebody else do something.
func (b *breeder) move(c *Conv, _ func() *Conv) {
	b.any(c).Conn = b.r.IntN(min(c.conns()+1, maxConns))
}

// cross puts a part of another conversation into this one, on its connections or on others.
func (b *breeder) cross(c *Conv, pick func() *Conv) {
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

// wait lets time pass, most often past a timeout of a second.
func (b *breeder) wait(c *Conv, _ func() *Conv) {
	if !b.slow || len(c.Steps) == 0 {
		return
	}
	d := pauses[b.r.IntN(len(pauses))]
	at := b.r.IntN(len(c.Steps) + 1)
	if c.waits()+d > 5*time.Second {
		return
	}
	c.Steps = slices.Insert(c.Steps, at, Step{ID: c.nextID(), Conn: c.Steps[max(0, at-1)].Conn, Verb: transcript.Nothing, For: d})
}

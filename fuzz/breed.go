package fuzz

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// breeder makes conversations of others, and of nothing.
type breeder struct {
	p     *codec.Protocol
	d     *dialect
	r     *rand.Rand
	known *Known
	sess  codec.Session
	frame codec.Frame
	slow  bool                 // may wait
	gives map[*codec.Type]bool // what servers choose something behind

	takers []*codec.Type // what has a value that servers choose
	plots  [][]scene
	turns  map[*codec.Field]int // which of the limits a field had last
}

func newBreeder(p *codec.Protocol, r *rand.Rand, known *Known) *breeder {
	b := &breeder{p: p, d: dialectOf(p), r: r, known: known, gives: map[*codec.Type]bool{}, plots: readPlots(p), turns: map[*codec.Field]int{}}
	for _, t := range p.Types {
		if slices.ContainsFunc(t.Fields, func(f codec.Field) bool { return f.Assigned }) {
			b.takers = append(b.takers, t)
		}
	}
	return b
}

// Most conversations are short: many of these find more than few long ones.
const (
	fewSteps = 9
	maxSteps = 24
)

// child makes a conversation of one from the pool, of which pick gives others to join with.
func (b *breeder) child(parent *Conv, pick func() *Conv) *Conv {
	c := parent.clone()
	b.sess = b.p.NewSession(codec.Options{WaiveAll: true})
	for range 1 + b.r.IntN(4)*b.r.IntN(2) {
		changes[b.r.IntN(len(changes))](b, c, pick)
	}
	most := maxSteps
	if b.r.IntN(8) > 0 {
		most = max(fewSteps, len(parent.Steps)+1)
	}
	if len(c.Steps) > most {
		at := b.r.IntN(len(c.Steps) - most + 1)
		c.Steps = c.Steps[at : at+most]
	}
	if len(c.Steps) == 0 {
		return b.fresh()
	}
	c.Burst = b.r.IntN(4) == 0
	b.restrict(c)
	return c
}

// fresh makes a conversation of nothing: mostly of a plot, changed or not, else some peers, each
// in a role, that know each other's names.
func (b *breeder) fresh() *Conv {
	b.sess = b.p.NewSession(codec.Options{WaiveAll: true})
	if len(b.plots) > 0 && b.r.IntN(4) > 0 {
		return b.staged()
	}
	c := &Conv{Burst: b.r.IntN(3) == 0}
	roles := make([]codec.Role, 1+b.r.IntN(3)) // connections
	for i := range roles {
		roles[i] = 1 << b.r.IntN(len(b.p.Roles))
	}
	for range 1 + b.r.IntN(fewSteps) {
		conn := b.r.IntN(len(roles))
		b.insert(c, len(c.Steps), conn, roles[conn])
	}
	b.restrict(c)
	return c
}

// staged makes a conversation of a plot.
func (b *breeder) staged() *Conv {
	c := &Conv{}
	b.play(c)
	for range b.r.IntN(3) {
		if len(c.Steps) > 0 {
			changes[b.r.IntN(len(changes))](b, c, func() *Conv { return nil })
		}
	}
	if b.r.IntN(3) > 0 {
		b.harvest(c, nil)
	}
	c.Burst = b.r.IntN(6) == 0
	b.restrict(c)
	return c
}

// restrict takes out what is not to be sent.
func (b *breeder) restrict(c *Conv) {
	c.Steps = slices.DeleteFunc(c.Steps, func(s Step) bool {
		return s.Conn >= maxConns || s.Type != nil && has(b.d.never, s.Type.Name) || s.Verb == transcript.Nothing && !b.slow
	})
}

// insert inserts a message that somebody in the role may send.
func (b *breeder) insert(c *Conv, at, conn int, role codec.Role) {
	o := gen.Options{Tame: b.r.IntN(4) > 0}
	if b.r.IntN(3) == 0 && slices.ContainsFunc(c.Steps[:at], func(s Step) bool { return b.gives[s.Type] }) {
		o.Rows = b.takers // of what the server has given
	}
	m := gen.Message(b.r, b.p, codec.Peer, role, o)
	if m.Type == nil {
		return
	}
	s := Step{ID: c.nextID(), Conn: conn, Verb: transcript.Send, Type: m.Type, CRLF: m.CRLF}
	for i, v := range m.Args {
		s.Args = append(s.Args, Arg{Value: b.d.placed(argField(m.Type, i), v)})
		if assignedField(m.Type, i) != nil && at > 0 && b.r.IntN(8) > 0 {
			s.Args[i].Of = b.source(c, at)
		}
	}
	if len(s.Args) > 0 && b.r.IntN(4) == 0 {
		b.stretch(&s, b.r.IntN(len(s.Args)))
	}
	c.Steps = slices.Insert(c.Steps, at, s)
}

// resize gives an argument a length at which buffers end.
func (b *breeder) resize(s *Step, i int) {
	f := argField(s.Type, i)
	if f == nil || f.Kind != codec.Opaque && f.Kind != codec.Text || len(f.Values) > 0 || f.Width > 0 {
		return
	}
	n := lengths[b.r.IntN(len(lengths))]
	if f.Kind == codec.Text && b.r.IntN(3) > 0 || b.r.IntN(2) == 0 {
		// In turn, so that each comes about as soon as the others.
		if _, begun := b.turns[f]; !begun {
			b.turns[f] = b.r.IntN(len(limits))
		}
		b.turns[f] = (b.turns[f] + 1) % len(limits)
		n = limits[b.turns[f]]
	}
	if f.Max > 0 && b.r.IntN(3) == 0 {
		n = f.Max + max(0, b.r.IntN(5)-3)
	}
	v := s.Args[i].Value
	if len(v) == 0 || b.r.IntN(2) == 0 {
		v = []byte("xyz%\x00\r\n"[b.r.IntN(7):])[:1]
	}
	if f.Kind == codec.Text {
		v, n = []byte("x"), min(n, 8193)
	}
	v = bytes.Repeat(v, n/len(v)+1)[:n]
	if b.d.names[f.Name] != nil && n > len(place) {
		copy(v, place)
	}
	s.Args[i] = Arg{Value: v}
}

// source chooses a step before at behind which the server may have chosen something.
func (b *breeder) source(c *Conv, at int) int {
	for n := range 12 {
		k := b.r.IntN(at)
		if s := &c.Steps[k]; s.Type != nil && (n > 8 || b.gives[s.Type]) {
			return s.ID
		}
	}
	return 0
}

// notice learns behind which messages servers choose something.
func (b *breeder) notice(c *Conv, r *Record) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.From != codec.Server || e.Step < 0 || e.Step >= len(c.Steps) || c.Steps[e.Step].Type == nil || b.gives[c.Steps[e.Step].Type] {
			continue
		}
		for k := range e.Args {
			if assignedField(e.Type, k) != nil {
				b.gives[c.Steps[e.Step].Type] = true
			}
		}
	}
}

package input

import (
	"bytes"
	"slices"
	"strconv"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// volume is a kind of input that needs much time. Its cost is about the number of short messages that take the same
// time.
type volume struct {
	cost int
	make func(*Generator, *Input)
}

// volumes are the kinds, listed more often if they are to be more frequent.
var volumes = []volume{
	{200, (*Generator).converse}, {200, (*Generator).converse},
	{300, (*Generator).enlarge}, {300, (*Generator).enlarge},
	{1000, (*Generator).stopReading}, {1000, (*Generator).stopReading},
	{200, (*Generator).urgent}, {200, (*Generator).urgent},
	{1500, (*Generator).widen}, // without a model, 10,000 messages take less than their number suggests
}

// volumeShare limits the part of the messages for which these inputs count: one divided by volumeShare.
const volumeShare = 8

// addVolume makes an input large, or gives it an action that is slow to check, if it is time for such an input: the
// cost of the planned kind is covered by the inputs since the last one.
func (g *Generator) addVolume(in *Input) {
	v := volumes[g.planned]
	if g.covered < volumeShare*v.cost || len(in.Steps) == 0 {
		return
	}
	g.covered, g.planned = 0, g.r.IntN(len(volumes))
	in.Mode = OneByOne
	v.make(g, in)
}

// converse replaces an input with hundreds of messages on one connection.
func (g *Generator) converse(in *Input) {
	in.Steps = nil
	role := codec.Role(1) << g.r.IntN(len(g.p.Roles))
	for range 100 + g.r.IntN(200) {
		g.insert(in, len(in.Steps), 0, role)
	}
}

// enlarge makes the first payload of an input longer than 1 MiB.
func (g *Generator) enlarge(in *Input) {
	for _, s := range in.Steps {
		if s.Type == nil {
			continue
		}
		if at := s.Type.At(codec.Payload); at >= 0 && at < len(s.Args) {
			s.Args[at] = Arg{Value: bytes.Repeat([]byte("x"), 1<<20-1+g.r.IntN(3))}
			return
		}
	}
}

// stopReading lets a new client send a request thousands of times without reading the replies, in front of an input
// whose other clients the server must still serve. Often the requests or replies exceed every buffer of the system.
func (g *Generator) stopReading(in *Input) {
	const most = 128 << 10 // bytes of the requests of a step
	conn := in.Conns()
	isLong := func(t *codec.Type) bool { return t.Does == codec.Query || t.Does == codec.Echo }
	if conn >= MaxConns || !g.prepend(in, conn, isLong) {
		return
	}
	s := &in.Steps[0]
	if s.Type.Does == codec.Echo && len(s.Args) > 0 {
		s.Args[0].Value = bytes.Repeat([]byte("x"), 4<<10)
	}
	raw := g.encode(s)
	raw = bytes.Repeat(raw, most/max(1, len(raw)))
	*s = Step{ID: s.ID, Conn: conn, Verb: transcript.StopsReading}
	for range 1 + 7*g.r.IntN(2) {
		more := Step{ID: in.nextID(), Conn: conn, Verb: transcript.Raw, Bytes: raw}
		in.Steps = slices.Insert(in.Steps, 1+g.r.IntN(len(in.Steps)), more)
	}
}

// prepend inserts a random message of a type for which keep is true as the first step. It reports whether there is one.
func (g *Generator) prepend(in *Input, conn int, keep func(*codec.Type) bool) bool {
	types := slices.DeleteFunc(slices.Clone(g.p.Types),
		func(t *codec.Type) bool { return t.Req == 0 || t.Does == codec.Shutdown || !keep(t) })
	if len(types) == 0 {
		return false
	}
	s := Step{ID: in.nextID(), Conn: conn, Verb: transcript.Send, Type: types[g.r.IntN(len(types))]}
	for i, v := range gen.Of(g.r, s.Type, gen.Options{Safe: true}).Args {
		s.Args = append(s.Args, Arg{Value: placed(s.Type.FieldAt(i), v)})
	}
	in.Steps = slices.Insert(in.Steps, 0, s)
	return true
}

// urgent inserts a byte of urgent data.
func (g *Generator) urgent(in *Input) {
	at := 1 + g.r.IntN(len(in.Steps))
	in.Steps = slices.Insert(in.Steps, at,
		Step{ID: in.nextID(), Conn: in.Steps[at-1].Conn, Verb: transcript.Urgent, Bytes: []byte("x")})
}

// widen begins an input with up to 10,000 messages that name different queues.
func (g *Generator) widen(in *Input) {
	isNamed := func(t *codec.Type) bool { return t.At(codec.Queue) >= 0 && !MayWait(t) }
	if g.prepend(in, 0, isNamed) {
		g.multiply(in, 0, []int{1000, 3000, 10_000}[g.r.IntN(3)], true)
		in.Mode = Burst // a model needs too much time for so many queues
	}
}

// multiply repeats step at until there are n. If differ is set, the names and keys in each have a different number.
func (g *Generator) multiply(in *Input, at, n int, differ bool) {
	s, id := in.Steps[at], in.nextID()
	more := make([]Step, n-1)
	for i := range more {
		m := s
		m.ID, m.Args = id+i, slices.Clone(s.Args)
		for k, a := range m.Args {
			if f := s.Type.FieldAt(k); differ && a.Of == 0 && (isKey(f) || isName(f)) {
				m.Args[k].Value = strconv.AppendInt(slices.Clip(a.Value), int64(i), 10)
			}
		}
		more[i] = m
	}
	in.Steps = slices.Insert(in.Steps, at+1, more...)
}

// twin is a mutation that lets a new client do the same as another one at the same time.
func (g *Generator) twin(in *Input, _ func() *Input) {
	conn, to := g.any(in).Conn, in.Conns()
	if to >= MaxConns {
		return
	}
	for i := len(in.Steps) - 1; i >= 0; i-- {
		if in.Steps[i].Conn == conn {
			in.splice(i+1, in.Steps[i:i+1], func(int) int { return to })
		}
	}
}

// beside lets the clients of another input act at the same time on connections of their own, with common pauses. Inputs
// with pauses mostly wait, so this saves time.
func (in *Input) beside(o *Input) {
	n, shift := len(in.Steps), in.Conns()
	in.splice(n, o.Steps, func(conn int) int { return conn + shift })
	a, b := in.Steps[:n], in.Steps[n:]
	in.Steps = nil
	for len(a)+len(b) > 0 {
		i, k := untilPause(a), untilPause(b)
		in.Steps = append(append(in.Steps, a[:i]...), b[:k]...)
		if a, b = a[i:], b[k:]; len(a) > 0 && (len(b) == 0 || a[0].For >= b[0].For) {
			in.Steps = append(in.Steps, a[0])
		} else if len(b) > 0 {
			in.Steps = append(in.Steps, b[0])
		}
		a, b = a[min(1, len(a)):], b[min(1, len(b)):]
	}
}

// untilPause returns the number of steps before the first pause.
func untilPause(steps []Step) int {
	if i := slices.IndexFunc(steps, func(s Step) bool { return s.Verb == transcript.Nothing }); i >= 0 {
		return i
	}
	return len(steps)
}

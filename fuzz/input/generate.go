package input

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// Generator generates and mutates inputs for one protocol.
type Generator struct {
	p     *codec.Protocol
	r     *rand.Rand
	known *Known
	sess  codec.Session
	frame codec.Frame
	Slow  bool                 // inputs may contain pauses
	Long  bool                 // inputs may contain long pauses, because the clock of the server runs fast
	gives map[*codec.Type]bool // types of requests whose replies contain a value that the server chose

	chosenTypes []*codec.Type // types with a field for a value that the server chooses
	templates   [][]slot
	timed       [][]slot
	drains      [][]slot
	limitIndex  map[*codec.Field]int     // for each field, the index in gen.Lengths of the last one that was used in turn
	seen        map[codec.Meaning][]byte // examples of values that the server chose
	planned     int                      // index in volumes of the next kind
	covered     int                      // number of messages since the last input of such a kind
}

// NewRand returns the source of random numbers of a generator.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x66757a7a)) }

// NewGenerator returns a generator of inputs for the protocol p. The inputs depend only on r and on what the generator
// learns from replies.
func NewGenerator(p *codec.Protocol, r *rand.Rand, known *Known) *Generator {
	b := &Generator{p: p, r: r, known: known, gives: map[*codec.Type]bool{},
		limitIndex: map[*codec.Field]int{}, seen: map[codec.Meaning][]byte{}}
	sendable := func(t *codec.Type) bool { return t.Does != codec.Shutdown }
	b.templates = readTemplates(p, templates, sendable)
	b.timed = readTemplates(p, timedTemplates, sendable)
	b.drains = readTemplates(p, drains, func(t *codec.Type) bool { // only requests that need no job ID and do not block for long
		return sendable(t) && !ListsAll(t) && !t.Has(codec.JobID) && !t.Has(codec.UniqueID) && !t.Has(codec.TimeLimit) &&
			(t.Blocks != codec.Always || t.Has(codec.Timeout))
	})
	for _, t := range p.Types {
		if slices.ContainsFunc(t.Fields, func(f codec.Field) bool { return f.Assigned }) {
			b.chosenTypes = append(b.chosenTypes, t)
		}
	}
	return b
}

// Maximum numbers of steps. Most inputs have at most fewSteps, because many short inputs find more faults than a few
// long ones.
const (
	fewSteps = 9
	maxSteps = 24
)

// Mutate returns a mutation of an input. pick returns other inputs for splicing.
func (g *Generator) Mutate(parent *Input, pick func() *Input) *Input {
	in := parent.Clone()
	g.sess = g.p.NewSession(codec.Options{WaiveAll: true})
	for range 1 + g.r.IntN(4)*g.r.IntN(2) {
		mutations[g.r.IntN(len(mutations))](g, in, pick)
	}
	most := maxSteps
	if g.r.IntN(8) > 0 && len(parent.Steps) <= 2*maxSteps { // seldom make an input much longer, because long inputs take much time
		most = max(fewSteps, len(parent.Steps)+1)
	}
	if len(in.Steps) > most {
		at := g.r.IntN(len(in.Steps) - most + 1)
		in.Steps = in.Steps[at : at+most]
	}
	if len(in.Steps) == 0 {
		return g.Generate()
	}
	in.Mode = g.mode(4)
	g.restrict(in)
	return in
}

// List adds a request at the end of an input, on a new connection, for a list of all objects of the server, such as its
// jobs or workers: only the list may show what the input has changed. It adds none to messages that are sent together,
// because the list would depend on which of them the server has read.
func (g *Generator) List(in *Input) {
	var lists []*codec.Type
	for _, t := range g.p.Types {
		if t.Req != 0 && t.NumArgs() == 0 && ListsAll(t) {
			lists = append(lists, t)
		}
	}
	if conn := in.Conns(); len(lists) > 0 && conn < MaxConns && in.Mode == OneByOne {
		t := lists[g.r.IntN(len(lists))]
		in.Steps = append(in.Steps, Step{ID: in.nextID(), Conn: conn, Verb: transcript.Send, Type: t})
	}
}

// Generate returns a new input. Most often it fills a template and mutates the result up to two times. Otherwise it
// generates random messages of up to three peers, each with one role, that use the same names.
func (g *Generator) Generate() *Input {
	g.sess = g.p.NewSession(codec.Options{WaiveAll: true})
	if len(g.templates) > 0 && g.r.IntN(4) > 0 {
		return g.fromTemplate()
	}
	in := &Input{Mode: g.mode(3)}
	roles := make([]codec.Role, 1+g.r.IntN(3)) // by connection
	for i := range roles {
		roles[i] = 1 << g.r.IntN(len(g.p.Roles))
	}
	for range 1 + g.r.IntN(fewSteps) {
		conn := g.r.IntN(len(roles))
		g.insert(in, len(in.Steps), conn, roles[conn])
	}
	g.restrict(in)
	return in
}

// fromTemplate fills a random template and mutates the input up to twice. If Slow is set, most templates contain
// pauses. One input in manyShare repeats one message many times, and most inputs end with a connection that
// requests the jobs of a queue.
func (g *Generator) fromTemplate() *Input {
	in := &Input{}
	if g.Slow && len(g.timed) > 0 && g.r.IntN(8) > 0 {
		if g.fill(in, g.timed[g.r.IntN(len(g.timed))]); in.Conns() <= MaxConns/2 && g.r.IntN(2) == 0 {
			other := &Input{}
			g.fill(other, g.timed[g.r.IntN(len(g.timed))])
			in.beside(other)
		}
	} else {
		g.fill(in, g.templates[g.r.IntN(len(g.templates))])
	}
	many := g.r.IntN(manyShare) == 0 && !g.Slow && g.many(in)
	for range g.r.IntN(3) {
		if len(in.Steps) > 0 {
			mutations[g.r.IntN(len(mutations))](g, in, func() *Input { return nil })
		}
	}
	if g.r.IntN(3) > 0 {
		g.drain(in, nil)
	}
	if in.Mode = g.mode(6); many {
		in.Mode = OneByOne // in other modes, the server may stop reading because the client does not read its replies
	}
	if !g.Slow {
		g.addVolume(in)
	}
	g.restrict(in)
	return in
}

// Parameters of inputs that repeat one message to test the limits of queues and tables.
const (
	manyShare = 64  // one of manyShare inputs from templates repeats a message
	manyBytes = 256 // maximum length of a repeated message, in bytes
)

// counts contains the numbers of repetitions: slightly more than common sizes of tables, and the limits of 8-bit
// counters.
var counts = []int{17, 33, 65, 101, 129, 256, 257}

// many repeats a short message, with the same keys or with different keys, or adds values to the list in a message. It
// reports whether it has repeated a message.
func (g *Generator) many(in *Input) bool {
	if len(in.Steps) == 0 {
		return false
	}
	at := g.r.IntN(len(in.Steps))
	n := counts[g.r.IntN(len(counts))]
	s := in.Steps[at]
	if s.Type == nil || len(g.encode(&s)) > manyBytes {
		return false
	}
	if len(s.Type.Repeat) > 0 && len(s.Args) > 0 && g.r.IntN(2) == 0 {
		g.lengthen(&in.Steps[at], n)
		return false
	}
	g.multiply(in, at, n, g.r.IntN(2) == 0)
	return true
}

// lengthen repeats the first values of the list at the end of a message until the message has n values. If a field
// allows any bytes, each repeated value ends with a different number.
func (g *Generator) lengthen(s *Step, n int) {
	group := len(s.Type.Repeat)
	first := max(0, len(s.Args)-group)
	for first >= group && s.Type.FieldAt(first-group) == s.Type.FieldAt(first) {
		first -= group // the values of earlier groups may be equal
	}
	s.Args = slices.Clone(s.Args[:min(len(s.Args), first+group)])
	for i := 1; len(s.Args)+group <= n; i++ {
		for k := range group {
			a := s.Args[first+k]
			if f := s.Type.FieldAt(first + k); f != nil && (f.Kind == codec.Text || f.Kind == codec.Opaque) &&
				len(f.Values) == 0 {
				a.Value = strconv.AppendInt(slices.Clip(a.Value), int64(i), 10)
			}
			s.Args = append(s.Args, a)
		}
	}
}

// mode returns a random mode: Burst for one of n inputs, Joined for one of 2n, and otherwise OneByOne.
func (g *Generator) mode(n int) Mode {
	switch g.r.IntN(2 * n) {
	case 0, 1:
		return Burst
	case 2:
		return Joined
	}
	return OneByOne
}

// restrict removes the steps that must not be run: shutdown requests, steps on too many connections and, unless the
// generator is slow, pauses.
func (g *Generator) restrict(in *Input) {
	in.Steps = slices.DeleteFunc(in.Steps, func(s Step) bool {
		return s.Conn >= MaxConns || s.Type != nil && s.Type.Does == codec.Shutdown || s.Verb == transcript.Nothing && !g.Slow
	})
	g.covered += min(len(in.Steps), maxSteps)
}

// insert inserts a random message that a peer with the role may send.
func (g *Generator) insert(in *Input, at, conn int, role codec.Role) {
	o := gen.Options{Safe: g.r.IntN(4) > 0}
	if g.r.IntN(3) == 0 && slices.ContainsFunc(in.Steps[:at], func(s Step) bool { return g.gives[s.Type] }) {
		o.Types = g.chosenTypes // types with a field for a value that the server chose
	}
	m := gen.Message(g.r, g.p, codec.Peer, role, o)
	if m.Type == nil {
		return
	}
	s := Step{ID: in.nextID(), Conn: conn, Verb: transcript.Send, Type: m.Type, CRLF: m.CRLF}
	for i, v := range m.Args {
		s.Args = append(s.Args, g.arg(m.Type.FieldAt(i), v))
		if AssignedField(m.Type, i) != nil && at > 0 && g.r.IntN(8) > 0 {
			s.Args[i].Of = g.source(in, at)
		}
	}
	if len(s.Args) > 0 && g.r.IntN(4) == 0 {
		g.extreme(&s, g.r.IntN(len(s.Args)))
	}
	in.Steps = slices.Insert(in.Steps, at, s)
}

// arg returns an argument with a generated value. Times are often short, so that they end during a pause. If inputs
// contain no pauses, this is only the case for times that count from now.
func (g *Generator) arg(f *codec.Field, v []byte) Arg {
	if f == nil || f.Kind != codec.Number && f.Kind != codec.Signed {
		return Arg{Value: placed(f, v)}
	}
	now := f.Means == codec.StartTime
	if short := g.timer(f); short != nil && (g.Slow && g.r.IntN(8) > 0 || !g.Slow && now && g.r.IntN(2) == 0) {
		return Arg{Value: short, Now: now}
	}
	return Arg{Value: v}
}

// resize replaces an argument with a value whose length is a common buffer size or near one.
func (g *Generator) resize(s *Step, i int) {
	f := s.Type.FieldAt(i)
	if f == nil || f.Kind != codec.Opaque && f.Kind != codec.Text || len(f.Values) > 0 || f.Width > 0 {
		return
	}
	n := gen.Lengths[g.r.IntN(len(gen.Lengths))]
	if f.Kind == codec.Text && g.r.IntN(3) > 0 || g.r.IntN(2) == 0 {
		// Use the short lengths in turn, so that each of them is used soon.
		if _, begun := g.limitIndex[f]; !begun {
			g.limitIndex[f] = g.r.IntN(gen.ShortLengths)
		}
		g.limitIndex[f] = (g.limitIndex[f] + 1) % gen.ShortLengths
		n = gen.Lengths[g.limitIndex[f]]
	}
	if f.Max > 0 && g.r.IntN(3) == 0 {
		n = f.Max + max(0, g.r.IntN(5)-3)
	}
	v := s.Args[i].Value
	if len(v) == 0 || g.r.IntN(2) == 0 {
		v = []byte("xyz%\x00\r\n"[g.r.IntN(7):])[:1]
	}
	if f.Kind == codec.Text {
		v, n = []byte("x"), min(n, 8193)
	}
	v = bytes.Repeat(v, n/len(v)+1)[:n]
	if isName(f) && n > len(Placeholder) {
		copy(v, Placeholder)
	}
	s.Args[i] = Arg{Value: v}
}

// extreme sets an argument to a boundary value: a length near a common buffer size, a number at which arithmetic may
// overflow, or a part of a value that the server chose.
func (g *Generator) extreme(s *Step, i int) {
	f := s.Type.FieldAt(i)
	if f == nil || len(f.Values) > 0 || f.Assigned && s.Args[i].Of > 0 && g.r.IntN(4) > 0 {
		return
	}
	if v := g.seen[f.Means]; f.Assigned && len(v) > 0 && g.r.IntN(2) == 0 {
		s.Args[i] = Arg{Value: v[:g.r.IntN(len(v))]} // the beginning of a valid value
		return
	}
	if f.Kind == codec.Number || f.Kind == codec.Signed || f.Kind == codec.Uint {
		s.Args[i] = Arg{Value: gen.Boundary(g.r, f)}
		return
	}
	g.resize(s, i)
}

// source returns the ID of a random message among the first at steps, preferably one whose reply contains a value that
// the server chose. It returns 0 if it finds none.
func (g *Generator) source(in *Input, at int) int {
	for n := range 12 {
		k := g.r.IntN(at)
		if s := &in.Steps[k]; s.Type != nil && (n > 8 || g.gives[s.Type]) {
			return s.ID
		}
	}
	return 0
}

// AddChosen records that the reply to a message of type t contains a value for f that the server chose. If certain is
// set, it also keeps the value as an example. On a server that other inputs have used, the value may depend on time, so
// certain must not be set.
func (g *Generator) AddChosen(t *codec.Type, f *codec.Field, value []byte, certain bool) {
	if certain {
		g.seen[f.Means] = bytes.Clone(value)
	}
	g.gives[t] = true
}

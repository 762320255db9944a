package fuzz

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// generator generates and mutates inputs for one protocol.
type generator struct {
	p     *codec.Protocol
	d     *contractTraits
	r     *rand.Rand
	known *Known
	sess  codec.Session
	frame codec.Frame
	slow  bool                 // inputs may contain pauses
	long  bool                 // inputs may contain long pauses, because the clock of the server runs fast
	gives map[*codec.Type]bool // types of requests whose replies contain a value that the server chose

	chosenTypes []*codec.Type // types with a field for a value that the server chooses
	templates   [][]slot
	timed       [][]slot
	drains      [][]slot
	limitIndex  map[*codec.Field]int     // for each field, the index in limits of the last length that was used
	seen        map[codec.Meaning][]byte // examples of values that the server chose
}

func newGenerator(p *codec.Protocol, r *rand.Rand, known *Known) *generator {
	b := &generator{p: p, d: traitsOf(p), r: r, known: known, gives: map[*codec.Type]bool{},
		limitIndex: map[*codec.Field]int{}, seen: map[codec.Meaning][]byte{}}
	sendable := func(t *codec.Type) bool { return t.Does != codec.Shutdown }
	b.templates = readTemplates(p, templates, sendable)
	b.timed = readTemplates(p, timedTemplates, sendable)
	b.drains = readTemplates(p, drains, func(t *codec.Type) bool { // only requests that need no job ID and do not block for long
		return sendable(t) && !listsAll(t) && !t.Has(codec.JobID) && !t.Has(codec.UniqueID) && !t.Has(codec.TimeLimit) &&
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

// mutate returns a mutation of an input. pick returns other inputs for splicing.
func (b *generator) mutate(parent *Input, pick func() *Input) *Input {
	c := parent.clone()
	b.sess = b.p.NewSession(codec.Options{WaiveAll: true})
	for range 1 + b.r.IntN(4)*b.r.IntN(2) {
		mutations[b.r.IntN(len(mutations))](b, c, pick)
	}
	most := maxSteps
	if b.r.IntN(8) > 0 && len(parent.Steps) <= 2*maxSteps { // seldom make an input much longer, because long inputs take much time
		most = max(fewSteps, len(parent.Steps)+1)
	}
	if len(c.Steps) > most {
		at := b.r.IntN(len(c.Steps) - most + 1)
		c.Steps = c.Steps[at : at+most]
	}
	if len(c.Steps) == 0 {
		return b.generate()
	}
	c.Mode = b.mode(4)
	b.restrict(c)
	return c
}

// generate returns a new input. Most often it fills a template and mutates the result up to two times. Otherwise it
// generates random messages of up to three peers, each with one role, that use the same names.
func (b *generator) generate() *Input {
	b.sess = b.p.NewSession(codec.Options{WaiveAll: true})
	if len(b.templates) > 0 && b.r.IntN(4) > 0 {
		return b.fromTemplate()
	}
	c := &Input{Mode: b.mode(3)}
	roles := make([]codec.Role, 1+b.r.IntN(3)) // by connection
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

func (b *generator) fromTemplate() *Input {
	c := &Input{}
	if b.slow && len(b.timed) > 0 && b.r.IntN(2) == 0 {
		b.fill(c, b.timed[b.r.IntN(len(b.timed))])
	} else {
		b.fill(c, b.templates[b.r.IntN(len(b.templates))])
	}
	many := b.r.IntN(manyShare) == 0 && !b.slow && b.many(c)
	for range b.r.IntN(3) {
		if len(c.Steps) > 0 {
			mutations[b.r.IntN(len(mutations))](b, c, func() *Input { return nil })
		}
	}
	if b.r.IntN(3) > 0 {
		b.drain(c, nil)
	}
	if c.Mode = b.mode(6); many {
		c.Mode = OneByOne // in other modes, the server may stop reading because the client does not read its replies
	}
	b.restrict(c)
	return c
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
func (b *generator) many(c *Input) bool {
	if len(c.Steps) == 0 {
		return false
	}
	at := b.r.IntN(len(c.Steps))
	n := counts[b.r.IntN(len(counts))]
	s := c.Steps[at]
	if s.Type == nil || len(b.encode(&s)) > manyBytes {
		return false
	}
	if len(s.Type.Repeat) > 0 && len(s.Args) > 0 && b.r.IntN(2) == 0 {
		b.lengthen(&c.Steps[at], n)
		return false
	}
	differ := b.r.IntN(2) == 0
	more := make([]Step, n-1)
	for i := range more {
		m := s
		m.ID, m.Args = c.nextID()+i, slices.Clone(s.Args)
		for k, a := range m.Args {
			if differ && isKey(s.Type.FieldAt(k)) {
				m.Args[k].Value = strconv.AppendInt(slices.Clip(a.Value), int64(i), 10)
			}
		}
		more[i] = m
	}
	c.Steps = slices.Insert(c.Steps, at+1, more...)
	return true
}

// lengthen repeats the last values of a message that ends with a list until the message has n values. If a field allows
// any bytes, each repeated value ends with a different number.
func (b *generator) lengthen(s *Step, n int) {
	group := len(s.Type.Repeat)
	first := max(0, len(s.Args)-group)
	s.Args = slices.Clone(s.Args)
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
func (b *generator) mode(n int) Mode {
	switch b.r.IntN(2 * n) {
	case 0, 1:
		return Burst
	case 2:
		return Joined
	}
	return OneByOne
}

// restrict removes the steps that must not be run: shutdown requests, steps on too many connections and, unless the
// generator is slow, pauses.
func (b *generator) restrict(c *Input) {
	c.Steps = slices.DeleteFunc(c.Steps, func(s Step) bool {
		return s.Conn >= maxConns || s.Type != nil && s.Type.Does == codec.Shutdown || s.Verb == transcript.Nothing && !b.slow
	})
}

// insert inserts a random message that a peer with the role may send.
func (b *generator) insert(c *Input, at, conn int, role codec.Role) {
	o := gen.Options{Safe: b.r.IntN(4) > 0}
	if b.r.IntN(3) == 0 && slices.ContainsFunc(c.Steps[:at], func(s Step) bool { return b.gives[s.Type] }) {
		o.Types = b.chosenTypes // types with a field for a value that the server chose
	}
	m := gen.Message(b.r, b.p, codec.Peer, role, o)
	if m.Type == nil {
		return
	}
	s := Step{ID: c.nextID(), Conn: conn, Verb: transcript.Send, Type: m.Type, CRLF: m.CRLF}
	for i, v := range m.Args {
		s.Args = append(s.Args, b.arg(m.Type.FieldAt(i), v))
		if assignedField(m.Type, i) != nil && at > 0 && b.r.IntN(8) > 0 {
			s.Args[i].Of = b.source(c, at)
		}
	}
	if len(s.Args) > 0 && b.r.IntN(4) == 0 {
		b.extreme(&s, b.r.IntN(len(s.Args)))
	}
	c.Steps = slices.Insert(c.Steps, at, s)
}

// arg returns an argument with a generated value. If inputs may contain pauses, times and durations are often 1 or 2
// seconds, so that they end during a pause.
func (b *generator) arg(f *codec.Field, v []byte) Arg {
	if f == nil || f.Kind != codec.Number || b.r.IntN(2) == 0 {
		return Arg{Value: placed(f, v)}
	}
	seconds := 1 + b.r.IntN(2)
	switch f.Means {
	case codec.StartTime:
		return Arg{Value: strconv.AppendInt(nil, int64(seconds), 10), Now: true}
	case codec.Delay, codec.TimeLimit, codec.Timeout:
		if b.slow && f.Unit > 0 {
			return Arg{Value: strconv.AppendInt(nil, int64(time.Duration(seconds)*time.Second/f.Unit), 10)}
		}
	}
	return Arg{Value: v}
}

// pause returns the random duration of a pause.
func (b *generator) pause() time.Duration {
	d := pauses[b.r.IntN(len(pauses))]
	if b.long && b.r.IntN(4) == 0 {
		d *= 5
	}
	return d
}

// resize replaces an argument with a value whose length is a common buffer size or near one.
func (b *generator) resize(s *Step, i int) {
	f := s.Type.FieldAt(i)
	if f == nil || f.Kind != codec.Opaque && f.Kind != codec.Text || len(f.Values) > 0 || f.Width > 0 {
		return
	}
	n := lengths[b.r.IntN(len(lengths))]
	if f.Kind == codec.Text && b.r.IntN(3) > 0 || b.r.IntN(2) == 0 {
		// Use the limits in turn, so that each of them is used soon.
		if _, begun := b.limitIndex[f]; !begun {
			b.limitIndex[f] = b.r.IntN(len(limits))
		}
		b.limitIndex[f] = (b.limitIndex[f] + 1) % len(limits)
		n = limits[b.limitIndex[f]]
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
	if isName(f) && n > len(placeholder) {
		copy(v, placeholder)
	}
	s.Args[i] = Arg{Value: v}
}

// extreme sets an argument to a boundary value: a length near a common buffer size, a number at which arithmetic may
// overflow, or a part of a value that the server chose.
func (b *generator) extreme(s *Step, i int) {
	f := s.Type.FieldAt(i)
	if f == nil || len(f.Values) > 0 || f.Assigned && s.Args[i].Of > 0 && b.r.IntN(4) > 0 {
		return
	}
	if v := b.seen[f.Means]; f.Assigned && len(v) > 0 && b.r.IntN(2) == 0 {
		s.Args[i] = Arg{Value: v[:b.r.IntN(len(v))]} // the beginning of a valid value
		return
	}
	if f.Kind == codec.Number || f.Kind == codec.Signed || f.Kind == codec.Uint {
		s.Args[i] = Arg{Value: b.boundary(f)}
		return
	}
	b.resize(s, i)
}

// boundary returns a number near a limit of the field or of an integer type.
func (b *generator) boundary(f *codec.Field) []byte {
	n := uint64(1)<<widths[b.r.IntN(len(widths))] + uint64(b.r.IntN(3)) - 1
	switch b.r.IntN(6) {
	case 0:
		n = uint64(b.r.IntN(3)) - 1
	case 1:
		n = f.Lo
	case 2:
		n = f.Hi - uint64(b.r.IntN(2))
	}
	if f.Kind == codec.Uint {
		v := make([]byte, f.Width)
		for i := range v {
			v[f.Width-1-i] = byte(n >> (8 * i))
		}
		return v
	}
	if f.Hi > 0 && n > f.Hi+1 {
		n = f.Hi
	}
	if f.Kind == codec.Signed {
		return strconv.AppendInt(nil, int64(n), 10)
	}
	return strconv.AppendUint(nil, n, 10)
}

// widths contains the sizes of integer types, in bits without the sign where it matters.
var widths = []int{7, 8, 15, 16, 31, 32, 63}

// source returns the ID of a random message among the first at steps, preferably one whose reply contains a value that
// the server chose. It returns 0 if it finds none.
func (b *generator) source(c *Input, at int) int {
	for n := range 12 {
		k := b.r.IntN(at)
		if s := &c.Steps[k]; s.Type != nil && (n > 8 || b.gives[s.Type]) {
			return s.ID
		}
	}
	return 0
}

// addNames records which types of requests have replies with a value that the server chose. If certain is set, it also
// keeps these values as examples. On a server that other inputs have used, the values may depend on time, so certain
// must not be set.
func (b *generator) addNames(c *Input, r *Record, certain bool) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.From != codec.Server || e.Step < 0 || e.Step >= len(c.Steps) || c.Steps[e.Step].Type == nil {
			continue
		}
		for k := range e.Args {
			if f := assignedField(e.Type, k); f != nil {
				if certain {
					b.seen[f.Means] = bytes.Clone(e.Args[k])
				}
				b.gives[c.Steps[e.Step].Type] = true
			}
		}
	}
}

// Package gen makes messages and mutations of them from a protocol's rows: for
// laws, for models and for the fuzzer. Whatever it makes depends on its source of
// randomness alone, so that a seed tells all of it.
//
// Names come from small pools, so that conversations meet: what one peer submits
// another can do. Beside them stand the bounds of what a row allows, and bytes at
// random.
package gen

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"jobwire/codec"
)

// Options bound what is made. The zero value is everything that the rows allow.
type Options struct {
	// Rows are those to choose from, if they fit the side and the role; nil is all.
	Rows []*codec.Type

	// Tame values are those of the pools, small numbers and short data: a
	// conversation of them gets far.
	Tame bool

	MaxData int // bytes of the longest value; 0 is 4096
	MaxLine int // bytes of the longest value in a line; 0 is 200
}

// New returns the source of randomness of a seed.
func New(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6a6f6277697265)) }

// Message makes a legal message that the side may send on the connection of the
// role. Whether a reply is due is up to the caller. It returns a message without
// a Type if there is none to choose from.
func Message(r *rand.Rand, p *codec.Protocol, from codec.Side, role codec.Role, o Options) codec.Message {
	var rows []*codec.Type
	for _, t := range p.Sent(from, role) {
		if o.Rows == nil || slices.Contains(o.Rows, t) {
			rows = append(rows, t)
		}
	}
	if len(rows) == 0 {
		return codec.Message{}
	}
	return Of(r, rows[r.IntN(len(rows))], o)
}

// Of makes a legal message of the row.
func Of(r *rand.Rand, t *codec.Type, o Options) codec.Message {
	if o.MaxData == 0 {
		o.MaxData = 4096
	}
	if o.MaxLine == 0 {
		o.MaxLine = 200
	}
	m := maker{r: r, row: t, o: o}
	msg := codec.Message{Type: t, CRLF: t.End == "\n" && r.IntN(4) == 0}
	if t.Examples != nil {
		for _, v := range t.Examples(r.IntN) {
			msg.Args = append(msg.Args, []byte(v))
		}
		return msg
	}
	complete := true
	for i := range t.Fields {
		f := &t.Fields[i]
		if f.Optional && r.IntN(3) == 0 {
			complete = false
			break
		}
		m.add(f, &msg)
	}
	if len(t.Repeat) > 0 && complete {
		fixed := len(msg.Args)
		for range m.repetitions() {
			before := len(msg.Args)
			for i := range t.Repeat {
				m.add(&t.Repeat[i], &msg)
			}
			if repeats(t, msg.Args[fixed:]) {
				msg.Args = msg.Args[:before]
			}
		}
	}
	return msg
}

// repeats reports whether the last group of repeated fields has a value that must be unique and is not.
func repeats(t *codec.Type, args [][]byte) bool {
	n := len(t.Repeat)
	for i := range t.Repeat {
		if !t.Repeat[i].Unique || len(args) < n {
			continue
		}
		last := args[len(args)-n+i]
		for k := i; k < len(args)-n; k += n {
			if bytes.Equal(args[k], last) {
				return true
			}
		}
	}
	return false
}

// maker makes one message.
type maker struct {
	r     *rand.Rand
	row   *codec.Type
	o     Options
	sized bool // a length stands before the value, which may hold any bytes
}

// add adds the value of a field, or notes what framing tells of those behind it.
func (m *maker) add(f *codec.Field, msg *codec.Message) {
	switch {
	case f.Kind == codec.Length:
		m.sized = true
	case !f.Derived():
		msg.Args = append(msg.Args, m.value(f))
	}
}

// repetitions says how often a group is repeated.
func (m *maker) repetitions() int {
	switch n := m.r.IntN(16); {
	case n < 14 || m.o.Tame:
		return n % 4
	default:
		return 1 << m.r.IntN(6)
	}
}

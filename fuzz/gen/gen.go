// Package gen generates and mutates messages, based on the message types of a protocol. The tests of the codecs and
// models and the fuzzer use it. The results depend only on the source of random numbers, so a seed determines them.
//
// Names come from small sets, so that the messages of several peers refer to the same objects: for example, one peer
// submits jobs of a function for which another peer has registered. Other values are at the limits of the message type,
// or random bytes.
package gen

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"jobwire/codec"
)

// Options limit what is generated. The zero value allows everything that the message types allow.
type Options struct {
	// Types are the message types to choose from, if the side and the role may send them; nil: all.
	Types []*codec.Type

	// Safe restricts values to common examples, small numbers and short data. Conversations of such messages usually
	// continue for a long time without errors.
	Safe bool

	MaxData int // length limit of a value in bytes; 0: 4096
	MaxLine int // length limit of a value in a line, in bytes; 0: 200
}

// New returns a source of random numbers with the seed.
func New(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6a6f6277697265)) }

// Message returns a legal message that the side may send on a connection of the role. It does not take into account
// whether the peer expects the message at this point of the conversation. The result has no Type if o allows no message
// type.
func Message(r *rand.Rand, p *codec.Protocol, from codec.Side, role codec.Role, o Options) codec.Message {
	var msgTypes []*codec.Type
	for _, t := range p.Sent(from, role) {
		if o.Types == nil || slices.Contains(o.Types, t) {
			msgTypes = append(msgTypes, t)
		}
	}
	if len(msgTypes) == 0 {
		return codec.Message{}
	}
	return Of(r, msgTypes[r.IntN(len(msgTypes))], o)
}

// Of returns a legal message of type t.
func Of(r *rand.Rand, t *codec.Type, o Options) codec.Message {
	if o.MaxData == 0 {
		o.MaxData = 4096
	}
	if o.MaxLine == 0 {
		o.MaxLine = 200
	}
	m := messageGenerator{r: r, msgType: t, o: o}
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

// repeats reports whether the last group of repeated fields contains a value that must be unique and that an earlier
// group also contains.
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

// messageGenerator generates one message.
type messageGenerator struct {
	r       *rand.Rand
	msgType *codec.Type
	o       Options
	sized   bool // a length precedes the value, so the value may contain any bytes
}

// add generates the value of a field and appends it to the message. After a length field, it records that a length
// precedes the next values.
func (m *messageGenerator) add(f *codec.Field, msg *codec.Message) {
	switch {
	case f.Kind == codec.Length:
		m.sized = true
	case !f.Derived():
		msg.Args = append(msg.Args, m.value(f))
	}
}

// repetitions returns the random number of times that a group of fields is repeated.
func (m *messageGenerator) repetitions() int {
	switch n := m.r.IntN(16); {
	case n < 14 || m.o.Safe:
		return n % 4
	default:
		return 1 << m.r.IntN(6)
	}
}

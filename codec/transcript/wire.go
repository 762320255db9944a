package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jobwire/codec"
)

// wire is the reading of one actor's connection along a script, so that bytes
// can be understood beside what went before.
type wire struct {
	session codec.Session
	frame   codec.Frame
	part    [2][]byte // of a message that raw bytes have begun, by sender
	skip    [2]int    // bytes of a refused message that are still to come, by sender
}

func (r *parser) wire(a Actor) *wire {
	w := r.wires[a.Name]
	if w == nil {
		w = newWire(r.proto)
		r.wires[a.Name] = w
	}
	return w
}

func newWire(p *codec.Protocol) *wire {
	return &wire{session: p.NewSession(codec.Options{})}
}

// decode reads a whole message. The frame is good until the next call.
func (w *wire) decode(from codec.Side, b []byte) (*codec.Frame, int, error) {
	w.part[from] = nil
	n, err := w.session.Decode(from, b, &w.frame)
	return &w.frame, n, err
}

// raw reads bytes that need not be whole messages. What cannot be read is
// passed over: nobody has claimed that it can.
func (w *wire) raw(from codec.Side, b []byte) {
	b = append(w.part[from], b...)
	for len(b) > 0 {
		n := min(w.skip[from], len(b))
		w.skip[from] -= n
		if n == 0 {
			var err error
			if n, err = w.session.Decode(from, b, &w.frame); errors.Is(err, codec.ErrShort) {
				break
			}
			if n <= 0 {
				b = nil
				break
			}
			w.skip[from] = max(0, n-len(b))
		}
		b = b[min(n, len(b)):]
	}
	w.part[from] = b
}

// advance reads what a step puts on its actor's wire if it goes as its first choice
// has it.
func (r *parser) advance(st *Step) {
	w := r.wire(st.Peer)
	switch c := &st.Choices[0]; c.Verb {
	case Raw:
		w.raw(st.From, c.Bytes)
	case Send:
		m := codec.Message{Type: c.Type, Args: filled(c, nil), CRLF: c.CRLF}
		if r.encode(r.proto.NewSession(codec.Options{WaiveAll: true}), st.From, &m) == nil {
			w.decode(st.From, r.encoded)
		}
	}
}

// encode leaves the bytes of a message in r.encoded, until the next is encoded. They may
// be many megabytes, and all that is wanted of most is whether there are any.
func (r *parser) encode(s codec.Session, from codec.Side, m *codec.Message) error {
	b, err := s.Append(r.encoded[:0], from, m)
	if err == nil {
		r.encoded = b
	}
	return err
}

// judge tells whether the values written out in a message are legal for its
// row. Others are stood in for by values that are.
func (r *parser) judge(pos at, st *Step, c *Choice) *Error {
	err := r.legal(st.From, c, filled(c, nil))
	if err == nil {
		return nil
	}
	none := func(int) bool { return false }
	if r.legal(st.From, c, filled(c, none)) != nil {
		for i := range c.Args {
			if c.Args[i].Kind != Literal {
				return nil // The stand-ins may be at fault.
			}
		}
	} else {
		for i, a := range c.Args {
			only := func(k int) bool { return k == i }
			if bad := r.legal(st.From, c, filled(c, only)); bad != nil && a.Kind == Literal {
				return (at{pos.file, a.Line, a.Col}).errorf("%s", explain(c.Type, bad))
			}
		}
	}
	return pos.errorf("%s", explain(c.Type, err))
}

// explain words a codec's refusal, with its rule.
func explain(t *codec.Type, err error) string {
	var e *codec.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	what := e.Field
	if t != nil && t.Name != e.Field {
		what = t.Name + ", " + what
	}
	return fmt.Sprintf("%s: %s [%s]", what, e.Detail, e.Rule)
}

// legal encodes a message in a conversation of its own. A reply that is told
// by its request is legal if it is beside any that it may answer; if it is not,
// the first of them says why.
func (r *parser) legal(from codec.Side, c *Choice, args [][]byte) error {
	m := codec.Message{Type: c.Type, Args: args, CRLF: c.CRLF}
	var first error
	for i, t := range r.asks(from, c.Type) {
		s := r.proto.NewSession(codec.Options{})
		if t != nil {
			ask := Choice{Type: t}
			// The request is made of stand-ins: if it is refused, so is the reply, which says why.
			_ = r.encode(s, codec.Peer, &codec.Message{Type: t, Args: filled(&ask, nil)})
		}
		err := r.encode(s, from, &m)
		if err == nil {
			return nil
		}
		if i == 0 {
			first = err
		}
	}
	return first
}

// asks returns the rows that a message of row t may answer. A nil alone stands
// for none: the message needs no request.
func (r *parser) asks(from codec.Side, t *codec.Type) []*codec.Type {
	var rows []*codec.Type
	for _, q := range r.proto.Types {
		if from == codec.Server && slices.Contains(q.Replies, t.Name) {
			rows = append(rows, q)
		}
	}
	if rows == nil {
		return []*codec.Type{nil}
	}
	return rows
}

// filled returns the arguments of a choice, with stand-ins for those that are
// not literal, for literal ones that keep turns down, and for those that "..."
// leaves open.
func filled(c *Choice, keep func(i int) bool) [][]byte {
	var args [][]byte
	open := len(c.Args) == 0
	for i := range c.Args {
		a := &c.Args[i]
		switch {
		case a.Kind == Rest:
			open = i == len(c.Args)-1
		case a.Kind == Literal && (keep == nil || keep(i)):
			args = append(args, a.Value)
		default:
			args = append(args, standIn(c.field(i)))
		}
	}
	need, most, group := arity(c.Type)
	for open && !c.Unchecked && (len(args) < need || group > 0 && len(args) > most && (len(args)-most)%group != 0) {
		args = append(args, standIn(c.Type.FieldAt(len(args))))
	}
	return args
}

// standIn returns a value that is legal for a field.
func standIn(fd *codec.Field) []byte {
	if fd != nil {
		switch fd.Kind {
		case codec.Text:
			if len(fd.Values) > 0 {
				return []byte(fd.Values[0])
			}
			c := "x"
			if fd.Chars != "" && !strings.Contains(fd.Chars, c) {
				c = fd.Chars[:1]
			}
			return bytes.Repeat([]byte(c), max(1, fd.Width))
		case codec.Number:
			return fmt.Append(nil, fd.Lo)
		case codec.Signed:
			return []byte("0")
		case codec.Uint:
			return make([]byte, fd.Width)
		}
	}
	return []byte("x")
}

package transcript

import (
	"errors"
	"fmt"
	"slices"

	"jobwire/codec"
)

// wire is the reading of one actor's connection along a script, so that bytes
// can be understood beside what went before.
type wire struct {
	session codec.Session
	frame   codec.Frame
	streams [2]codec.Stream // of raw bytes
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
	s := p.NewSession(codec.Options{})
	return &wire{session: s, streams: codec.Streams(s)}
}

// decode reads a whole message. The frame is good until the next call.
func (w *wire) decode(from codec.Side, b []byte) (*codec.Frame, int, error) {
	s := &w.streams[from]
	s.Resume()
	n, found, bad := s.Read(b, &w.frame)
	switch found {
	case codec.Nothing:
		return &w.frame, 0, fmt.Errorf("expected a complete message of at least %d bytes, got %d bytes", s.Need(), len(b))
	case codec.Illegal:
		return &w.frame, n, bad
	}
	return &w.frame, n, nil
}

// raw reads bytes that need not be whole messages. What cannot be read is
// passed over: nobody has claimed that it can.
func (w *wire) raw(from codec.Side, b []byte) {
	s := &w.streams[from]
	if s.Lost() {
		s.Resume()
	}
	for range s.Feed(b, &w.frame) {
	}
}

// advance reads what a step puts on its actor's wire if it goes as its first choice
// has it.
func (r *parser) advance(st *Step) {
	w := r.wire(st.Peer)
	switch c := &st.Choices[0]; c.Verb {
	case Raw:
		w.raw(st.From, c.Bytes)
	case Send:
		m := codec.Message{Type: c.Type, Args: literals(c, nil), CRLF: c.CRLF}
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
// row. Samples stand for the others.
func (r *parser) judge(pos at, st *Step, c *Choice) *Error {
	err := r.legal(st.From, c, literals(c, nil))
	if err == nil {
		return nil
	}
	none := func(int) bool { return false }
	if r.legal(st.From, c, literals(c, none)) != nil {
		for i := range c.Args {
			if c.Args[i].Kind != Literal {
				return nil // The samples may be at fault.
			}
		}
	} else {
		for i, a := range c.Args {
			only := func(k int) bool { return k == i }
			if bad := r.legal(st.From, c, literals(c, only)); bad != nil && a.Kind == Literal {
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
			// If the request is refused, so is the reply, which says why.
			_ = r.encode(s, codec.Peer, t.Sample())
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
		if from == codec.Server && q.Ordered && slices.Contains(q.Replies, t.Name) {
			rows = append(rows, q)
		}
	}
	if rows == nil {
		return []*codec.Type{nil}
	}
	return rows
}

// literals returns the arguments of a choice with samples for those that are not literal,
// for literal ones that keep turns down, and for those that "..." leaves open.
func literals(c *Choice, keep func(i int) bool) (values [][]byte) {
	for _, a := range c.Fill(func(i int, fd *codec.Field) []byte {
		if i < len(c.Args) && c.Args[i].Kind == Literal && (keep == nil || keep(i)) {
			return nil
		}
		return fd.Sample("x")
	}) {
		values = append(values, a.Value)
	}
	return values
}

// Fill returns the arguments with the values that the function has for them: for the i-th of
// c.Args, which stays as it is where the value is nil, and with len(c.Args) for the ones that
// "..." leaves open, as many as must be there.
func (c *Choice) Fill(value func(i int, fd *codec.Field) []byte) (args []Arg) {
	least, once, group := c.Type.Arity()
	for i, a := range c.Args {
		if a.Kind == Rest {
			left := len(c.Args) - i - 1
			for len(args)+left < least || left == 0 && group > 0 && len(args) > once && (len(args)-once)%group != 0 {
				args = append(args, Arg{Value: value(len(c.Args), c.Type.FieldAt(len(args)))})
			}
			continue
		}
		if v := value(i, c.Type.FieldAt(len(args))); v != nil {
			a = Arg{Value: v}
		}
		args = append(args, a)
	}
	return args
}

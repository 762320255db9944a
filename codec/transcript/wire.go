package transcript

import (
	"errors"
	"fmt"
	"slices"

	"jobwire/codec"
)

// wire decodes one actor's connection in the order of the script, so that bytes are interpreted with the
// messages before them.
type wire struct {
	next    int // index of the first step of the script that has not been decoded
	session codec.Session
	frame   codec.Frame
	streams [2]codec.Stream // used for raw bytes
}

// wire returns an actor's connection after all steps of the script so far. Most scripts contain no bytes that
// need it, so earlier steps are decoded only now.
func (ps *parser) wire(a Actor) *wire {
	w := ps.wires[a.Name]
	if w == nil {
		w = newWire(ps.proto)
		ps.wires[a.Name] = w
	}
	for ; w.next < len(ps.script.Steps); w.next++ {
		if st := &ps.script.Steps[w.next]; st.Peer.Name == a.Name {
			ps.advance(w, st)
		}
	}
	return w
}

func newWire(p *codec.Protocol) *wire {
	s := p.NewSession(codec.Options{})
	return &wire{session: s, streams: codec.Streams(s)}
}

// decode decodes a whole message. The frame is valid until the next call.
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

// raw decodes bytes that need not be whole messages. It ignores bytes that cannot be decoded, because raw
// bytes may be invalid.
func (w *wire) raw(from codec.Side, b []byte) {
	s := &w.streams[from]
	if s.Lost() {
		s.Resume()
	}
	for range s.Feed(b, &w.frame) {
	}
}

// advance decodes what a step sends on its actor's connection if the first choice of the step happens.
func (ps *parser) advance(w *wire, st *Step) {
	switch c := &st.Choices[0]; c.Verb {
	case Raw:
		w.raw(st.From, c.Bytes)
	case Send:
		m := codec.Message{Type: c.Type, Args: literals(c, nil), CRLF: c.CRLF}
		if ps.encode(ps.proto.NewSession(codec.Options{WaiveAll: true}), st.From, &m) == nil {
			w.decode(st.From, ps.encoded)
		}
	}
}

// encode stores the encoded message in ps.encoded until the next call. The buffer is reused because a message
// can have many megabytes and most callers need only the error.
func (ps *parser) encode(s codec.Session, from codec.Side, m *codec.Message) error {
	b, err := s.Append(ps.encoded[:0], from, m)
	if err == nil {
		ps.encoded = b
	}
	return err
}

// checkLiterals checks whether the literal values of a message are legal for its type. Samples replace the other
// values.
func (ps *parser) checkLiterals(pos position, st *Step, c *Choice) *Error {
	err := ps.legal(st.From, c, literals(c, nil))
	if err == nil {
		return nil
	}
	none := func(int) bool { return false }
	if ps.legal(st.From, c, literals(c, none)) != nil {
		for i := range c.Args {
			if c.Args[i].Kind != Literal {
				return nil // the samples may be illegal
			}
		}
	} else {
		for i, a := range c.Args {
			only := func(k int) bool { return k == i }
			if bad := ps.legal(st.From, c, literals(c, only)); bad != nil && a.Kind == Literal {
				return (position{pos.file, a.Line, a.Col}).errorf("%s", explain(c.Type, bad))
			}
		}
	}
	return pos.errorf("%s", explain(c.Type, err))
}

// explain describes an error of the codec, with its rule.
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

// legal encodes a message in a new session. A reply whose decoding depends on its request is legal if it is
// legal after any of the requests that it may answer. Otherwise legal returns the error for the first of
// these requests.
func (ps *parser) legal(from codec.Side, c *Choice, args [][]byte) error {
	m := codec.Message{Type: c.Type, Args: args, CRLF: c.CRLF}
	var first error
	for i, t := range ps.asks(from, c.Type) {
		s := ps.proto.NewSession(codec.Options{})
		if t != nil {
			// If the request is refused, the reply is refused too, with an error that gives the reason.
			_ = ps.encode(s, codec.Peer, t.Sample())
		}
		err := ps.encode(s, from, &m)
		if err == nil {
			return nil
		}
		if i == 0 {
			first = err
		}
	}
	return first
}

// asks returns the types of the requests that a message of type t may answer. It returns a single nil if the
// message needs no request.
func (ps *parser) asks(from codec.Side, t *codec.Type) []*codec.Type {
	var msgTypes []*codec.Type
	for _, q := range ps.proto.Types {
		if from == codec.Server && q.Ordered && slices.Contains(q.Replies, t.Name) {
			msgTypes = append(msgTypes, q)
		}
	}
	if msgTypes == nil {
		return []*codec.Type{nil}
	}
	return msgTypes
}

// literals returns the arguments of a choice. It uses samples for arguments that are not literal, for literal
// arguments for which keep returns false, and for the arguments that "..." stands for.
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

// Fill returns the arguments with the values that the function returns. The function is called with i for
// c.Args[i], which stays unchanged if the value is nil, and with len(c.Args) for each argument that "..."
// stands for. Fill adds as few such arguments as a legal message needs.
func (c *Choice) Fill(value func(i int, fd *codec.Field) []byte) (args []Arg) {
	least, once, group := c.Type.Arity()
	for i, a := range c.Args {
		if a.Kind == Rest {
			left := len(c.Args) - i - 1
			// Add arguments until there are at least least, and those after the first once are whole groups.
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

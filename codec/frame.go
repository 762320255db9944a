package codec

import "slices"

// Frame is one message as it stood on the wire.
type Frame struct {
	Type  *Type // nil if the type could not be told
	From  Side
	Raw   []byte // the whole message
	Spans []Span // every byte of Raw, in order, in exactly one span
	Head  int    // Spans[:Head] stand before the row's Fields
	CRLF  bool   // the lines end CR LF, where the row allows that or LF
}

// Span places a field in Frame.Raw. The value is Raw[Off:End]. The separators
// around it belong to it too: its row reaches from the end of the row before to
// Next.
type Span struct {
	Field          *Field
	Off, End, Next int
}

// Value returns the value of the i-th span.
func (f *Frame) Value(i int) []byte {
	s := &f.Spans[i]
	if s.Field.Scalar {
		return f.scalar(s)
	}
	return f.Raw[s.Off:s.End:s.End]
}

// Row returns the bytes of the i-th span with its separators. The rows of a
// frame, joined, are Raw.
func (f *Frame) Row(i int) []byte {
	start := 0
	if i > 0 {
		start = f.Spans[i-1].Next
	}
	return f.Raw[start:f.Spans[i].Next:f.Spans[i].Next]
}

// Arg returns the i-th argument, the Args[i] of its [Message], or nil where it was left out.
func (f *Frame) Arg(i int) []byte {
	if f.Type == nil {
		return nil
	}
	if i = f.Head + f.Type.place(i); i >= len(f.Spans) || f.Spans[i].Field.Derived() {
		return nil
	}
	return f.Value(i)
}

// Uint returns the i-th argument as a big-endian number: 0 where it was left out.
func (f *Frame) Uint(i int) uint64 { return bigEndian(f.Arg(i)) }

// Message is what a message says, free of its framing.
type Message struct {
	Type *Type
	Args [][]byte // the values of the fields that are not derived, in order
	CRLF bool     // end lines with CR LF instead of LF, where the row allows both
}

// Message sets m to what f says. m.Args is reused, and aliases f.Raw.
func (f *Frame) Message(m *Message) {
	m.Type, m.CRLF, m.Args = f.Type, f.CRLF, m.Args[:0]
	for i := range f.Spans {
		if !f.Spans[i].Field.Derived() {
			m.Args = append(m.Args, f.Value(i))
		}
	}
}

// Clone returns a copy of f that shares no memory with it.
func (f *Frame) Clone() Frame {
	c := *f
	c.Raw, c.Spans = slices.Clone(f.Raw), slices.Clone(f.Spans)
	return c
}

// Reset empties f for reuse, keeping its memory.
func (f *Frame) Reset(from Side) {
	f.Type, f.From, f.Raw, f.Spans, f.Head, f.CRLF = nil, from, nil, f.Spans[:0], 0, false
}

package codec

import "slices"

// Frame is one message with its bytes and the positions of its fields.
type Frame struct {
	Type  *Type // nil if the type is unknown
	From  Side
	Raw   []byte // the whole message
	Spans []Span // in order; every byte of Raw is in exactly one span
	Head  int    // Spans[:Head] come before the type's Fields
	CRLF  bool   // the lines end with CR LF, where the type allows both CR LF and LF
}

// Span is the position of a field in Frame.Raw. The value is Raw[Off:End]. The span also includes the
// separators around the value: it extends from the Next of the previous span to its own Next.
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

// SpanBytes returns the bytes of the i-th span, including its separators. The bytes of all spans,
// one after another, are f.Raw.
func (f *Frame) SpanBytes(i int) []byte {
	start := 0
	if i > 0 {
		start = f.Spans[i-1].Next
	}
	return f.Raw[start:f.Spans[i].Next:f.Spans[i].Next]
}

// Arg returns the i-th argument, which is Args[i] of its [Message], or nil if it is absent.
func (f *Frame) Arg(i int) []byte {
	if f.Type == nil {
		return nil
	}
	if i = f.Head + f.Type.spanIndex(i); i >= len(f.Spans) || f.Spans[i].Field.Derived() {
		return nil
	}
	return f.Value(i)
}

// Uint returns the i-th argument as a big-endian number, or 0 if it is absent.
func (f *Frame) Uint(i int) uint64 { return BigEndian(f.Arg(i)) }

// Message is the content of a message without its framing.
type Message struct {
	Type *Type
	Args [][]byte // the values of the fields that are not derived, in order
	CRLF bool     // end lines with CR LF instead of LF, where the type allows both
}

// Message sets m to the content of f. It reuses the memory of m.Args; the values alias f.Raw.
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

// maxIdleSpans is the number of spans for which a frame keeps memory between messages.
const maxIdleSpans = 64 << 10

// Reset clears f for reuse. It keeps the memory of f.Spans, unless they were those of a long list.
func (f *Frame) Reset(from Side) {
	if cap(f.Spans) > maxIdleSpans {
		f.Spans = nil
	}
	f.Type, f.From, f.Raw, f.Spans, f.Head, f.CRLF = nil, from, nil, f.Spans[:0], 0, false
}

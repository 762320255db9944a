package transcript

import (
	"strings"

	"jobwire/codec"
)

// textBytes is the maximum number of bytes in a printed line of text. A line that is parsed may have any
// number of bytes.
const textBytes = 64

// isTextLine reports whether a line has the form of a line of text.
func isTextLine(s string) bool {
	if s == "" || s[0] != '"' {
		return false
	}
	n := quotedEnd(s)
	if n == 0 {
		return false
	}
	rest := strings.TrimLeft(strings.TrimLeft(s[n:], "*0123456789"), " \t")
	return rest == "" || rest[0] == '(' && rest[len(rest)-1] == ')'
}

// textLine parses a line of text: a quoted text and an optional label.
func (ps *parser) textLine(pos position, s string) (byteLine, *Error) {
	tok, n, err := lexQuoted(pos, s, &ps.quotes)
	if err != nil {
		return byteLine{}, err
	}
	rest := strings.TrimLeft(s[n:], " \t")
	w := byteLine{position: pos, b: tok.bytes(), quoted: s[:n], rest: rest, restCol: pos.col + len(s) - len(rest)}
	switch {
	case tok.text == "":
		return w, pos.errorf("expected at least one byte in the line, got none")
	case rest != "" && (rest[0] != '(' || rest[len(rest)-1] != ')'):
		return w, w.atColumn(w.restCol).errorf("expected the (Label) or nothing after the text, got something else")
	}
	return w, nil
}

// checkLabel checks the label of a line of text. The label may be omitted.
func (b *byteLine) checkLabel(want string) *Error {
	switch {
	case b.rest == "" || b.rest == want:
		return nil
	case want == "":
		return b.atColumn(b.restCol).errorf("expected no label, because no field begins in this line, got %s", b.rest)
	}
	return b.atColumn(b.restCol).errorf("expected the label %[2]s for these bytes, got %[1]s", b.rest, want)
}

// textLabel returns the label of a line of text: see appendTextLabel.
func textLabel(f *codec.Frame, k, off, end int) string {
	return string(appendTextLabel(nil, f, k, off, end))
}

// appendTextLabel appends the label of a line of text that contains the bytes of a message from off to end.
// The label lists the fields that begin in these bytes; the name of the message type replaces the field that
// identifies it. The label is empty if no field begins there. The fields before the k-th must end before off.
func appendTextLabel(dst []byte, f *codec.Frame, k, off, end int) []byte {
	start := 0
	if k > 0 {
		start = f.Spans[k-1].Next
	}
	before := "(" // the text before the next name
	for ; k < len(f.Spans) && start < end; k++ {
		s := &f.Spans[k]
		if start >= off && s.Next > start {
			name, separator := s.Field.Name, ", "
			if s.Field.Kind == codec.Code && f.Type != nil {
				if name = f.Type.Name; before == "(" { // the message's word
					separator = ": "
				}
			}
			dst = append(append(dst, before...), name...)
			before = separator
		}
		start = s.Next
	}
	if before == "(" {
		return dst
	}
	return append(dst, ')')
}

// quotedColumn returns the offset in a quoted text of its k-th byte, counting repetitions, or of its closing
// quote if end is true.
func quotedColumn(s string, k int, end bool) int {
	stop := quotedEnd(s) - 1
	if end {
		return stop
	}
	for i := 1; ; k-- {
		if i == stop {
			i = 1 // the text is repeated
		}
		if k == 0 {
			return i
		}
		switch {
		case s[i] != '\\':
			i++
		case s[i+1] == 'x':
			i += 4
		default:
			i += 2
		}
	}
}

// appendTextLine appends the bytes of a segment from at to end as a line of text.
func (p *Printer) appendTextLine(dst []byte, f *codec.Frame, s *segment, at, end int) []byte {
	dst = append(dst, '"')
	width, first := 2, at == 0
	for _, part := range p.parts[s.parts:s.partsEnd] {
		stop := min(part.end, end)
		if stop <= at {
			continue
		}
		dst = p.paint(dst, part.color)
		n := len(dst)
		dst = appendEscaped(dst, s.b[at:stop], quotedEscapes)
		width += len(dst) - n
		dst = p.unpaint(dst, part.color)
		at = stop
	}
	dst = append(dst, '"')
	if first {
		n := len(dst)
		dst = pad(dst, n+max(2, labelColumn-width))
		padded := len(dst)
		if dst = p.appendLabel(dst, f, s); len(dst) == padded {
			dst = dst[:n]
		}
	}
	return append(dst, '\n')
}

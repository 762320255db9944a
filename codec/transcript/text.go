package transcript

import (
	"strings"

	"jobwire/codec"
)

// textBytes is what a printed row of text holds at most; a line that is read may
// hold any number.
const textBytes = 64

// isTextRow reports whether a line has the form of a row of text.
func isTextRow(s string) bool {
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

// textRow reads a row of text: a quoted text and, if it has one, the label.
func (r *parser) textRow(pos at, s string) (row, *Error) {
	text, n, err := lexQuoted(pos, s, &r.room)
	if err != nil {
		return row{}, err
	}
	rest := strings.TrimLeft(s[n:], " \t")
	w := row{at: pos, b: []byte(text), quoted: s[:n], rest: rest, restCol: pos.col + len(s) - len(rest)}
	switch {
	case text == "":
		return w, pos.errorf("expected at least one byte in the line, got none")
	case rest != "" && (rest[0] != '(' || rest[len(rest)-1] != ')'):
		return w, w.to(w.restCol).errorf("expected the (Label) or nothing after the text, got something else")
	}
	return w, nil
}

// checkLabel compares the label of a row of text, which may be left out.
func (w *row) checkLabel(want string) *Error {
	switch {
	case w.rest == "" || w.rest == want:
		return nil
	case want == "":
		return w.to(w.restCol).errorf("expected no label, because no field begins in this line, got %s", w.rest)
	}
	return w.to(w.restCol).errorf("expected the label %[2]s for these bytes, got %[1]s", w.rest, want)
}

// textLabel returns the label of a row of text: see appendTextLabel.
func textLabel(f *codec.Frame, k, off, end int) string {
	return string(appendTextLabel(nil, f, k, off, end))
}

// appendTextLabel appends the label of a row of text, which holds the bytes from off
// to end of a message: the fields that begin there, and the row's own name for the
// field that tells it. It is empty if none begins. Fields before the k-th end
// before off.
func appendTextLabel(dst []byte, f *codec.Frame, k, off, end int) []byte {
	start := 0
	if k > 0 {
		start = f.Spans[k-1].Next
	}
	before := "(" // the next name
	for ; k < len(f.Spans) && start < end; k++ {
		s := &f.Spans[k]
		if start >= off && s.Next > start {
			name, behind := s.Field.Name, ", "
			if s.Field.Kind == codec.Code && f.Type != nil {
				if name = f.Type.Name; before == "(" { // the message's word
					behind = ": "
				}
			}
			dst = append(append(dst, before...), name...)
			before = behind
		}
		start = s.Next
	}
	if before == "(" {
		return dst
	}
	return append(dst, ')')
}

// quotedColumn returns where the k-th byte of a quoted text stands in it, its
// repetitions counted, or its closing quote.
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

// appendTextRow appends the bytes of a segment from at to end as a row of text.
func (p *Printer) appendTextRow(dst []byte, f *codec.Frame, s *segment, at, end int) []byte {
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

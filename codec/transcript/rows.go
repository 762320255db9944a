package transcript

import (
	"bytes"
	"fmt"

	"jobwire/codec"
)

// Columns of a row, as the Gearman document sets them.
const (
	textColumn  = 27
	labelColumn = 40
)

// Printer writes messages as they come off a wire, those of text rows as text.
// Its listings are transcripts, unless they are folded, coloured or of a broken
// message.
type Printer struct {
	Protocol *codec.Protocol
	Hex      bool // text rows in hex too
	Fold     int  // rows that a field is cut to; 0 is no limit
	Color    bool // with the escape sequences of terminals
}

// AppendFrame appends a message in byte form. The actor is the connecting end,
// whichever of them sent it.
func (p *Printer) AppendFrame(dst []byte, actor string, f *codec.Frame) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, f.From), '\n')
	return p.appendSegments(dst, p.segments(f, f.Raw), -1, "")
}

// AppendBroken appends bytes that the decoder refused: rows for the fields that
// it read before, the rest as raw rows, and a line below the offending byte that
// names the rule. f is what the decoder left; raw is what it was given, or as
// much of it as is worth showing.
func (p *Printer) AppendBroken(dst []byte, actor string, f *codec.Frame, raw []byte, e *codec.Error) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, f.From), '\n')
	text := fmt.Sprintf("%s: %s", e.Rule, e.Detail)
	segs := p.segments(f, raw)
	if len(segs) == 0 {
		return p.appendMark(dst, 0, text)
	}
	return p.appendSegments(dst, segs, min(max(e.Offset, 0), len(raw)), text)
}

// AppendLine appends a message in line form.
func (p *Printer) AppendLine(dst []byte, actor string, f *codec.Frame) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, f.From), ": "...)
	if f.Type == nil {
		return append(appendRaw(append(dst, "raw"...), f.Raw), '\n')
	}
	dst = append(dst, f.Type.Name...)
	args := 0
	for i := range f.Spans {
		fd := f.Spans[i].Field
		if fd.Derived() {
			continue
		}
		c := colorOf(fd, &args)
		dst = p.paint(append(dst, ' '), c)
		dst = appendValue(dst, fd, f.Value(i), p.Fold*rowBytes)
		dst = p.unpaint(dst, c)
	}
	if f.CRLF && f.Type.End == "\n" {
		dst = append(dst, " crlf"...)
	}
	return append(dst, '\n')
}

// AppendEvent appends a step without arguments: a connection that opens,
// closes, half-closes or resets.
func (p *Printer) AppendEvent(dst []byte, actor string, from codec.Side, v Verb) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, from), ": "...)
	return append(append(dst, v.String()...), '\n')
}

// textOf returns what stands in the text column beside b, which is all of a
// segment or a part of it.
func textOf(s *segment, b []byte) []byte {
	if s.fd != nil && isBinary(s.fd) && len(b) == len(s.b) {
		return fmt.Append(nil, uintOf(b))
	}
	return appendText(nil, b)
}

// appendText appends b as the text column has it. Blanks at its ends are
// escaped, where nobody could see them.
func appendText(dst, b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		dst, b = append(dst, `\x20`...), b[1:]
	}
	inner := bytes.TrimRight(b, " ")
	dst = appendEscaped(dst, inner, "")
	for range len(b) - len(inner) {
		dst = append(dst, `\x20`...)
	}
	return dst
}

func (p *Printer) appendRow(dst []byte, color, hex string, text []byte, label string) []byte {
	dst = p.paint(dst, color)
	line := len(dst)
	dst = pad(append(dst, hex...), line+textColumn)
	dst = append(dst, text...)
	if label != "" {
		dst = append(pad(append(dst, "  "...), line+labelColumn), label...)
	}
	return append(p.unpaint(dst, color), '\n')
}

// appendMark appends a line that points at the byte in a column.
func (p *Printer) appendMark(dst []byte, column int, text string) []byte {
	dst = p.paint(dst, red)
	dst = pad(dst, len(dst)+column)
	dst = append(append(dst, "^^ "...), text...)
	return append(p.unpaint(dst, red), '\n')
}

// pad appends blanks up to a length.
func pad(dst []byte, n int) []byte {
	for len(dst) < n {
		dst = append(dst, ' ')
	}
	return dst
}

// Escape sequences of terminals.
const (
	dim = "\x1b[2m"
	red = "\x1b[1;31m"
	off = "\x1b[0m"
)

// palette colours the arguments of a message in turn.
var palette = [...]string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m"}

// colorOf returns a field's colour. args counts the arguments before it.
func colorOf(fd *codec.Field, args *int) string {
	if fd.Derived() {
		return dim
	}
	*args++
	return palette[(*args-1)%len(palette)]
}

func (p *Printer) paint(dst []byte, color string) []byte {
	if p.Color {
		dst = append(dst, color...)
	}
	return dst
}

func (p *Printer) unpaint(dst []byte, color string) []byte {
	if p.Color && color != "" {
		dst = append(dst, off...)
	}
	return dst
}

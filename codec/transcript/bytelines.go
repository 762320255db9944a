package transcript

import (
	"fmt"
	"strconv"

	"jobwire/codec"
	"jobwire/internal/prose"
)

// Columns of a line of hex, as in the Gearman specification.
const (
	textColumn  = 27
	labelColumn = 40
)

const blanks = "                                        "

// Printer writes messages in byte or line form, with the messages of text protocols as text. Its output is a
// transcript, unless the listing is folded, colored or of an invalid message. A Printer must not be used by
// several goroutines at the same time.
type Printer struct {
	Protocol *codec.Protocol
	Hex      bool // print text in hex too
	Fold     int  // maximum number of lines of a field; 0: no limit
	Color    bool // use the escape sequences of terminals

	segs  []segment // of the last message
	parts []part
}

// AppendFrame appends a message in byte form. The actor is the connecting end, even if the server sent the
// message.
func (p *Printer) AppendFrame(dst []byte, actor string, f *codec.Frame) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, f.From), '\n')
	return p.appendSegments(dst, f, p.segments(f, f.Raw), -1, "")
}

// AppendBroken appends bytes that the decoder rejected: lines for the fields that were decoded before the
// error, the rest as raw lines, and a line below the offending byte that names the rule. f is the frame as
// the decoder left it. raw is the decoder's input, or the part of it to show.
func (p *Printer) AppendBroken(dst []byte, actor string, f *codec.Frame, raw []byte, e *codec.Error) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, f.From), '\n')
	text := fmt.Sprintf("%s: %s", e.Rule, e.Detail)
	segs := p.segments(f, raw)
	if len(segs) == 0 {
		return p.appendMark(dst, 0, text)
	}
	return p.appendSegments(dst, f, segs, min(max(e.Offset, 0), len(raw)), text)
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
		dst = appendValue(dst, fd, f.Value(i), p.Fold*bytesPerLine)
		dst = p.unpaint(dst, c)
	}
	if f.CRLF && f.Type.End == "\n" {
		dst = append(dst, " crlf"...)
	}
	return append(dst, '\n')
}

// AppendEvent appends a step without arguments: a connection that is opened, closed, half-closed or reset.
func (p *Printer) AppendEvent(dst []byte, actor string, from codec.Side, v Verb) []byte {
	dst = append(appendEnds(dst, p.Protocol, actor, from), ": "...)
	return append(append(dst, v.String()...), '\n')
}

// appendText appends b for the text column. It escapes spaces at both ends, because they would not be
// visible.
func appendText(dst, b []byte) []byte {
	first, last := 0, len(b)
	for ; first < last && b[first] == ' '; first++ {
		dst = append(dst, `\x20`...)
	}
	for last > first && b[last-1] == ' ' {
		last--
	}
	dst = appendEscaped(dst, b[first:last], bareEscapes)
	for range len(b) - last {
		dst = append(dst, `\x20`...)
	}
	return dst
}

// appendByteLine appends the bytes of a segment from at to end as a line of hex. The first line of a segment has
// its label and, for a binary number, its value.
func (p *Printer) appendByteLine(dst []byte, f *codec.Frame, s *segment, at, end int) []byte {
	dst = p.paint(dst, s.color)
	line, b := len(dst), s.b[at:end]
	dst = append(dst, blanks[:textColumn]...)
	for i, row := 0, dst[line:]; i < len(b); i++ {
		row[3*i], row[3*i+1] = hexDigits[b[i]>>4], hexDigits[b[i]&15]
	}
	if s.fd != nil && isBinary(s.fd) && len(b) == len(s.b) {
		dst = strconv.AppendUint(dst, uintOf(b), 10)
	} else {
		dst = appendText(dst, b)
	}
	if at == 0 {
		dst = p.appendLabel(pad(append(dst, "  "...), line+labelColumn), f, s)
	}
	return append(p.unpaint(dst, s.color), '\n')
}

// appendFolded appends a line that represents n omitted bytes.
func (p *Printer) appendFolded(dst []byte, f *codec.Frame, s *segment, n int) []byte {
	dst = p.paint(dst, s.color)
	line := len(dst)
	dst = strconv.AppendInt(pad(append(dst, "..."...), line+textColumn), int64(n), 10)
	dst = append(dst, " bytes more"...)
	before := len(dst)
	dst = pad(append(dst, "  "...), line+labelColumn)
	padded := len(dst)
	if dst = p.appendLabel(dst, f, s); len(dst) == padded {
		dst = dst[:before]
	}
	return append(p.unpaint(dst, s.color), '\n')
}

// appendMark appends a line that points to the byte in a column.
func (p *Printer) appendMark(dst []byte, column int, text string) []byte {
	dst = p.paint(dst, red)
	dst = pad(dst, len(dst)+column)
	dst = append(append(dst, "^^ "...), text...)
	return append(p.unpaint(dst, red), '\n')
}

// pad appends spaces up to a length.
func pad(dst []byte, n int) []byte {
	for len(dst) < n {
		dst = append(dst, blanks[:min(n-len(dst), len(blanks))]...)
	}
	return dst
}

// Attributes of text on terminals.
var (
	dim = prose.Color("2")
	red = prose.Color("1;31")
	off = prose.Color("0")
)

// palette is the list of colors that the arguments of a message use in turn.
var palette = [...]string{prose.Color("36"), prose.Color("33"), prose.Color("32"), prose.Color("35"), prose.Color("34")}

// colorOf returns a field's color. args is the number of arguments before it.
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

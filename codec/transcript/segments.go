package transcript

import (
	"bytes"
	"fmt"
	"slices"

	"jobwire/codec"
)

// segment is the bytes that share a label: a field, or the fields of a line of
// text.
type segment struct {
	fd    *codec.Field // of the field, nil for raw bytes
	first int          // its place in the frame, or that of the first one in the line
	off   int          // of b in the message
	b     []byte
	label string // in its parentheses
	color string
	parts []part // of a segment that is printed as text: its fields
}

// part is a field in a line of text.
type part struct {
	end   int // in the segment
	color string
}

// segments cuts raw into the fields of f and, behind them, raw bytes.
func (p *Printer) segments(f *codec.Frame, raw []byte) []segment {
	var segs []segment
	text := !p.Hex && isText(f)
	at, args := 0, 0
	for i := range f.Spans {
		s := &f.Spans[i]
		color := colorOf(s.Field, &args)
		if s.Next > len(raw) {
			break
		}
		if s.Next == at {
			continue
		}
		seg := segment{fd: s.Field, first: i, off: at, b: raw[at:s.Next], color: color}
		at = s.Next
		if !text || !readsWell(seg.b) {
			seg.label = "(" + label(s.Field, f.Type) + ")"
			segs = append(segs, seg)
			continue
		}
		seg.parts = []part{{len(seg.b), color}}
		if n := len(segs); n > 0 && segs[n-1].takes(seg.b) {
			line := &segs[n-1]
			line.b = raw[line.off:at]
			line.parts = append(line.parts, part{len(line.b), color})
		} else {
			segs = append(segs, seg)
		}
		line := &segs[len(segs)-1]
		line.label = textLabel(f, line.first, line.off, at)
	}
	if at < len(raw) {
		seg := segment{label: rawLabel, off: at, b: raw[at:]}
		if text && readsWell(seg.b) {
			seg.parts = []part{{len(seg.b), ""}}
		}
		segs = append(segs, seg)
	}
	return segs
}

// isText reports whether a message is one of text. One of an unknown row is, if
// nothing in it was read as a binary number.
func isText(f *codec.Frame) bool {
	if f.Type != nil {
		return f.Type.End != ""
	}
	return !slices.ContainsFunc(f.Spans, func(s codec.Span) bool { return s.Field.Width > 0 })
}

// readsWell reports whether all of b can be shown as text.
func readsWell(b []byte) bool {
	for _, c := range b {
		if !isReadable(c) {
			return false
		}
	}
	return true
}

// takes reports whether another field can stand in the same row of text: the
// line goes on, and there is room.
func (s *segment) takes(b []byte) bool {
	return s.parts != nil && bytes.IndexByte(s.b, '\n') < 0 && len(s.b)+len(b) <= textBytes
}

// rowEnd returns the end of the row that begins at at. Text is cut behind the
// ends of lines.
func (s *segment) rowEnd(at int) int {
	if s.parts == nil {
		return min(at+rowBytes, len(s.b))
	}
	end := min(at+textBytes, len(s.b))
	if k := bytes.IndexByte(s.b[at:end], '\n'); k >= 0 {
		return at + k + 1
	}
	return end
}

// appendSegments appends the rows of a message and, below the one that holds
// the byte at mark, the mark's text. A mark of -1 is none.
func (p *Printer) appendSegments(dst []byte, segs []segment, mark int, text string) []byte {
	for i := range segs {
		s, here := &segs[i], -1
		if mark >= 0 && (mark < s.off+len(s.b) || i == len(segs)-1) {
			here, mark = mark-s.off, -1
		}
		dst = p.appendRows(dst, s, here, text)
	}
	return dst
}

// appendRows appends the rows of one segment, in which the mark is counted from
// its beginning.
func (p *Printer) appendRows(dst []byte, s *segment, mark int, text string) []byte {
	marked := min(mark, len(s.b)-1) // a mark may stand behind the last byte
	name := s.label
	for n, at := 0, 0; at < len(s.b); n++ {
		end := s.rowEnd(at)
		holds := marked >= at && marked < end
		// Where one row is left, to leave it out would gain nothing.
		if p.Fold > 0 && n >= p.Fold && !holds && (n > p.Fold || end < len(s.b)) {
			for end < len(s.b) && (marked < at || marked >= s.rowEnd(end)) {
				end = s.rowEnd(end)
			}
			dst = p.appendRow(dst, s.color, "...", fmt.Appendf(nil, "%d bytes more", end-at), s.label)
			at = end
			continue
		}
		b, column := s.b[at:end], 3*(mark-at)
		if s.parts == nil {
			dst = p.appendRow(dst, s.color, fmt.Sprintf("% x", b), textOf(s, b), name)
		} else {
			dst = p.appendTextRow(dst, s, at, end, name)
			column = 1 + len(appendEscaped(nil, b[:max(0, min(mark-at, len(b)))], `"`))
		}
		if holds {
			dst = p.appendMark(dst, column, text)
		}
		at, name = end, ""
	}
	return dst
}

package transcript

import (
	"bytes"
	"slices"

	"jobwire/codec"
)

// segment is a sequence of bytes with one label: a field, or the fields in a line of text.
type segment struct {
	fd    *codec.Field // the field, or nil for raw bytes
	first int          // index of the field's span in the frame, or of the first field's span in the line
	off   int          // offset of b in the message
	b     []byte
	color string

	// For a segment that is printed as text: the range of its fields in Printer.parts.
	text            bool
	parts, partsEnd int
}

// part is a field in a line of text.
type part struct {
	end   int // offset in the segment
	color string
}

// segments divides raw into the fields of f, followed by raw bytes. The result is valid until the next call.
func (p *Printer) segments(f *codec.Frame, raw []byte) []segment {
	segs := p.segs[:0]
	p.parts = p.parts[:0]
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
		if text {
			seg.text = readsWell(seg.b)
			if n := len(segs); seg.text && n > 0 && segs[n-1].takes(seg.b) {
				line := &segs[n-1]
				line.b = raw[line.off:at]
				p.addPart(line, color)
				continue
			}
		}
		segs = append(segs, seg)
		p.addPart(&segs[len(segs)-1], color)
	}
	if at < len(raw) {
		segs = append(segs, segment{off: at, b: raw[at:], text: text && readsWell(raw[at:])})
		p.addPart(&segs[len(segs)-1], "")
	}
	p.segs = segs
	return segs
}

// addPart marks the end of a field at the current end of the segment, if the segment is text.
func (p *Printer) addPart(s *segment, color string) {
	if !s.text {
		return
	}
	if s.parts == s.partsEnd {
		s.parts = len(p.parts)
	}
	p.parts = append(p.parts, part{len(s.b), color})
	s.partsEnd = len(p.parts)
}

// appendLabel appends the label of a segment.
func (p *Printer) appendLabel(dst []byte, f *codec.Frame, s *segment) []byte {
	switch {
	case s.fd == nil:
		return append(dst, rawLabel...)
	case s.text:
		return appendTextLabel(dst, f, s.first, s.off, s.off+len(s.b))
	}
	dst = append(append(dst, '('), s.fd.Name...)
	if s.fd.Kind == codec.Code && f.Type != nil {
		dst = append(append(dst, ": "...), f.Type.Name...)
	}
	return append(dst, ')')
}

// isText reports whether a message is printed as text. A message of unknown type is text if none of its
// fields was decoded as a binary number.
func isText(f *codec.Frame) bool {
	if f.Type != nil {
		return f.Type.End != ""
	}
	return !slices.ContainsFunc(f.Spans, func(s codec.Span) bool { return s.Field.Width > 0 })
}

// readsWell reports whether all bytes of b are readable as text.
func readsWell(b []byte) bool {
	for _, c := range b {
		if !isReadable(c) {
			return false
		}
	}
	return true
}

// takes reports whether another field fits into the same line of text: the line has not ended, and the field
// is short enough.
func (s *segment) takes(b []byte) bool {
	return s.text && len(s.b)+len(b) <= textBytes && bytes.IndexByte(s.b, '\n') < 0
}

// lineEnd returns the end of the line that begins at offset at. A line of text ends after a line feed.
func (s *segment) lineEnd(at int) int {
	if !s.text {
		return min(at+bytesPerLine, len(s.b))
	}
	end := min(at+textBytes, len(s.b))
	if k := bytes.IndexByte(s.b[at:end], '\n'); k >= 0 {
		return at + k + 1
	}
	return end
}

// appendSegments appends the lines of message f, which segs divide. Below the line that contains the byte at offset
// mark, it appends text, which is about this byte. A mark after the last byte belongs to the last line. If mark is -1,
// it appends no text.
func (p *Printer) appendSegments(dst []byte, f *codec.Frame, segs []segment, mark int, text string) []byte {
	for i := range segs {
		s, here, isLast := &segs[i], -1, i == len(segs)-1
		if mark >= 0 && (mark < s.off+len(s.b) || isLast) {
			here, mark = mark-s.off, -1
		}
		dst = p.appendLines(dst, f, s, here, text)
	}
	return dst
}

// appendLines appends the lines of one segment. mark is an offset in the segment.
func (p *Printer) appendLines(dst []byte, f *codec.Frame, s *segment, mark int, text string) []byte {
	marked := min(mark, len(s.b)-1) // a mark may point to the position after the last byte
	for n, at := 0, 0; at < len(s.b); n++ {
		end := s.lineEnd(at)
		holds := marked >= at && marked < end
		// A single remaining line is printed, because omitting it would not save a line.
		if p.Fold > 0 && n >= p.Fold && !holds && (n > p.Fold || end < len(s.b)) {
			for end < len(s.b) && (marked < at || marked >= s.lineEnd(end)) {
				end = s.lineEnd(end)
			}
			dst = p.appendFolded(dst, f, s, end-at)
			at = end
			continue
		}
		if !s.text {
			dst = p.appendByteLine(dst, f, s, at, end)
		} else {
			dst = p.appendTextLine(dst, f, s, at, end)
		}
		if holds {
			column := 3 * (mark - at)
			if s.text {
				column = 1 + len(appendEscaped(nil, s.b[at:min(mark, end)], quotedEscapes))
			}
			dst = p.appendMark(dst, column, text)
		}
		at = end
	}
	return dst
}

package transcript

import (
	"fmt"
	"strings"

	"jobwire/codec"
)

const (
	bytesPerLine = 8       // in one line of hex
	rawLabel     = "(Raw)" // the label of bytes that are not a message
)

// byteLine is one line of bytes in the byte form.
type byteLine struct {
	position        // position of its first byte in hex, or of the opening quote of its text
	b        []byte // the bytes of the line
	off      int    // offset of b in the block
	quoted   string // the quoted text as written, for a line of text; "" for a line of hex
	rest     string // text and label, or only the label of a line of text, without surrounding spaces and tabs
	restCol  int
}

// cutByteLine splits a line into its pairs of hex digits, which are separated by single spaces, and the rest,
// which follows after at least two spaces. col is the offset of the rest in s.
func cutByteLine(s string) (b []byte, rest string, col int, ok bool) {
	i := 0
	for {
		v, pair := hexPair(s[i:min(i+2, len(s))])
		if !pair {
			return nil, "", 0, false
		}
		b = append(b, v)
		if i += 2; i == len(s) {
			return b, "", i, true
		}
		left := strings.TrimLeft(s[i:], " \t")
		gap := len(s) - i - len(left)
		switch {
		case gap == 1 && s[i] == ' ':
			i++
		case gap > 0:
			return b, strings.TrimRight(left, " \t"), i + gap, true
		default:
			return nil, "", 0, false
		}
	}
}

// isByteLine reports whether a line has the form of a line of bytes.
func isByteLine(s string) bool {
	_, _, _, ok := cutByteLine(s)
	return ok || isTextLine(s)
}

// block reads the lines of bytes below the direction in the i-th line into st. It returns the index of the
// line after them.
func (ps *parser) block(i int, head position, st *Step) (int, *Error) {
	lines, next, err := ps.byteLines(i + 1)
	if err != nil {
		return 0, err
	}
	if len(lines) == 0 {
		return 0, head.errorf("expected a colon, a space and a step after the direction, or lines of bytes below it")
	}
	st.Source = strings.TrimSpace(ps.lines[i:next].text())
	var all []byte
	for _, w := range lines {
		all = append(all, w.b...)
	}
	if strings.HasSuffix(lines[0].rest, rawLabel) {
		for i := range lines {
			if err := lines[i].checkRaw(i == 0); err != nil {
				return 0, err
			}
		}
		st.Choices = []Choice{{Line: head.line, Verb: Raw, Bytes: all}}
	} else {
		c, err := ps.recorded(head, st, lines, all)
		if err != nil {
			return 0, err
		}
		st.Choices = []Choice{*c}
	}
	for ; next < len(ps.lines); next++ {
		s, col := trim(ps.lines[next].text)
		if !isOr(s) {
			break
		}
		if err := ps.alternative(ps.position(next, col), st, s); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// byteLines reads lines of bytes until the block ends.
func (ps *parser) byteLines(i int) ([]byteLine, int, *Error) {
	var lines []byteLine
	off := 0
	for ; i < len(ps.lines); i++ {
		s, col := trim(ps.lines[i].text)
		pos := ps.position(i, col)
		if s != "" && s[0] == '"' {
			w, err := ps.textLine(pos, s)
			if err != nil {
				return nil, 0, err
			}
			w.off = off
			lines = append(lines, w)
			off += len(w.b)
			continue
		}
		b, rest, k, ok := cutByteLine(s)
		switch {
		case ok:
		case s == "" || s[0] == '#' || s[0] == '@' || isOr(s) || strings.Contains(s, "->"):
			return lines, i, nil
		case strings.HasPrefix(s, "..."):
			return nil, 0, pos.errorf("expected all bytes of the message, got a listing that omits some bytes")
		default:
			return nil, 0, pos.errorf("expected bytes in hex, at least two spaces, the bytes as text and the (Label), or the bytes as quoted text and the (Label)")
		}
		if len(b) > bytesPerLine {
			return nil, 0, pos.atColumn(col+3*bytesPerLine).errorf("expected at most %d bytes in a line, got more", bytesPerLine)
		}
		lines = append(lines, byteLine{position: pos, b: b, off: off, rest: rest, restCol: col + k})
		off += len(b)
	}
	return lines, i, nil
}

// recorded reads a block that contains one message.
func (ps *parser) recorded(head position, st *Step, lines []byteLine, all []byte) (*Choice, *Error) {
	w := ps.wire(st.Peer)
	w.next++ // decode also advances the connection by this step
	f, n, err := w.decode(st.From, all)
	if bad, is := err.(*codec.Error); is {
		return nil, find(lines, bad.Offset).errorf("%s; to keep the invalid message, label its first line %s",
			explain(f.Type, err), rawLabel)
	}
	if err != nil {
		return nil, head.errorf("%s", err)
	}
	if n < len(all) {
		return nil, find(lines, n).errorf("expected the message to end before this byte, got more bytes: list the next message in a block of its own")
	}
	k := 0
	for i := range lines {
		w := &lines[i]
		for k < len(f.Spans)-1 && f.Spans[k].Next <= w.off {
			k++
		}
		if err := w.check(f, k); err != nil {
			return nil, err
		}
	}
	if bad := ps.misdirected(f.Type, st); bad != "" {
		return nil, head.errorf("%s", bad)
	}
	c := &Choice{Line: head.line, Type: f.Type, Bytes: all, CRLF: f.CRLF}
	for i := range f.Spans {
		if s := &f.Spans[i]; !s.Field.Derived() {
			pos := find(lines, s.Off)
			c.Args = append(c.Args, Arg{Value: append([]byte(nil), f.Value(i)...), Line: pos.line, Col: pos.col})
		}
	}
	return c, nil
}

// find returns the source position of the byte at an offset of the block, or of the block's end.
func find(lines []byteLine, off int) position {
	for _, w := range lines {
		if off < w.off+len(w.b) {
			return w.atColumn(w.column(max(off-w.off, 0)))
		}
	}
	w := lines[len(lines)-1]
	return w.atColumn(w.column(len(w.b)))
}

// column returns the column of the k-th byte of the line, or of the end of its bytes.
func (b *byteLine) column(k int) int {
	switch {
	case b.quoted != "":
		return b.col + quotedColumn(b.quoted, k, k == len(b.b))
	case k == len(b.b):
		return b.col + 3*k - 1
	}
	return b.col + 3*k
}

// check compares a line with the k-th span, which contains the line's first byte.
func (b *byteLine) check(f *codec.Frame, k int) *Error {
	if b.quoted != "" {
		return b.checkLabel(textLabel(f, k, b.off, b.off+len(b.b)))
	}
	s := &f.Spans[k]
	if over := b.off + len(b.b) - s.Next; over > 0 {
		return b.atColumn(b.col+3*(len(b.b)-over)).errorf("expected the line to end at the end of the field (%s), got more bytes: write the next field on a new line", label(s.Field, f.Type))
	}
	field := f.SpanBytes(k)
	begins := b.off == s.Next-len(field)
	text := b.rest
	if begins {
		want := "(" + label(s.Field, f.Type) + ")"
		cut, ok := strings.CutSuffix(text, want)
		if !ok {
			i := strings.LastIndexByte(text, '(')
			if i < 0 || !strings.HasSuffix(text, ")") {
				return b.atColumn(b.restCol+len(text)).errorf("expected the label %s, got none", want)
			}
			return b.atColumn(b.restCol+i).errorf("expected the label %[2]s for these bytes, got %[1]s", text[i:], want)
		}
		text = strings.TrimRight(cut, " \t")
	}
	if len(b.b) == len(field) && isBinary(s.Field) {
		if want := fmt.Sprint(uintOf(b.b)); text != want {
			return b.atColumn(b.restCol).errorf("expected the number %[2]s for these bytes, got %[1]q", text, want)
		}
		return nil
	}
	return b.checkText(text)
}

// checkRaw compares the bytes of a line of raw bytes with its text.
func (b *byteLine) checkRaw(first bool) *Error {
	if b.quoted != "" {
		return b.checkLabel(rawLabel)
	}
	cut, labeled := strings.CutSuffix(b.rest, rawLabel)
	if labeled && (first || b.checkText(b.rest) != nil) {
		return b.checkText(strings.TrimRight(cut, " \t"))
	}
	return b.checkText(b.rest)
}

// checkText compares the text of a line with its bytes. Spaces around the text are ignored, because spaces
// that belong to the bytes cannot be distinguished from the spaces between the columns.
func (b *byteLine) checkText(text string) *Error {
	got, k, bad := unescape(text, "")
	if bad != "" {
		return b.atColumn(b.restCol+k).errorf("%s", bad)
	}
	if want := string(b.b); got != want && got != strings.Trim(want, " ") {
		return b.atColumn(b.restCol).errorf("expected the text %[2]q for these bytes, got %[1]q", text, appendText(nil, b.b))
	}
	return nil
}

// label returns the label of a field.
func label(fd *codec.Field, t *codec.Type) string {
	if fd.Kind == codec.Code && t != nil {
		return fd.Name + ": " + t.Name
	}
	return fd.Name
}

// isBinary reports whether a field is a binary number, including a framing field.
func isBinary(fd *codec.Field) bool {
	return fd.Width > 0 && fd.Width <= 8 && (fd.Kind == codec.Uint || fd.Kind == codec.Code || fd.Kind == codec.Length)
}

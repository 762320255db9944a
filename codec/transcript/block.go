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
func (r *parser) block(i int, head position, st *Step) (int, *Error) {
	lines, next, err := r.byteLines(i + 1)
	if err != nil {
		return 0, err
	}
	if len(lines) == 0 {
		return 0, head.errorf("expected a colon, a space and a step after the direction, or lines of bytes below it")
	}
	st.Source = strings.TrimSpace(r.lines[i:next].text())
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
		c, err := r.recorded(head, st, lines, all)
		if err != nil {
			return 0, err
		}
		st.Choices = []Choice{*c}
	}
	for ; next < len(r.lines); next++ {
		s, col := trim(r.lines[next].text)
		if !isOr(s) {
			break
		}
		if err := r.alternative(r.position(next, col), st, s); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// byteLines reads lines of bytes until the block ends.
func (r *parser) byteLines(i int) ([]byteLine, int, *Error) {
	var lines []byteLine
	off := 0
	for ; i < len(r.lines); i++ {
		s, col := trim(r.lines[i].text)
		pos := r.position(i, col)
		if s != "" && s[0] == '"' {
			w, err := r.textLine(pos, s)
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
func (r *parser) recorded(head position, st *Step, lines []byteLine, all []byte) (*Choice, *Error) {
	w := r.wire(st.Peer)
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
	if bad := r.misdirected(f.Type, st); bad != "" {
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
func (w *byteLine) column(k int) int {
	switch {
	case w.quoted != "":
		return w.col + quotedColumn(w.quoted, k, k == len(w.b))
	case k == len(w.b):
		return w.col + 3*k - 1
	}
	return w.col + 3*k
}

// check compares a line with the k-th span, which contains the line's first byte.
func (w *byteLine) check(f *codec.Frame, k int) *Error {
	if w.quoted != "" {
		return w.checkLabel(textLabel(f, k, w.off, w.off+len(w.b)))
	}
	s := &f.Spans[k]
	if over := w.off + len(w.b) - s.Next; over > 0 {
		return w.atColumn(w.col+3*(len(w.b)-over)).errorf("expected the line to end at the end of the field (%s), got more bytes: write the next field on a new line", label(s.Field, f.Type))
	}
	field := f.SpanBytes(k)
	begins := w.off == s.Next-len(field)
	text := w.rest
	if begins {
		want := "(" + label(s.Field, f.Type) + ")"
		cut, ok := strings.CutSuffix(text, want)
		if !ok {
			i := strings.LastIndexByte(text, '(')
			if i < 0 || !strings.HasSuffix(text, ")") {
				return w.atColumn(w.restCol+len(text)).errorf("expected the label %s, got none", want)
			}
			return w.atColumn(w.restCol+i).errorf("expected the label %[2]s for these bytes, got %[1]s", text[i:], want)
		}
		text = strings.TrimRight(cut, " \t")
	}
	if len(w.b) == len(field) && isBinary(s.Field) {
		if want := fmt.Sprint(uintOf(w.b)); text != want {
			return w.atColumn(w.restCol).errorf("expected the number %[2]s for these bytes, got %[1]q", text, want)
		}
		return nil
	}
	return w.checkText(text)
}

// checkRaw compares the bytes of a line of raw bytes with its text.
func (w *byteLine) checkRaw(first bool) *Error {
	if w.quoted != "" {
		return w.checkLabel(rawLabel)
	}
	cut, labeled := strings.CutSuffix(w.rest, rawLabel)
	if labeled && (first || w.checkText(w.rest) != nil) {
		return w.checkText(strings.TrimRight(cut, " \t"))
	}
	return w.checkText(w.rest)
}

// checkText compares the text of a line with its bytes. Spaces around the text are ignored, because spaces
// that belong to the bytes cannot be distinguished from the spaces between the columns.
func (w *byteLine) checkText(text string) *Error {
	got, k, bad := unescape(text, "")
	if bad != "" {
		return w.atColumn(w.restCol+k).errorf("%s", bad)
	}
	if want := string(w.b); got != want && got != strings.Trim(want, " ") {
		return w.atColumn(w.restCol).errorf("expected the text %[2]q for these bytes, got %[1]q", text, appendText(nil, w.b))
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

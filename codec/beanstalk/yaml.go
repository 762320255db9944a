package beanstalk

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"jobwire/codec"
)

// yamlReader checks that bytes are one YAML document of the subset that the specification uses: a
// dictionary of scalars or a list of scalars, as msgType declares, with one entry per line or in
// brackets. A scalar is in one line and is plain or quoted.
//
// The reader neither moves back nor recurses, so its running time is linear in the length of the body for any
// input.
type yamlReader struct {
	b        []byte
	msgType  *codec.Type  // the type with the dictionary or list
	f        *codec.Frame // receives the spans of the scalars; nil if they are not needed
	start    int          // offset of the body
	at       int          // offset of the next byte
	line     int          // offset of the beginning of its line
	off, end int          // offsets of the last scalar, without quotes
	keys     []codec.Span // the keys of a dictionary; Next is after the closing quote
	flow     bool         // inside brackets
	reads    int          // number of bytes read, for tests
}

type yamlError struct {
	at     int
	detail string
}

// dict reports whether a dictionary is expected rather than a list.
func (r *yamlReader) dict() bool { return len(r.msgType.Repeat) > 1 }

func (r *yamlReader) fail(at int, format string, args ...any) *yamlError {
	return &yamlError{at, fmt.Sprintf(format, args...)}
}

// peek returns the byte k bytes after the current position, or a line feed at the end of the body.
func (r *yamlReader) peek(k int) byte {
	r.reads++
	if r.at+k >= len(r.b) {
		return '\n'
	}
	return r.b[r.at+k]
}

func (r *yamlReader) done() bool { return r.at >= len(r.b) }

// breaks reports whether a line ends k bytes after the current position.
func (r *yamlReader) breaks(k int) bool {
	c := r.peek(k)
	return c == '\n' || c == '\r' && r.peek(k+1) == '\n'
}

// blank reports whether a space, a tab or a line end is k bytes after the current position.
func (r *yamlReader) blank(k int) bool {
	c := r.peek(k)
	return c == ' ' || c == '\t' || r.breaks(k)
}

// marker reports whether a line begins at the current position with three bytes c ("---" or "...") followed
// by white space.
func (r *yamlReader) marker(c byte) bool {
	return r.at == r.line && r.peek(0) == c && r.peek(1) == c && r.peek(2) == c && r.blank(3)
}

// spaces skips spaces and tabs, and a comment after them.
func (r *yamlReader) spaces() {
	spaced := r.at == r.line
	for ; !r.done() && (r.peek(0) == ' ' || r.peek(0) == '\t'); r.at++ {
		spaced = true
	}
	if spaced && r.peek(0) == '#' {
		for !r.breaks(0) {
			r.at++
		}
	}
}

// space skips spaces, comments and line ends.
func (r *yamlReader) space() {
	for r.spaces(); !r.done() && r.breaks(0); r.spaces() {
		for r.peek(0) != '\n' {
			r.at++
		}
		r.at++
		r.line = r.at
	}
}

// describe describes the text at the current position, for an error that expected a scalar.
func (r *yamlReader) describe() string {
	switch c := r.peek(0); c {
	case '[':
		return "a list"
	case '{':
		return "a dictionary"
	case '-':
		return "a list item"
	case '&':
		return "an anchor"
	case '*':
		return "an alias"
	case '!':
		return "a tag"
	case '|', '>':
		return "a block scalar"
	}
	switch {
	case r.done():
		return "the end of the body"
	case r.breaks(0):
		return "the end of the line"
	}
	return fmt.Sprintf("%q", r.b[r.at:r.at+1])
}

// document reads one YAML document to the end of the input: directives, the marker ---, the content and the marker ...
// are optional except the content. A second document is an error.
func (r *yamlReader) document() *yamlError {
	if bad := r.characters(); bad != nil {
		return bad
	}
	r.space()
	directive := r.at
	for r.at == r.line && r.peek(0) == '%' { // such as %YAML 1.2
		for !r.breaks(0) {
			r.at++
		}
		r.space()
	}
	if r.at > directive && !r.marker('-') {
		return r.fail(r.at, "expected --- after the directives, got %s", r.describe())
	}
	if r.marker('-') {
		r.at += len("---")
		header := r.line
		r.space()
		if c := r.peek(0); !r.done() && r.line == header && c != '[' && c != '{' {
			return r.fail(r.at, "expected the end of the line after ---, got %s", r.describe())
		}
	}
	var bad *yamlError
	if c := r.peek(0); c == '[' || c == '{' {
		bad = r.brackets(c)
	} else {
		bad = r.block()
	}
	if bad != nil {
		return bad
	}
	if r.space(); r.marker('.') {
		r.at += len("...")
		r.space()
	}
	switch {
	case r.marker('-'):
		return r.fail(r.at, "expected one YAML document, got a second one")
	case !r.done():
		return r.fail(r.at, "expected the end of the YAML document, got %s", r.describe())
	}
	return r.unique()
}

// characters returns an error for characters that are not allowed in a YAML document.
func (r *yamlReader) characters() *yamlError {
	r.reads += len(r.b) - r.start
	for i := r.start; i < len(r.b); {
		c, n := utf8.DecodeRune(r.b[i:])
		if c == utf8.RuneError && n == 1 {
			return r.fail(i, "expected text in UTF-8, got the byte %#02x", r.b[i])
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return r.fail(i, "expected text, got the control character %#02x", r.b[i])
		}
		i += n
	}
	return nil
}

// kind returns the error for a body that is neither a dictionary nor a list, or not the expected one of them.
func (r *yamlReader) kind(got string) *yamlError {
	if r.dict() {
		return r.fail(r.start, "expected a YAML dictionary, got %s", got)
	}
	return r.fail(r.start, "expected a YAML list, got %s", got)
}

// block decodes a dictionary or list that has one entry per line.
func (r *yamlReader) block() *yamlError {
	if r.done() || r.marker('.') || r.marker('-') {
		return r.kind("an empty document")
	}
	indent := r.at - r.line
	for first := true; first || !r.done() && !r.marker('.') && !r.marker('-'); first = false {
		if got := r.at - r.line; got != indent {
			return r.fail(r.at, "expected an entry after %d spaces, got one after %d", indent, got)
		}
		for i, c := range r.b[r.line:r.at] {
			if r.reads++; c == '\t' {
				return r.fail(r.line+i, "expected spaces before the entry, got a tab")
			}
		}
		if bad := r.entry(first); bad != nil {
			return bad
		}
		if r.spaces(); !r.breaks(0) {
			return r.fail(r.at, "expected the end of the line after the scalar, got %s", r.describe())
		}
		r.space()
	}
	return nil
}

// entry decodes one entry of a block.
func (r *yamlReader) entry(first bool) *yamlError {
	item := r.peek(0) == '-' && r.blank(1)
	if !r.dict() {
		switch {
		case !item && first:
			return r.kind("an entry without a dash")
		case !item:
			return r.fail(r.at, "expected a list item, got %s", r.describe())
		}
		r.at++
		return r.value(r.at - 1)
	}
	switch {
	case item && first:
		return r.kind("a list")
	case item:
		return r.fail(r.at, "expected a key, got a list item")
	}
	start := r.at
	if bad := r.scalar("a key"); bad != nil {
		return bad
	}
	if bad := r.key(start); bad != nil {
		return bad
	}
	r.note(start)
	for !r.done() && (r.peek(0) == ' ' || r.peek(0) == '\t') {
		r.at++
	}
	if r.peek(0) != ':' || !r.blank(1) {
		if first && r.breaks(0) {
			return r.kind("an entry without a colon")
		}
		return r.fail(start, "expected a key, a colon and a value, got no colon after the key")
	}
	r.at++
	return r.value(-1)
}

// key records the last scalar, which begins at start, as a key.
func (r *yamlReader) key(start int) *yamlError {
	if len(r.keys) == maxSpans {
		return r.fail(start, "expected at most %d keys, got more", len(r.keys))
	}
	r.keys = append(r.keys, codec.Span{Field: &r.msgType.Repeat[0], Off: r.off, End: r.end, Next: r.end + r.off - start})
	return nil
}

// value decodes the scalar after a key or a dash. The scalar may be missing. Its span begins at row or, if
// row is negative, at the scalar.
func (r *yamlReader) value(row int) *yamlError {
	before := r.at
	for !r.done() && (r.peek(0) == ' ' || r.peek(0) == '\t') {
		r.at++
	}
	start := r.at
	if row < 0 {
		row = start
	}
	r.off, r.end = start, start
	if r.peek(0) == '#' && start > before { // a comment
		for !r.breaks(0) {
			r.at++
		}
		if r.dict() {
			r.end = r.at // beanstalkd before 1.12 writes "os: #1 SMP", in which # does not begin a comment
		}
	}
	if r.breaks(0) {
		r.note(row)
		return nil
	}
	if bad := r.scalar("a scalar"); bad != nil {
		return bad
	}
	if r.peek(0) == ':' && r.blank(1) {
		return r.fail(start, "expected a scalar, got a dictionary")
	}
	r.note(row)
	return nil
}

// maxSpans limits the spans of a list or dictionary to 16 MiB of memory.
const maxSpans = 1 << 19

// note appends the span of a scalar, which begins at row. If there are too many, or if the value is illegal for its
// field or looks like a quoted value, note sets r.f to nil: the body is one value then, without spans of its parts.
func (r *yamlReader) note(row int) {
	if r.f == nil {
		return
	}
	spans := r.f.Spans
	if len(spans) == maxSpans {
		r.f = nil
		return
	}
	spans[len(spans)-1].Next = row
	fd := &r.msgType.Repeat[0]
	if spans[len(spans)-1].Field == fd && r.dict() {
		fd = &r.msgType.Repeat[1]
	}
	r.f.Spans = append(spans, codec.Span{Field: fd, Off: r.off, End: r.end, Next: len(r.b)})
	if v := r.f.Value(len(spans)); !fd.Legal(v, &codec.Options{}) ||
		len(v) > 0 && (v[0] == '"' || v[0] == '\'') && isScalar(v) {
		r.f = nil
	}
}

// resolved matches the plain scalars that are not strings (YAML 1.2.2, "10.3.2. Tag Resolution").
var resolved = regexp.MustCompile(`^(null|Null|NULL|~|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|` +
	`[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))?$`)

// unique returns an error for a key that occurs twice: "The content of a mapping node is an unordered set of
// key/value node pairs, with the restriction that each of the keys is unique" (YAML 1.2.2, "3.2.1.1. Nodes").
func (r *yamlReader) unique() *yamlError {
	keys := codec.Frame{Raw: r.b, Spans: r.keys}
	quoted := func(i int) int { return r.keys[i].Next - r.keys[i].End }
	order := make([]int, len(r.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(bytes.Compare(keys.Value(a), keys.Value(b)), quoted(a)-quoted(b), a-b)
	})
	again := len(order)
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if v := keys.Value(b); bytes.Equal(keys.Value(a), v) && (quoted(a) == quoted(b) || !resolved.Match(v)) {
			again = min(again, max(a, b))
		}
	}
	if again == len(order) {
		return nil
	}
	return r.fail(r.keys[again].Off-quoted(again), "expected each key once, got %q again", shorten(keys.Value(again)))
}

// brackets decodes entries between brackets. open is the bracket at the current position.
func (r *yamlReader) brackets(open byte) *yamlError {
	stop := byte(']')
	switch {
	case r.dict() && open == '[':
		return r.kind("a list")
	case !r.dict() && open == '{':
		return r.kind("a dictionary")
	case r.dict():
		stop = '}'
	}
	r.flow = true
	for r.at++; ; {
		switch r.space(); {
		case r.done():
			return r.fail(r.at, "expected %q, got the end of the body", stop)
		case r.marker('-') || r.marker('.'):
			return r.fail(r.at, "expected %q, got the end of the YAML document", stop)
		case r.peek(0) == stop:
			r.at++
			r.spaces()
			if !r.breaks(0) {
				return r.fail(r.at, "expected the end of the line after %q, got %s", stop, r.describe())
			}
			return nil
		}
		start := r.at
		if bad := r.scalar("a scalar"); bad != nil {
			return bad
		}
		if r.dict() {
			if bad := r.key(start); bad != nil {
				return bad
			}
		}
		r.note(start)
		if r.space(); !r.done() && r.peek(0) == ':' {
			if !r.dict() {
				return r.fail(start, "expected a scalar, got a dictionary")
			}
			r.at++
			r.space()
		}
		if r.dict() {
			row := r.at
			r.off, r.end = row, row
			if !r.done() && r.peek(0) != ',' && r.peek(0) != stop {
				if bad := r.scalar("a scalar"); bad != nil {
					return bad
				}
			}
			r.note(row)
			r.space()
		}
		switch {
		case !r.done() && r.peek(0) == ',':
			r.at++
		case r.done() || r.peek(0) != stop:
			return r.fail(r.at, "expected a comma or %q, got %s", stop, r.describe())
		}
	}
}

// scalar decodes a scalar. want describes it in an error.
func (r *yamlReader) scalar(want string) *yamlError {
	switch c := r.peek(0); {
	case c == '"' || c == '\'':
		return r.quoted(c)
	case bytes.IndexByte([]byte(",[]{}&*!|>%@`#"), c) >= 0, r.breaks(0),
		(c == '-' || c == '?' || c == ':') && (r.blank(1) || r.flow && isBracket(r.peek(1))):
		return r.fail(r.at, "expected %s, got %s", want, r.describe())
	}
	for r.off, r.end = r.at, r.at; !r.done(); r.at++ {
		switch c := r.peek(0); {
		case c == ' ' || c == '\t':
			if r.peek(1) == '#' {
				return nil
			}
			continue
		case c == ':' && (r.blank(1) || r.flow && isBracket(r.peek(1))), r.flow && isBracket(c), r.breaks(0):
			return nil
		}
		r.end = r.at + 1
	}
	return nil
}

// isScalar reports whether a value can be written without quotes after a key or a dash.
func isScalar(v []byte) bool {
	r := yamlReader{b: v}
	blank := func(c byte) bool { return c <= ' ' || c == 0x7f }
	return len(v) == 0 || !blank(v[0]) && !bytes.ContainsFunc(v, unicode.IsControl) && r.scalar("") == nil &&
		r.at == len(v) && !blank(v[len(v)-1])
}

// appendQuoted appends a value in double quotes.
func appendQuoted(dst, v []byte) []byte {
	dst = append(dst, '"')
	for _, c := range v {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c == 0x7f:
			dst = fmt.Appendf(dst, `\x%02x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// isBracket reports whether c ends a plain scalar between brackets.
func isBracket(c byte) bool { return bytes.IndexByte([]byte(",[]{}"), c) >= 0 }

// escapes are the bytes that may follow a backslash, except those that introduce hexadecimal digits.
const escapes = "0abt\tnvfre \"/\\N_LP"

// quoted decodes a scalar in quotes.
func (r *yamlReader) quoted(quote byte) *yamlError {
	start := r.at
	for r.at++; !r.breaks(0); r.at++ {
		switch c := r.peek(0); {
		case c == '\'' && quote == c && r.peek(1) == c:
			r.at++
		case c == quote:
			r.off, r.end = start+1, r.at
			r.at++
			return nil
		case c == '\\' && quote == '"':
			r.at++
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[r.peek(0)]
			if digits == 0 && bytes.IndexByte([]byte(escapes), r.peek(0)) < 0 {
				return r.fail(r.at-1, "expected an escape sequence after the backslash, got %s", r.describe())
			}
			for range digits {
				if r.at++; bytes.IndexByte([]byte("0123456789abcdefABCDEF"), r.peek(0)) < 0 {
					return r.fail(r.at, "expected a hexadecimal digit, got %s", r.describe())
				}
			}
		}
	}
	return r.fail(start, "expected a closing quote in the same line, got none")
}

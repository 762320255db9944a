package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"jobwire/codec"
)

// Lines writes a script in line form. [Parse] returns the same script for the output, except for source
// positions and for the bytes of messages that were recorded in byte form.
func Lines(w io.Writer, s *Script) error {
	return s.write(w, func(dst []byte, st *Step) ([]byte, error) { return AppendStep(dst, s.Protocol, st) })
}

// Bytes writes a script in byte form. Steps that send no bytes are written in line form. Bytes returns an
// error that names the step if the byte form cannot express it: names, wildcards, deadlines, unchecked
// messages, and bytes that would be read back as something else.
func Bytes(w io.Writer, s *Script) error {
	ends := map[string]*endpoints{}
	return s.write(w, func(dst []byte, st *Step) ([]byte, error) {
		e := ends[st.Peer.Name]
		if e == nil {
			e = &endpoints{writer: newWire(s.Protocol), reader: newWire(s.Protocol)}
			ends[st.Peer.Name] = e
		}
		return e.appendStep(dst, s.Protocol, st)
	})
}

// write writes a script. appendStep appends a step to the output.
func (s *Script) write(w io.Writer, appendStep func([]byte, *Step) ([]byte, error)) error {
	out, err := appendMeta(nil, s)
	if err != nil {
		return err
	}
	for i := range s.Steps {
		if out, err = appendStep(s.appendTests(out, i), &s.Steps[i]); err != nil {
			return stepError(s, i, err)
		}
	}
	_, err = w.Write(out)
	return err
}

func stepError(s *Script, i int, err error) error {
	st := &s.Steps[i]
	if st.Line > 0 {
		return fmt.Errorf("%s:%d: message %d: %w", s.File, st.Line, i+1, err)
	}
	return fmt.Errorf("%s: message %d: %w", s.File, i+1, err)
}

// appendMeta appends the @-lines of a script and an empty line after them. It returns an error for a value that does
// not fit on one line.
func appendMeta(dst []byte, s *Script) ([]byte, error) {
	for _, m := range s.Meta {
		if strings.Contains(m.Value, "\n") || strings.HasSuffix(m.Value, "\r") {
			return nil, fmt.Errorf("%s: expected a value of one line for @%s, got several lines", s.File, m.Key)
		}
		dst = append(dst, '@')
		dst = append(dst, m.Key...)
		if m.Value != "" {
			dst = append(dst, ' ')
			dst = append(dst, m.Value...)
		}
		dst = append(dst, '\n')
	}
	if len(s.Meta) > 0 {
		dst = append(dst, '\n')
	}
	return dst, nil
}

// appendTests appends an @tests line if the i-th step tests other rules than the step before it.
func (s *Script) appendTests(dst []byte, i int) []byte {
	rules := s.Steps[i].Tests
	if len(rules) == 0 || i > 0 && slices.Equal(rules, s.Steps[i-1].Tests) {
		return dst
	}
	dst = append(dst, "@tests"...)
	for _, id := range rules {
		dst = append(append(dst, ' '), id...)
	}
	return append(dst, '\n')
}

// AppendStep appends a step in line form, with its alternatives, as in
// "Job Server -> Worker: JOB_ASSIGN $job resize x within 3s after 900ms of GRAB_JOB past NOOP".
func AppendStep(dst []byte, p *codec.Protocol, st *Step) ([]byte, error) {
	if len(st.Choices) == 0 {
		return nil, errors.New("expected a message or action, got a step with neither")
	}
	dst = append(appendEnds(dst, p, st.Peer.Name, st.From), ": "...)
	dst, err := appendChoice(dst, &st.Choices[0])
	if err != nil {
		return nil, err
	}
	if st.Within > 0 {
		dst = fmt.Appendf(dst, " within %s", st.Within)
	}
	if st.After > 0 {
		dst = fmt.Appendf(dst, " after %s", st.After)
	}
	if st.Until > 0 {
		dst = fmt.Appendf(dst, " until %s", st.Until)
	}
	if st.Since != nil {
		dst = fmt.Appendf(dst, " of %s", st.Since.Name)
	}
	switch {
	case len(st.Ignored) == 0:
	case slices.Equal(st.Ignored, p.Sent(st.From, st.Peer.Role)): // all types that this side sends
		dst = append(dst, " past *"...)
	default:
		dst = append(dst, " past"...)
		for _, t := range st.Ignored {
			dst = append(append(dst, ' '), t.Name...)
		}
	}
	return appendAlternatives(append(dst, '\n'), st)
}

// appendAlternatives appends one line "or ..." for each choice of a step after the first one.
func appendAlternatives(dst []byte, st *Step) ([]byte, error) {
	for i := range st.Choices[1:] {
		c := &st.Choices[i+1]
		dst = append(dst, "  or "...)
		if c.Grade == NonStrict {
			dst = append(dst, "non-strict "...)
		}
		var err error
		if dst, err = appendChoice(dst, c); err != nil {
			return nil, err
		}
		dst = append(dst, '\n')
	}
	return dst, nil
}

// appendEnds appends the direction of a step.
func appendEnds(dst []byte, p *codec.Protocol, actor string, from codec.Side) []byte {
	a, b := actor, p.ServerName
	if from == codec.Server {
		a, b = b, a
	}
	dst = append(dst, a...)
	dst = append(dst, " -> "...)
	return append(dst, b...)
}

// String returns the choice in the notation of a step. It truncates long values.
func (c *Choice) String() string {
	if c.Verb != Send || c.Type == nil {
		text, _ := appendChoice(nil, c)
		return string(text)
	}
	text := []byte(c.Type.Name)
	for i := range c.Args {
		text = appendArg(append(text, ' '), c.field(i), &c.Args[i], showBytes)
	}
	return string(text)
}

// appendChoice appends a choice without its actor, modifiers and line end. It returns an error if the choice lacks what
// its verb needs: a type, bytes or a duration.
func appendChoice(dst []byte, c *Choice) ([]byte, error) {
	switch c.Verb {
	case Send:
		return appendMessage(dst, c)
	case Raw, Urgent:
		if len(c.Bytes) == 0 {
			return nil, fmt.Errorf("expected bytes after %q, got none", c.Verb.String())
		}
		return appendRaw(append(dst, c.Verb.String()...), c.Bytes), nil
	case Nothing:
		if c.For <= 0 {
			return nil, errors.New("expected a time for \"nothing\", got none")
		}
		return fmt.Appendf(dst, "%s for %s", c.Verb, c.For), nil
	}
	return append(dst, c.Verb.String()...), nil
}

// appendMessage appends the name of a message type and the arguments, in the one-line notation.
func appendMessage(dst []byte, c *Choice) ([]byte, error) {
	if c.Type == nil {
		return nil, errors.New("expected a message with a type, got a message without a type")
	}
	if c.Unchecked {
		dst = append(dst, "unchecked "...)
	}
	dst = append(dst, c.Type.Name...)
	for i := range c.Args {
		dst = appendArg(append(dst, ' '), c.field(i), &c.Args[i], 0)
	}
	if c.CRLF {
		dst = append(dst, " crlf"...)
	}
	return dst, nil
}

// appendArg appends an argument in the notation of transcripts. A limit other than 0 truncates longer values.
func appendArg(dst []byte, fd *codec.Field, a *Arg, limit int) []byte {
	switch a.Kind {
	case Any:
		return append(dst, '*')
	case Version:
		return append(dst, "*version"...)
	case Rest:
		return append(dst, "..."...)
	case Name:
		return append(append(dst, '$'), a.Name...)
	case Now:
		dst = append(dst, "$now"...)
		if a.Delta != 0 {
			dst = fmt.Appendf(dst, "%+d", a.Delta)
		}
		return dst
	}
	return appendValue(dst, fd, a.Value, limit)
}

// appendValue appends a value of the field fd: a binary integer in decimal, a word as it is, and everything else in
// quotes. If limit is greater than 0, it abbreviates a text that is longer than limit bytes.
func appendValue(dst []byte, fd *codec.Field, v []byte, limit int) []byte {
	switch {
	case isUint(fd) && fd.Width <= 8 && len(v) == fd.Width:
		return fmt.Append(dst, uintOf(v))
	case isUint(fd) || !isWord(v):
		return appendQuoted(dst, v, limit)
	case limit > 0 && len(v) > limit || isRun(v):
		return appendQuoted(dst, v, limit)
	}
	return append(dst, v...)
}

// isWord reports whether a value can be written without quotes.
func isWord(v []byte) bool {
	if len(v) == 0 || bytes.IndexByte([]byte("$*#"), v[0]) >= 0 || string(v) == "..." ||
		len(v) < maxUnit && isModifier(string(v)) {
		return false
	}
	for _, c := range v {
		if c <= ' ' || c > '~' || notInWord(rune(c)) {
			return false
		}
	}
	return true
}

// A long repeated text is written once, with the number of repetitions.
const (
	runBytes = 32 // the shortest repeated text, including all repetitions
	maxUnit  = 64 // the longest text to search for
	minTimes = 4  // the smallest number of repetitions of a text longer than one byte
)

func isRun(v []byte) bool {
	unit, times := repetition(v)
	return times > 0 && unit*times == len(v)
}

// repetition returns the length of the shortest text that is repeated at the beginning of v, and the number
// of its repetitions, or 0, 0 if there is none.
func repetition(v []byte) (unit, times int) {
	if len(v) < runBytes {
		return 0, 0
	}
	for unit := 1; unit <= maxUnit && unit < len(v); unit++ {
		if n := run(v, unit); n >= runBytes && (unit == 1 || n >= minTimes*unit) {
			return unit, n / unit
		}
	}
	return 0, 0
}

// run counts the bytes at the beginning of v that repeat its first unit bytes.
func run(v []byte, unit int) int {
	n := unit
	for n < len(v) && v[n] == v[n-unit] {
		n++
	}
	return n
}

// appendQuoted appends a value in quotes with escape sequences. It writes a repeated unit once with the number of
// repetitions, and if limit is greater than 0, only the first limit bytes of a longer value.
func appendQuoted(dst, v []byte, limit int) []byte {
	dst = append(dst, '"')
	switch {
	case isRun(v):
		unit, times := repetition(v)
		dst = appendEscaped(dst, v[:unit], quotedEscapes)
		return fmt.Appendf(dst, "\"*%d", times)
	case limit > 0 && len(v) > limit:
		dst = appendEscaped(dst, v[:limit], quotedEscapes)
		return fmt.Appendf(dst, "\" ... %d bytes more", len(v)-limit)
	}
	dst = appendEscaped(dst, v, quotedEscapes)
	return append(dst, '"')
}

// appendRaw appends bytes as hex and, where they are readable, as quoted text.
func appendRaw(dst, b []byte) []byte {
	for len(b) > 0 {
		dst = append(dst, ' ')
		if unit, times := repetition(b); times > 0 {
			dst = appendQuoted(dst, b[:unit*times], 0)
			b = b[unit*times:]
		} else if n := readable(b); n >= 3 {
			dst = appendQuoted(dst, b[:n], 0)
			b = b[n:]
		} else {
			dst = fmt.Appendf(dst, "%02x", b[0])
			b = b[1:]
		}
	}
	return dst
}

// readable counts the readable bytes at the beginning of b, up to a byte that begins a run.
func readable(b []byte) int {
	for i, c := range b {
		if !isReadable(c) {
			return i
		}
		if len(b)-i >= runBytes && run(b[i:i+runBytes], 1) == runBytes {
			return i
		}
	}
	return len(b)
}

// isReadable reports whether a byte is printable ASCII, a line feed, a CR or a tab.
func isReadable(c byte) bool {
	return c >= ' ' && c <= '~' || c == '\n' || c == '\r' || c == '\t'
}

// endpoints encode and decode one actor's connection while a script is printed.
type endpoints struct{ writer, reader *wire }

// appendStep appends a step as a block of bytes with their meaning, and its alternatives. A step that neither sends nor
// expects bytes is written in the one-line notation; modifiers, which a block cannot have, are an error.
func (e *endpoints) appendStep(dst []byte, p *codec.Protocol, st *Step) ([]byte, error) {
	if len(st.Choices) == 0 {
		return nil, errors.New("expected a message or action, got a step with neither")
	}
	if len(dst) > 0 && !bytes.HasSuffix(dst, []byte("\n\n")) {
		dst = append(dst, '\n')
	}
	c := &st.Choices[0]
	if c.Verb != Send && c.Verb != Raw {
		return AppendStep(dst, p, st)
	}
	if st.Within > 0 || st.After > 0 || st.Until > 0 || len(st.Ignored) > 0 {
		return nil, errors.New("a block of bytes cannot contain the modifiers within, after, until and past: use the one-line notation")
	}
	pr := Printer{Protocol: p}
	if c.Verb == Raw {
		if len(c.Bytes) == 0 {
			return nil, errors.New("expected bytes after \"raw\", got none")
		}
		e.writer.raw(st.From, c.Bytes)
		e.reader.raw(st.From, c.Bytes)
		dst = append(appendEnds(dst, p, st.Peer.Name, st.From), '\n')
		raw := &codec.Frame{}
		dst = pr.appendSegments(dst, raw, pr.segments(raw, c.Bytes), -1, "")
		return appendAlternatives(dst, st)
	}
	f, err := e.send(st, c)
	if err != nil {
		return nil, err
	}
	return appendAlternatives(pr.AppendFrame(dst, st.Peer.Name, f), st)
}

// send encodes a message and decodes it again, to check that the printed lines express the same message.
func (e *endpoints) send(st *Step, c *Choice) (*codec.Frame, error) {
	if c.Type == nil {
		return nil, errors.New("expected a message with a type, got a message without a type")
	}
	if c.Unchecked {
		return nil, fmt.Errorf("a block of bytes cannot express unchecked %s: use the one-line notation", c.Type.Name)
	}
	m := codec.Message{Type: c.Type, CRLF: c.CRLF}
	for i := range c.Args {
		a := &c.Args[i]
		if a.Kind != Literal {
			return nil, fmt.Errorf("a block of bytes cannot express %s: use the one-line notation", appendArg(nil, nil, a, 0))
		}
		m.Args = append(m.Args, a.Value)
	}
	raw := c.Bytes
	var err error
	if raw == nil {
		raw, err = e.writer.session.Append(nil, st.From, &m)
	} else {
		_, _, err = e.writer.decode(st.From, raw)
	}
	if err != nil {
		return nil, errors.New(explain(c.Type, err))
	}
	f, n, err := e.reader.decode(st.From, raw)
	if err != nil {
		return nil, fmt.Errorf("the encoded bytes cannot be decoded: %s", explain(c.Type, err))
	}
	var back codec.Message
	f.Message(&back)
	same := n == len(raw) && back.Type == m.Type && back.CRLF == m.CRLF && len(back.Args) == len(m.Args)
	for i := 0; same && i < len(m.Args); i++ {
		same = bytes.Equal(back.Args[i], m.Args[i])
	}
	if !same {
		return nil, fmt.Errorf("expected the encoded bytes to decode to the same %s, got another message", c.Type.Name)
	}
	return f, nil
}

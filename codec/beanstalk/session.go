package beanstalk

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"jobwire/codec"
)

const (
	crlf = "\r\n"

	// maxScan is the number of bytes without a line end after which decoding fails. A line whose length is between
	// Options.MaxLine and maxScan is skipped as a whole.
	maxScan = codec.DefaultMaxLine
)

// session decodes and encodes the messages of one connection: lines, and the bodies that some of them
// announce.
type session struct {
	opts    codec.Options
	sides   [2]side
	pending codec.FIFO[*codec.Type] // the requests that wait for their replies
	body    []byte                  // buffer for encoding a list
}

// side is the data that depends on the direction of a connection.
type side struct {
	codec.Layout
	word *codec.Field
	max  int          // maximum number of bytes in a body
	size codec.RuleID // rule that a larger body violates
	crlf codec.RuleID // rule that a body without CR LF after it violates
}

// newSession returns a session with the default limits of Beanstalk in place of those that are 0. The limit of the data
// in replies is never below the default of package codec.
func newSession(o codec.Options) codec.Session {
	if o.MaxData == 0 {
		o.MaxData = DefaultMaxData
	}
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	s := &session{opts: o.WithDefaults()}
	s.sides[codec.Peer] = side{word: &commandField, max: o.MaxData, size: RulePutSize, crlf: RulePutCRLF,
		Layout: codec.Layout{Form: &commandForm, Options: &s.opts}}
	s.sides[codec.Server] = side{word: &replyField, max: max(o.MaxData, codec.DefaultMaxData), size: RuleReplySize,
		crlf: RuleBodyCRLF, Layout: codec.Layout{Form: &replyForm, Options: &s.opts}}
	return s
}

// Decode implements [codec.Session]. It decodes the line at the beginning of b and the data that the line announces, if
// all of them have arrived.
func (s *session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	f.Reset(from)
	end, next, err := s.findLine(b, from)
	if err != nil {
		return next, err
	}
	f.Raw = b
	var n int
	if from == codec.Peer {
		n, err = s.decodeCommand(f, end, next)
	} else {
		n, err = s.decodeReply(f, end, next)
	}
	f.Raw = b[:min(n, len(b)):min(n, len(b))]
	return n, err
}

// findLine returns the end of the line that begins b, and the beginning of the next line. Only CR LF ends a
// line, unless that rule is waived.
func (s *session) findLine(b []byte, from codec.Side) (end, next int, err error) {
	limit := max(s.opts.MaxLine, maxScan)
	window := b[:min(len(b), limit)]
	for {
		k := bytes.IndexByte(window[next:], '\n')
		if k < 0 {
			break
		}
		next += k + 1
		if next > 1 && b[next-2] == '\r' {
			return next - 2, next, nil
		}
		if s.opts.Waived(RuleLineCRLF) {
			return next - 1, next, nil
		}
	}
	if len(b) < limit {
		return 0, len(b) + 1, codec.ErrShort
	}
	return 0, 0, &codec.Error{Rule: RuleLineLength, Offset: limit - 1, Field: s.sides[from].word.Name, Fatal: true,
		Detail: fmt.Sprintf("expected the end of the line within %d bytes, got none", limit)}
}

// decodeCommand decodes a command, whose line ends at end; next is the offset after the line end. It records the
// command as waiting for its reply, also if the command is unknown or illegal, because the server replies to it with an
// error.
func (s *session) decodeCommand(f *codec.Frame, end, next int) (int, error) {
	if s.pending.Len() >= s.opts.MaxPending {
		return 0, &codec.Error{Rule: RuleCommandPending, Field: commandField.Name, Fatal: true,
			Detail: fmt.Sprintf("expected no further request while %d requests wait for their replies, got one",
				s.pending.Len())}
	}
	f.Type = command(firstWord(f.Raw[:end]))
	var n int
	var err error
	if f.Type != nil {
		n, err = s.read(f, types[f.Type.Index:f.Type.Index+1], end, next)
	} else if n, err = s.readUnknown(f, end, next), s.checkLine(f, end, next); err == nil {
		err = &codec.Error{Rule: RuleCommandKnown, Field: commandField.Name,
			Detail: fmt.Sprintf("expected a command, got %q", shorten(f.Raw[:end]))}
	}
	if err != codec.ErrShort {
		s.asked(f.Type, err != nil)
	}
	return n, err
}

// decodeReply decodes a reply, whose line ends at end; next is the offset after the line end. Which replies are legal
// depends on the oldest request that waits; any complete reply answers that request.
func (s *session) decodeReply(f *codec.Frame, end, next int) (int, error) {
	word := string(firstWord(f.Raw[:end]))
	msgTypes := s.candidates(word)
	if msgTypes != nil {
		f.Type = msgTypes[0]
		n, err := s.read(f, msgTypes, end, next)
		if err != codec.ErrShort {
			s.answered()
		}
		return n, err
	}
	n := s.readUnknown(f, end, next)
	for _, t := range types {
		if t.Res != 0 && t.Word == word {
			n += announced(t, f.Raw[:end])
			break
		}
	}
	err := s.checkLine(f, end, next)
	switch {
	case err != nil:
	case s.pending.Len() == 0:
		err = &codec.Error{Rule: RuleReplyAsked, Field: replyField.Name,
			Detail: fmt.Sprintf("expected no reply, because no request waits for one, got %q", shorten(f.Raw[:end]))}
	default:
		err = &codec.Error{Rule: RuleReplyForm, Field: replyField.Name,
			Detail: fmt.Sprintf("expected %[2]s, got %[1]q", shorten(f.Raw[:end]), names(s.replies()))}
	}
	s.answered()
	return n, err
}

// readUnknown decodes a line of unknown type.
func (s *session) readUnknown(f *codec.Frame, end, next int) int {
	f.Head = 1
	f.Spans = append(f.Spans, codec.Span{Field: s.sides[f.From].word, Off: 0, End: end, Next: next})
	return next
}

// read decodes a message that has one of the given types, which have the same word. If its body matches
// several of them, the first is chosen.
func (s *session) read(f *codec.Frame, msgTypes []*codec.Type, end, next int) (int, error) {
	t, d := msgTypes[0], &s.sides[f.From]
	err := s.checkLine(f, end, next)
	if err == nil {
		err = s.readLine(f, end, next)
	}
	if err != nil {
		// If the line announces a body, skip it: it must not be interpreted as commands.
		return next + announced(t, f.Raw[:end]), err
	}
	k := sizedAt[t.Index]
	if k < 0 || f.Head+k >= len(f.Spans) {
		return next, nil
	}
	size, _ := codec.ParseNumber(f.Value(f.Head + k))
	stop := next + bodySize(size)
	n := stop + len(crlf)
	if limit := d.limit(); size > uint64(limit) {
		return n, &codec.Error{Rule: d.size, Offset: f.Spans[f.Head+k].Off, Field: t.Fields[k].Name,
			Detail: fmt.Sprintf("expected a body of at most %[2]d bytes, got %[1]d", size, limit)}
	}
	if len(f.Raw) < n {
		return n, codec.ErrShort
	}
	if string(f.Raw[stop:n]) != crlf && !s.opts.Waived(d.crlf) {
		return s.skipBody(f, t, stop)
	}
	return n, s.readBody(f, msgTypes, next, stop, n)
}

// limit returns the maximum size of a body. If the rule is waived, the maximum is larger but still exists,
// because a peer may announce any size.
func (s *side) limit() int {
	if s.Options.Waived(s.size) {
		return max(s.max, codec.DefaultMaxData)
	}
	return s.max
}

// checkLine checks the length and the line end of a line, independently of its type.
func (s *session) checkLine(f *codec.Frame, end, next int) error {
	word := s.sides[f.From].word.Name
	if next > s.opts.MaxLine && !s.opts.Waived(RuleLineLength) {
		return &codec.Error{Rule: RuleLineLength, Offset: s.opts.MaxLine, Field: word,
			Detail: fmt.Sprintf("expected a line of at most %[2]d bytes, got %[1]d", next, s.opts.MaxLine)}
	}
	cr, lf := bytes.IndexByte(f.Raw[:end], '\r'), bytes.IndexByte(f.Raw[:end], '\n')
	if cr < 0 && lf < 0 || s.opts.Waived(RuleLineCRLF) {
		return nil
	}
	if cr < 0 || lf >= 0 && lf < cr {
		return &codec.Error{Rule: RuleLineCRLF, Offset: lf, Field: word, Detail: "expected CR LF, got LF alone"}
	}
	return &codec.Error{Rule: RuleLineCRLF, Offset: cr, Field: word, Detail: "expected CR LF, got CR alone"}
}

// readLine decodes the word of f.Type and the fields in its line.
func (s *session) readLine(f *codec.Frame, end, next int) error {
	t, d := f.Type, &s.sides[f.From]
	if s.opts.Waived(d.Spacing) {
		end = len(bytes.TrimRight(f.Raw[:end], " "))
	}
	stop := len(t.Word)
	at, more := stop, stop < end
	if more {
		at++
	}
	f.Head = 1
	f.Spans = append(f.Spans, codec.Span{Field: d.word, Off: 0, End: stop, Next: at})
	fields := t.Fields
	if k := sizedAt[t.Index]; k >= 0 {
		fields = fields[:k+1]
	}
	var err *codec.Error
	switch {
	case len(fields) > 0:
		err = d.Split(f, fields, t.Sep, at, end, more)
	case more && at == end:
		err = &codec.Error{Rule: d.Trailing, Offset: stop, Field: d.word.Name,
			Detail: "expected the end of the line, got a space before it"}
	case more:
		err = &codec.Error{Rule: d.Extra, Offset: at, Field: d.word.Name, Detail: "expected no argument after " + t.Word +
			", got one"}
	}
	f.Spans[len(f.Spans)-1].Next = next
	if err == nil || len(fields) == 0 && s.opts.Waived(err.Rule) {
		return nil
	}
	return err
}

// announced returns the number of bytes that follow a line of the type, according to its last argument, for
// lines that are otherwise illegal. It returns 0 if the type has no body, or if the line has too few
// arguments to contain the size.
func announced(t *codec.Type, line []byte) int {
	k := sizedAt[t.Index]
	if k < 0 {
		return 0
	}
	args, last := -1, []byte(nil)
	for word := range bytes.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' }) {
		args, last = args+1, word
	}
	n, ok := codec.ParseNumber(last)
	if args <= k || !ok || n > t.Fields[k].Hi {
		return 0
	}
	return bodySize(n) + len(crlf)
}

// bodySize returns the size of a body as an int. An int of 32 bits is too small for some sizes; sizes near its limit,
// all of which are over the limit of a body, become smaller.
func bodySize(n uint64) int { return int(min(n, math.MaxInt-1<<16)) }

// replies returns the types that may answer the oldest request, or none if no request waits.
func (s *session) replies() []*codec.Type {
	if s.pending.Len() == 0 {
		return nil
	}
	return (*s.pending.At(0)).Answers
}

// candidates returns those of replies that have the word. They are consecutive.
func (s *session) candidates(word string) []*codec.Type {
	msgTypes := s.replies()
	for i, t := range msgTypes {
		if t.Word != word {
			continue
		}
		n := i + 1
		for n < len(msgTypes) && msgTypes[n].Word == word {
			n++
		}
		return msgTypes[i:n]
	}
	return nil
}

// awaits reports whether the oldest waiting request may be answered by t.
func (s *session) awaits(t *codec.Type) bool { return slices.Contains(s.replies(), t) }

// asked adds a request to the waiting requests if it has a reply. An illegal request (broken) always has a
// reply.
func (s *session) asked(t *codec.Type, broken bool) {
	switch {
	case t != nil && len(t.Replies) > 0:
		s.pending.Push(t)
	case broken:
		s.pending.Push(unknownCommand)
	}
}

// Expect implements [codec.Expecter].
func (s *session) Expect(replies ...*codec.Type) {
	if s.pending.Len() > 0 && (*s.pending.At(0)).Name == "" {
		*s.pending.At(0) = &codec.Type{Answers: codec.Union(unknownCommand.Answers, replies)}
	}
}

// answered removes the oldest request.
func (s *session) answered() {
	if s.pending.Len() > 0 {
		s.pending.Pop()
	}
}

func firstWord(line []byte) []byte {
	if k := bytes.IndexByte(line, ' '); k >= 0 {
		return line[:k]
	}
	return line
}

func names(msgTypes []*codec.Type) string {
	var n []string
	for _, t := range msgTypes {
		n = append(n, t.Label())
	}
	return strings.Join(n, ", ")
}

func shorten(b []byte) []byte { return b[:min(len(b), 40)] }

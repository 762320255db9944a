package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"jobwire/codec"
)

// Append implements [codec.Session]. It returns an error if the side does not send the message, if a reply has no
// request that waits for it, or if the arguments are illegal for the type.
func (s *session) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	t := m.Type
	fm := s.forms[t.Index]
	if !t.Sends(from) && !s.opts.Waived(RuleDirection) {
		return dst, &codec.Error{Rule: RuleDirection, Field: "Type",
			Detail: fmt.Sprintf("expected a message that the %[2]s sends, got %[1]s", t.Name, from)}
	}
	if from == codec.Server && !s.mayBeSent(fm) && !s.opts.Waived(RuleReplyAsked) {
		return dst, &codec.Error{Rule: RuleReplyAsked, Field: "Type",
			Detail: fmt.Sprintf("expected a request that waits for the reply %s, got none", t.Name)}
	}
	start := len(dst)
	out, bad := s.encode(dst, start, fm, m)
	if bad != nil {
		return dst, bad
	}
	if fm == nil || fm.general || s.opts.WaiveAll {
		if err := s.reread(out[start:], from, m); err != nil {
			return dst, err
		}
		return out, nil
	}
	switch {
	case from == codec.Peer:
		s.note(fm, nil, len(fm.words))
	case fm.msgType.Push && len(m.Args) > 0:
		s.pushed(fm, m.Args[len(m.Args)-1])
	case !fm.msgType.Push:
		s.answered()
	}
	return out, nil
}

// mayBeSent reports whether the server may send a message of the form now. Messages of general types are checked by
// reread.
func (s *session) mayBeSent(fm *form) bool {
	switch {
	case fm == nil || fm.general:
		return true
	case fm.msgType.Push:
		return s.pushable()
	}
	r := s.oldest()
	return r != nil && r.form != nil && slices.Contains(r.form.variants, fm)
}

// reread decodes an encoded message if its type does not determine how it will be decoded. A message of a
// general type may decode to a specific type, but not to another general type. If all rules are waived, any
// result is accepted. If reread returns an error, the session is unchanged.
func (s *session) reread(b []byte, from codec.Side, m *codec.Message) error {
	before := s.pending
	defer func() { // they may be large
		s.again.Reset(from)
		clear(s.reading.Args)
	}()
	s.again.Reset(from)
	s.again.Raw = b
	var n int
	var err error
	if from == codec.Peer {
		n, err = s.readRequest(&s.again, b)
	} else {
		n, err = s.decodeReply(&s.again, b)
	}
	general := err == nil && (s.forms[s.again.Type.Index] == nil || s.forms[s.again.Type.Index].general)
	switch {
	case err == codec.ErrShort || err == nil && n < len(b):
		err = &codec.Error{Rule: RuleForm, Field: m.Type.Name,
			Detail: "expected arguments that encode to exactly one message, got an incomplete message or several messages"}
	case general && s.again.Type != m.Type && !s.opts.WaiveAll:
		err = &codec.Error{Rule: RuleForm, Field: m.Type.Name,
			Detail: "expected arguments that encode to a message of this type, got a message that decodes to " +
				s.again.Type.Name}
	}
	if err == nil && s.again.Type == m.Type && !s.opts.WaiveAll {
		if s.again.Message(&s.reading); !slices.EqualFunc(s.reading.Args, m.Args, bytes.Equal) {
			err = &codec.Error{Rule: RuleForm, Field: m.Type.Name,
				Detail: "expected arguments that decode to the same values, got a message that decodes to other values"}
		}
	}
	if err == nil {
		return nil
	}
	s.pending = before
	if !s.opts.WaiveAll {
		return err
	}
	// The encoded bytes count as one message, even if they are illegal.
	if from == codec.Server {
		s.answered()
	} else {
		s.note(nil, nil, 0)
	}
	return nil
}

// encode appends the bytes of a message. It does not check whether the message may be sent in the current
// state.
func (s *session) encode(dst []byte, start int, fm *form, m *codec.Message) (out []byte, bad *codec.Error) {
	s.data = 0
	args := m.Args
	switch {
	case m.Type == s.inline:
		out, bad = s.Join(dst, start, m)
		args = nil
		if bad == nil {
			out = m.AppendEnd(out)
		}
	case fm == nil:
		out, args = dst, nil
		for _, a := range m.Args {
			out = append(append(out, a...), crlf...)
		}
	case fm.null:
		out = append(append(dst, m.Type.Word...), crlf...)
	case isArray(fm.kind):
		out, args, bad = s.appendArray(dst, start, fm, args)
	default:
		out, args, bad = s.appendSingle(dst, start, fm, args)
	}
	if bad == nil && len(args) > 0 && !s.opts.Waived(RuleForm) {
		bad = &codec.Error{Rule: RuleForm, Offset: len(out) - start, Field: m.Type.Name,
			Detail: fmt.Sprintf("expected fewer arguments, got %d more than the message type has", len(args))}
	}
	if bad == nil && s.data > s.opts.MaxData && !s.opts.Waived(RuleCap) {
		bad = &codec.Error{Rule: RuleCap, Field: m.Type.Name,
			Detail: fmt.Sprintf("expected at most %[2]d bytes of bulk strings, got %[1]d", s.data, s.opts.MaxData)}
	}
	return out, bad
}

// appendArray appends an array and returns the arguments that do not belong to a word of the form. If
// RuleForm is waived, extra arguments are appended as words, and an array with missing arguments is shorter.
func (s *session) appendArray(dst []byte, start int, fm *form, args [][]byte) ([]byte, [][]byte, *codec.Error) {
	once, words, left := len(fm.words)-fm.group, 0, len(args)
	for words < once || fm.group > 0 && (left > 0 || (words-once)%fm.group != 0) {
		w := fm.word(words)
		if w.args > left {
			if s.opts.Waived(RuleForm) {
				break
			}
			return nil, nil, missing(w, len(dst)-start)
		}
		words, left = words+1, left-w.args
	}
	count := words
	if s.opts.Waived(RuleForm) {
		count += left
	}
	dst = strconv.AppendInt(append(dst, fm.kind), int64(count/kinds[fm.kind].Array), 10)
	dst = append(dst, crlf...)
	all := args
	var bad *codec.Error
	for i := range words {
		w := fm.word(i)
		if dst, bad = s.appendWord(dst, start, w, args[:w.args], all); bad != nil {
			return nil, nil, bad
		}
		dst = append(dst, crlf...)
		args = args[w.args:]
	}
	for _, a := range args[:count-words] {
		dst = append(append(s.appendSize(dst, '$', len(a)), a...), crlf...)
	}
	return dst, args, nil
}

// appendSingle appends a value that is not an array, and returns the extra arguments.
func (s *session) appendSingle(dst []byte, start int, fm *form, args [][]byte) ([]byte, [][]byte, *codec.Error) {
	w := &fm.words[0]
	n, least := min(w.args, len(args)), w.args
	if least > 0 && w.fields[len(w.fields)-1].Optional {
		least--
	}
	if n < least && !s.opts.Waived(RuleForm) {
		return nil, nil, missing(w, len(dst)-start)
	}
	dst, bad := s.appendWord(dst, start, w, args[:n], args)
	if bad != nil {
		return nil, nil, bad
	}
	return append(dst, crlf...), args[n:], nil
}

// missing returns the error for a word without one of its arguments.
func missing(w *word, at int) *codec.Error {
	return &codec.Error{Rule: RuleForm, Offset: at, Field: w.fields[len(w.fields)-1].Name,
		Detail: "expected a value for this argument, got none"}
}

// appendSize appends the line that announces a size.
func (s *session) appendSize(dst []byte, kind byte, n int) []byte {
	s.data += n
	return append(strconv.AppendInt(append(dst, kind), int64(n), 10), crlf...)
}

// appendWord appends a word with the arguments args. all is the arguments of the whole message, for an
// argument whose name occurs again.
func (s *session) appendWord(dst []byte, start int, w *word, args, all [][]byte) ([]byte, *codec.Error) {
	fields := w.fields
	if isBulk(w.Kind) {
		n := w.size(args, all)
		if n > maxBulk && !s.opts.Waived(RuleSize) {
			return nil, &codec.Error{Rule: RuleSize, Offset: len(dst) - start, Field: sizeField.Name,
				Detail: fmt.Sprintf("expected a bulk string of at most %[2]d bytes, got %[1]d", n, maxBulk)}
		}
		if dst = s.appendSize(dst, w.Kind, n); !w.command {
			fields = fields[1:]
		}
	} else if len(fields) == 0 || fields[0].Prefix == "" {
		dst = append(dst, w.Kind)
	}
	if len(w.Parts) == 0 {
		return append(dst, w.Tail...), nil
	}
	if p := &w.Parts[0]; p.Again {
		return append(append(append(dst, p.Prefix...), all[p.Same]...), w.Tail...), nil
	}
	sep := ""
	if len(args) < len(w.Parts) {
		// The second argument is omitted, together with the separator.
		short := fields[0]
		sep, short.Term = short.Term, ""
		fields = []codec.Field{short}
	}
	var bad *codec.Error
	for i := range args {
		if dst, bad = s.JoinFields(dst, start, fields[i:i+1], sep, args[i:i+1]); bad != nil {
			break
		}
	}
	return dst, bad
}

// size returns the size of a word in bytes.
func (w *word) size(args, all [][]byte) int {
	n := len(w.Tail)
	for i, p := range w.Parts {
		switch {
		case p.Again:
			n += len(p.Prefix) + len(all[p.Same])
		case i < len(args):
			n += len(p.Prefix) + len(args[i])
		}
	}
	return n
}

package beanstalk

import (
	"fmt"
	"strconv"

	"jobwire/codec"
)

// Append implements [codec.Session]. It returns an error if the side does not send the message, if a reply has no
// request that waits for it, or if an argument or the length of the line is illegal.
func (s *session) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	t, d := m.Type, &s.sides[from]
	if !t.Sends(from) && !s.opts.Waived(RuleDirection) {
		return dst, &codec.Error{Rule: RuleDirection, Field: d.word.Name,
			Detail: fmt.Sprintf("expected a message that the %[2]s sends, got %[1]s", t.Name, from)}
	}
	if from == codec.Server && !s.awaits(t) && !s.opts.Waived(RuleReplyAsked) {
		return dst, &codec.Error{Rule: RuleReplyAsked, Field: d.word.Name,
			Detail: fmt.Sprintf("expected a request that waits for the reply %s, got none", t.Name)}
	}
	start := len(dst)
	out := append(dst, t.Word...)
	if len(m.Args) > 0 && sizedAt[t.Index] != 0 {
		out = append(out, ' ')
	}
	var err *codec.Error
	line := 0
	if sizedAt[t.Index] < 0 {
		out, err = d.Join(out, start, m)
		out = append(out, crlf...)
		line = len(out)
	} else {
		out, line, err = s.appendSized(out, start, d, m)
	}
	if err == nil && line-start > s.opts.MaxLine && !s.opts.Waived(RuleLineLength) {
		err = &codec.Error{Rule: RuleLineLength, Offset: s.opts.MaxLine, Field: d.word.Name,
			Detail: fmt.Sprintf("expected a line of at most %[2]d bytes, got %[1]d", line-start, s.opts.MaxLine)}
	}
	if err != nil {
		return dst, err
	}
	if from == codec.Server {
		s.answered()
	} else {
		s.asked(t, false)
	}
	return out, nil
}

// appendSized appends a message with a body. line is the offset of the end of its line.
func (s *session) appendSized(dst []byte, start int, d *side, m *codec.Message) (out []byte, line int,
	bad *codec.Error) {
	t, args := m.Type, m.Args
	k := sizedAt[t.Index]
	inLine := min(k, len(args))
	if dst, bad = d.JoinFields(dst, start, t.Fields[:k], t.Sep, args[:inLine]); bad != nil {
		return nil, 0, bad
	}
	args = args[inLine:]
	if len(t.Repeat) == 0 && len(args) != 1 {
		rule, what := d.Missing, "expected a body, got none"
		if len(args) > 1 {
			rule, what = d.Extra, "expected no arguments after the body, got some"
		}
		if !s.opts.Waived(rule) {
			return nil, 0, &codec.Error{Rule: rule, Offset: len(dst) - start, Field: t.Fields[k].Name, Detail: what}
		}
		if len(args) == 0 {
			dst = append(dst, crlf...)
			return dst, len(dst), nil
		}
	}
	extra := [][]byte(nil)
	body := s.body[:0]
	if len(t.Repeat) > 0 {
		if body, bad = s.appendList(body, d, t, args); bad != nil {
			bad.Offset += len(dst) - start
			return nil, 0, bad
		}
		s.body = body
	} else {
		body, extra = args[0], args[1:]
	}
	if len(body) > d.limit() {
		return nil, 0, &codec.Error{Rule: d.size, Offset: len(dst) - start, Field: t.Fields[k].Name,
			Detail: fmt.Sprintf("expected a body of at most %[2]d bytes, got %[1]d", len(body), d.limit())}
	}
	dst = strconv.AppendUint(append(dst, ' '), uint64(len(body)), 10)
	for _, a := range extra {
		dst = append(append(dst, ' '), a...)
	}
	dst = append(dst, crlf...)
	line = len(dst)
	if len(t.Repeat) == 0 {
		if bad = s.checkBody(t, body, line-start); bad != nil {
			return nil, 0, bad
		}
	}
	return append(append(dst, body...), crlf...), line, nil
}

// appendList appends a body that consists of the repeated fields of a message type. Values that YAML would
// interpret differently are quoted.
func (s *session) appendList(dst []byte, d *side, t *codec.Type, args [][]byte) ([]byte, *codec.Error) {
	dst = append(dst, yamlStart.Prefix...)
	strict := !s.opts.Waived(RuleReplyYAML)
	var group [2][]byte
	for len(args) > 0 {
		n := copy(group[:len(t.Repeat)], args)
		for i, a := range group[:n] {
			if !strict || isScalar(a) {
				continue
			}
			if t.Repeat[i].Chars != "" {
				return nil, &codec.Error{Rule: RuleReplyYAML, Offset: len(dst), Field: t.Repeat[i].Name,
					Detail: fmt.Sprintf("expected a YAML scalar on one line, got %q", shorten(a))}
			}
			group[i] = appendQuoted(nil, a)
		}
		var err *codec.Error
		if dst, err = d.JoinFields(dst, 0, t.Repeat, t.Sep, group[:n]); err != nil {
			return nil, err
		}
		args = args[n:]
	}
	if f := (codec.Frame{Raw: dst}); strict {
		if typed, bad := readYAML(&f, t, 0, len(dst)); bad != nil {
			return nil, &codec.Error{Rule: RuleReplyYAML, Offset: bad.at, Field: t.Name, Detail: bad.detail}
		} else if !typed {
			return nil, &codec.Error{Rule: RuleReplyYAML, Field: t.Name,
				Detail: "expected values that can be read again, got a value in two pairs of quotes"}
		}
	}
	return dst, nil
}

// checkBody returns an error for a body that would not be decoded as a body of the message type.
func (s *session) checkBody(t *codec.Type, body []byte, at int) *codec.Error {
	fd := &t.Fields[len(t.Fields)-1]
	if fd.Rule == "" || s.opts.Waived(fd.Rule) {
		return nil
	}
	for _, msgType := range s.candidates(t.Word) {
		if len(msgType.Repeat) == 0 {
			continue
		}
		f := codec.Frame{Raw: body}
		typed, bad := readYAML(&f, msgType, 0, len(body))
		if bad != nil {
			return &codec.Error{Rule: fd.Rule, Offset: at + bad.at, Field: fd.Name, Detail: bad.detail}
		}
		if typed {
			return &codec.Error{Rule: fd.Rule, Offset: at, Field: fd.Name,
				Detail: "the body belongs to another message type: expected " + t.Name + ", got " + msgType.Name}
		}
	}
	return nil
}

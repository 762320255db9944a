package beanstalk

import (
	"fmt"
	"strconv"

	"jobwire/codec"
)

func (s *session) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	t, d := m.Type, &s.sides[from]
	if !t.Sends(from) && !s.opts.Waived(RuleDirection) {
		return dst, &codec.Error{Rule: RuleDirection, Field: d.word.Name, Detail: fmt.Sprintf("%s is never sent by the %s", t.Name, from)}
	}
	if from == codec.Server && !s.awaits(t) && !s.opts.Waived(RuleReplyAsked) {
		return dst, &codec.Error{Rule: RuleReplyAsked, Field: d.word.Name, Detail: fmt.Sprintf("no request that %s could answer is waiting", t.Name)}
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
			Detail: fmt.Sprintf("a line of %d bytes, at most %d are sent", line-start, s.opts.MaxLine)}
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

// appendSized appends a message that has a body. line is where its line ends.
func (s *session) appendSized(dst []byte, start int, d *side, m *codec.Message) (out []byte, line int, bad *codec.Error) {
	t, args := m.Type, m.Args
	k := sizedAt[t.Index]
	inLine := min(k, len(args))
	if dst, bad = d.JoinFields(dst, start, t.Fields[:k], t.Sep, args[:inLine]); bad != nil {
		return nil, 0, bad
	}
	args = args[inLine:]
	if len(t.Repeat) == 0 && len(args) != 1 {
		rule, what := d.Missing, "the body is missing"
		if len(args) > 1 {
			rule, what = d.Surplus, "arguments follow the body"
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
	if len(t.Repeat) == 0 {
		args, extra = args[:1], args[1:]
	}
	size := bodySize(t, k, args)
	if size > d.limit() {
		return nil, 0, &codec.Error{Rule: d.size, Offset: len(dst) - start, Field: t.Fields[k].Name,
			Detail: fmt.Sprintf("a body of %d bytes, at most %d are sent", size, d.limit())}
	}
	dst = strconv.AppendUint(append(dst, ' '), uint64(size), 10)
	for _, a := range extra {
		dst = append(append(dst, ' '), a...)
	}
	dst = append(dst, crlf...)
	line = len(dst)
	if len(t.Repeat) > 0 {
		dst, bad = s.appendList(dst, start, d, t, args)
	} else {
		dst, bad = append(dst, args[0]...), s.judgeBody(t, args[0], line-start)
	}
	if bad != nil {
		return nil, 0, bad
	}
	return append(dst, crlf...), line, nil
}

// bodySize counts the bytes of a body, which stands behind the k-th field.
func bodySize(t *codec.Type, k int, args [][]byte) int {
	n := 0
	for i := k + 1; i < len(t.Fields); i++ {
		n += len(t.Fields[i].Lead)
	}
	for i, a := range args {
		n += len(a)
		if len(t.Repeat) > 0 {
			fd := &t.Repeat[i%len(t.Repeat)]
			n += len(fd.Lead) + len(fd.Term)
		}
	}
	return n
}

// appendList appends a body that is the repetitions of a row.
func (s *session) appendList(dst []byte, start int, d *side, t *codec.Type, args [][]byte) ([]byte, *codec.Error) {
	dst = append(dst, yamlStart.Lead...)
	for len(args) > 0 {
		n := min(len(t.Repeat), len(args))
		for i, a := range args[:n] {
			if !isScalar(a) && !s.opts.Waived(RuleReplyYAML) {
				return nil, &codec.Error{Rule: RuleReplyYAML, Offset: len(dst) - start, Field: t.Repeat[i].Name, Detail: fmt.Sprintf("%q is no plain scalar", shorten(a))}
			}
		}
		var err *codec.Error
		if dst, err = d.JoinFields(dst, start, t.Repeat, t.Sep, args[:n]); err != nil {
			return nil, err
		}
		args = args[n:]
	}
	return dst, nil
}

// judgeBody refuses a body that would not be read as the row's.
func (s *session) judgeBody(t *codec.Type, body []byte, at int) *codec.Error {
	fd := &t.Fields[len(t.Fields)-1]
	if fd.Rule == "" || s.opts.Waived(fd.Rule) {
		return nil
	}
	for _, row := range s.candidates(t.Word) {
		if len(row.Repeat) == 0 {
			continue
		}
		if f := (codec.Frame{Type: row, Raw: body}); readList(&f, 0, len(body)) {
			return &codec.Error{Rule: fd.Rule, Offset: at, Field: fd.Name, Detail: "this body is a " + row.Name}
		}
		if bad, detail := judgeYAML(body, row); detail != "" {
			return &codec.Error{Rule: fd.Rule, Offset: at + bad, Field: fd.Name, Detail: detail}
		}
	}
	return nil
}

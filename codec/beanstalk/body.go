package beanstalk

import (
	"bytes"
	"fmt"

	"jobwire/codec"
)

// skipBody finds where reading goes on behind a body that CR LF does not
// follow at stop: behind the next CR LF. Whoever miscounted a body still ended
// it so, and its rest must not be run as commands.
func (s *session) skipBody(f *codec.Frame, t *codec.Type, stop int) (int, error) {
	d := &s.sides[f.From]
	err := &codec.Error{Rule: d.crlf, Offset: stop, Field: t.Fields[len(t.Fields)-1].Name}
	if f.Raw[stop] == '\r' {
		err.Offset++
	}
	k := bytes.Index(f.Raw[stop:min(len(f.Raw), stop+endless)], []byte(crlf))
	switch {
	case k >= 0:
		err.Detail = fmt.Sprintf("CR LF is due behind the body, and the next stands at byte %d", stop+k)
		return stop + k + len(crlf), err
	case len(f.Raw) < stop+endless:
		return len(f.Raw) + 1, codec.ErrShort
	}
	err.Detail, err.Fatal = fmt.Sprintf("CR LF is due behind the body, and does not come within %d bytes", endless), true
	return 0, err
}

// readBody reads the body f.Raw[at:stop] of a message that ends at n.
func (s *session) readBody(f *codec.Frame, rows []*codec.Type, at, stop, n int) error {
	line := len(f.Spans)
	for _, t := range rows {
		f.Type, f.Spans = t, f.Spans[:line]
		if len(t.Repeat) > 0 {
			if readList(f, at, stop) {
				f.Spans[len(f.Spans)-1].Next = n
				return nil
			}
			continue
		}
		fd := &t.Fields[len(t.Fields)-1]
		if fd.Rule != "" && !s.opts.Waived(fd.Rule) {
			if bad, detail := judgeYAML(f.Raw[at:stop], rows[0]); detail != "" {
				return &codec.Error{Rule: fd.Rule, Offset: at + bad, Field: fd.Name, Detail: detail}
			}
		}
		f.Spans = append(f.Spans, codec.Span{Field: fd, Off: at, End: stop, Next: n})
	}
	return nil
}

// form tells whether a body has the plain form of a row's repetitions, whatever
// is waived.
var form = codec.Layout{Missing: RuleReplyForm, Surplus: RuleReplyForm, Trailing: RuleReplyForm, Options: &codec.Options{}}

// readList reads a body as the repetitions of f.Type and reports whether it is
// one.
func readList(f *codec.Frame, at, stop int) bool {
	if !bytes.HasPrefix(f.Raw[at:stop], []byte(yamlStart.Lead)) {
		return false
	}
	next := at + len(yamlStart.Lead)
	f.Spans = append(f.Spans, codec.Span{Field: &yamlStart, Off: at, End: next, Next: next})
	for next < stop {
		k := bytes.IndexByte(f.Raw[next:stop], '\n')
		if k < 0 {
			return false
		}
		line := next
		next += k + 1
		first := len(f.Spans)
		if form.Split(f, f.Type.Repeat, f.Type.Sep, line, next, true) != nil {
			return false
		}
		for i := first; i < len(f.Spans); i++ {
			if !isScalar(f.Value(i)) {
				return false
			}
		}
	}
	return true
}

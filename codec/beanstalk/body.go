package beanstalk

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"jobwire/codec"
)

// skipBody returns the position after a body that is not followed by CR LF at stop. It is the position after
// the next CR LF: a peer that announced a wrong size still ended the body with CR LF, and the rest of the
// body must not be interpreted as commands.
func (s *session) skipBody(f *codec.Frame, t *codec.Type, stop int) (int, error) {
	d := &s.sides[f.From]
	err := &codec.Error{Rule: d.crlf, Offset: stop, Field: t.Fields[len(t.Fields)-1].Name}
	if f.Raw[stop] == '\r' {
		err.Offset++
	}
	k := bytes.Index(f.Raw[stop:min(len(f.Raw), stop+maxScan)], []byte(crlf))
	switch {
	case k >= 0:
		err.Detail = fmt.Sprintf("expected CR LF immediately after the body, got the next CR LF at byte %d", stop+k)
		return stop + k + len(crlf), err
	case len(f.Raw) < stop+maxScan:
		return len(f.Raw) + 1, codec.ErrShort
	}
	err.Detail, err.Fatal = fmt.Sprintf("expected CR LF after the body, got none within %d bytes", maxScan), true
	return 0, err
}

// readBody decodes the body f.Raw[at:stop] of a message that ends at n.
func (s *session) readBody(f *codec.Frame, msgTypes []*codec.Type, at, stop, n int) error {
	fd := &msgTypes[len(msgTypes)-1].Fields[len(msgTypes[len(msgTypes)-1].Fields)-1]
	var wrong *yamlError
	for _, t := range msgTypes {
		if len(t.Repeat) == 0 {
			break
		}
		typed, bad := readYAML(f, t, at, stop)
		if typed {
			f.Type = t
			f.Spans[len(f.Spans)-1].Next = n
			return nil
		}
		if bad == nil {
			wrong = nil
			break
		}
		wrong = cmp.Or(wrong, bad)
	}
	if wrong != nil && !s.opts.Waived(fd.Rule) {
		f.Type = msgTypes[len(msgTypes)-1]
		return &codec.Error{Rule: fd.Rule, Offset: wrong.at, Field: fd.Name, Detail: wrong.detail}
	}
	f.Type = msgTypes[len(msgTypes)-1]
	f.Spans = append(f.Spans, codec.Span{Field: fd, Off: at, End: stop, Next: n})
	return nil
}

// longList is the number of lines and commas from which the spans of a list are allocated at once.
const longList = 64 << 10

// readYAML decodes f.Raw[at:stop] as the YAML dictionary or list that t declares. If the values are legal, it
// appends the spans of the entries to f and returns true. The span before them contains the YAML document
// start, comments and brackets.
func readYAML(f *codec.Frame, t *codec.Type, at, stop int) (typed bool, bad *yamlError) {
	before := len(f.Spans)
	f.Spans = append(f.Spans, codec.Span{Field: &yamlStart, Off: at, End: at, Next: stop})
	if bytes.Equal(f.Raw[at:stop], []byte(yamlStart.Prefix)) {
		return true, nil
	}
	if entries := bytes.Count(f.Raw[at:stop], []byte("\n")) +
		bytes.Count(f.Raw[at:stop], []byte(",")); entries > longList {
		f.Spans = slices.Grow(f.Spans, min(entries*len(t.Repeat), maxSpans)) // do not copy the spans of a long list
	}
	r := yamlReader{b: f.Raw[:stop], f: f, start: at, at: at, line: at, msgType: t}
	if bad = r.document(); bad == nil && r.f != nil {
		return true, nil
	}
	f.Spans = f.Spans[:before]
	return false, bad
}

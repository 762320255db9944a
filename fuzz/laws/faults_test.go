package laws

import (
	"bytes"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
)

// faulty is a session with an injected fault.
type faulty struct {
	codec.Session
	decode func(s codec.Session, from codec.Side, b []byte, f *codec.Frame) (int, error)
	append func(s codec.Session, dst []byte, from codec.Side, m *codec.Message) ([]byte, error)
}

func (s faulty) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	if s.decode != nil {
		return s.decode(s.Session, from, b, f)
	}
	return s.Session.Decode(from, b, f)
}

func (s faulty) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	if s.append != nil {
		return s.append(s.Session, dst, from, m)
	}
	return s.Session.Append(dst, from, m)
}

// TestLawsFindFaults tests that each law detects an injected fault of a session, and that Reduce finds a small case
// that shows the fault.
func TestLawsFindFaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		p     *codec.Protocol
		fault faulty
		law   string
		lines int // lines of the smallest case, at most
	}{
		{"the line end is forgotten", gearman.Protocol, faulty{append: func(s codec.Session, dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
			plain := *m
			plain.CRLF = false
			return s.Append(dst, from, &plain)
		}}, "append-decode", 2},
		{"an empty last argument is cut off", gearman.Protocol, faulty{decode: func(s codec.Session, from codec.Side, b []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(from, b, f)
			if k := len(f.Spans) - 1; err == nil && k > f.Head && f.Spans[k].Off == f.Spans[k].End {
				f.Spans[k-1].Next, f.Spans = f.Spans[k].Next, f.Spans[:k]
			}
			return n, err
		}}, "decode-append", 1},
		{"more is asked for than is missing", beanstalk.Protocol, faulty{decode: func(s codec.Session, from codec.Side, b []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(from, b, f)
			if err == codec.ErrShort {
				n += 2
			}
			return n, err
		}}, "prefixes", 1},
		{"more is asked for, and never read", beanstalk.Protocol, faulty{decode: func(s codec.Session, from codec.Side, b []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(from, b, f)
			if err == codec.ErrShort && len(b) > 8 {
				n += 16
			}
			return n, err
		}}, "chunks", 2},
		{"a line without its end is taken", beanstalk.Protocol, faulty{decode: func(s codec.Session, from codec.Side, b []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(from, b, f)
			if err == codec.ErrShort && bytes.HasPrefix(b, []byte("use ")) && len(b) > 6 {
				return s.Decode(from, append(bytes.Clone(b[:len(b)-2]), "\r\n"...), f)
			}
			return n, err
		}}, "prefixes", 1},
		{"a refusal leaves bytes behind", gearman.Protocol, faulty{append: func(s codec.Session, dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
			out, err := s.Append(dst, from, m)
			if err != nil {
				out = append(out, 0)
			}
			return out, err
		}}, "refused-or-read", 1},
		{"capitals are taken for small letters", beanstalk.Protocol, faulty{decode: func(s codec.Session, from codec.Side, b []byte, f *codec.Frame) (int, error) {
			if from == codec.Peer && len(b) > 2 && bytes.EqualFold(b[:2], []byte("us")) {
				b = append([]byte("use"), b[3:]...)
			}
			return s.Decode(from, b, f)
		}}, "mutations", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := *tt.p
			p.NewSession = func(o codec.Options) codec.Session {
				s := tt.fault
				s.Session = tt.p.NewSession(o)
				return s
			}
			for _, l := range laws {
				if l.name != tt.law {
					continue
				}
				tr := lawCheck{make: l.make, law: l.law, anything: l.any, next: 1}
				if tr.run(t, &p, 20000); tr.least == nil {
					t.Fatal("not found in 20000 cases")
				}
				var text bytes.Buffer
				if err := transcript.Lines(&text, tr.least.Script()); err != nil || bytes.Count(text.Bytes(), []byte("\n")) > tt.lines {
					t.Errorf("%v: at most %d lines are enough:\n%s", err, tt.lines, text.Bytes())
				}
				return
			}
			t.Fatalf("there is no law %s", tt.law)
		})
	}
}

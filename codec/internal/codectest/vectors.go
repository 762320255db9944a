package codectest

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strconv"
	"testing"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

// readCorpus parses a file of the test vectors of a protocol. It ends the test if it cannot.
func readCorpus(t *testing.T, p *codec.Protocol, file string) []*transcript.Script {
	t.Helper()
	name := path.Join(p.Name, file)
	src, err := corpus.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(p, name, src)
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// Accept decodes every example message of the protocol's accept.wire, and each of its prefixes. It encodes
// the message again, as bytes and as a transcript in line form.
func Accept(t *testing.T, p *codec.Protocol) {
	type way struct {
		row  string
		from codec.Side
	}
	seen := map[way]bool{}
	for _, s := range readCorpus(t, p, "accept.wire") {
		typeName := s.Value("case")
		inLines(t, s)
		sess, mirror := p.NewSession(codec.Options{}), p.NewSession(codec.Options{})
		for i := range s.Steps {
			st := &s.Steps[i]
			c := &st.Choices[0]
			var f codec.Frame
			for k := range c.Bytes {
				if n, err := sess.Decode(st.From, c.Bytes[:k], &f); err != codec.ErrShort || n <= k {
					t.Errorf("%s: line %d: %d bytes of %d: %d, %v; want short", typeName, st.Line, k, len(c.Bytes), n, err)
				}
			}
			n, err := sess.Decode(st.From, c.Bytes, &f)
			if err != nil || n != len(c.Bytes) {
				t.Errorf("%s: line %d: %d of %d, %v", typeName, st.Line, n, len(c.Bytes), err)
				continue
			}
			seen[way{f.Type.Name, st.From}] = seen[way{f.Type.Name, st.From}] || f.Type.Name == typeName
			var m codec.Message
			f.Message(&m)
			if out, err := mirror.Append(nil, st.From, &m); err != nil || !bytes.Equal(out, c.Bytes) {
				t.Errorf("%s: line %d: written again: %q, %v; want %q", typeName, st.Line, out, err, c.Bytes)
			}
		}
	}
	for _, msgType := range p.Types {
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			if msgType.Sends(from) && !seen[way{msgType.Name, from}] {
				t.Errorf("corpus/%s/accept.wire has no %s from the %s", p.Name, msgType.Name, from)
			}
		}
	}
}

// inLines writes a script in line form and checks that parsing it returns the same messages.
func inLines(t *testing.T, s *transcript.Script) {
	t.Helper()
	var text bytes.Buffer
	if err := transcript.Lines(&text, s); err != nil {
		t.Fatal(err)
	}
	again, err := transcript.Parse(s.Protocol, s.File, text.Bytes())
	if err != nil || len(again) != 1 || len(again[0].Steps) != len(s.Steps) {
		t.Fatalf("%s: %v", text.Bytes(), err)
	}
	for i := range s.Steps {
		a, b := &s.Steps[i].Choices[0], &again[0].Steps[i].Choices[0]
		same := func(x, y transcript.Arg) bool { return x.Kind == y.Kind && bytes.Equal(x.Value, y.Value) }
		if a.Type != b.Type || a.CRLF != b.CRLF || !slices.EqualFunc(a.Args, b.Args, same) {
			t.Errorf("%s: line %d is read back as %s", text.Bytes(), s.Steps[i].Line, again[0].Steps[i].Source)
		}
	}
}

// Reject checks that the codec reports the rule, the offset and the field that each illegal message of the
// protocol's reject.wire names, in one piece and byte by byte.
func Reject(t *testing.T, p *codec.Protocol) {
	rows := map[string]bool{}
	for _, s := range readCorpus(t, p, "reject.wire") {
		want := codec.Error{}
		for _, m := range s.Meta {
			switch m.Key {
			case "case":
			case "row":
				if p.TypeNamed(m.Value) == nil {
					t.Errorf("reject.wire:%d: no row %s", m.Line, m.Value)
				}
				rows[m.Value] = true
			case "rule":
				want.Rule = codec.RuleID(m.Value)
			case "offset":
				want.Offset, _ = strconv.Atoi(m.Value)
			case "field":
				want.Field = m.Value
			case "fatal":
				want.Fatal = true
			default:
				t.Errorf("reject.wire:%d: unknown key @%s", m.Line, m.Key)
			}
		}
		t.Run(s.Value("case"), func(t *testing.T) {
			last := len(s.Steps) - 1
			raw, from := s.Steps[last].Choices[0].Bytes, s.Steps[last].From
			open := func() codec.Session {
				sess := p.NewSession(codec.Options{})
				for _, st := range s.Steps[:last] {
					var f codec.Frame
					if _, err := sess.Decode(st.From, st.Choices[0].Bytes, &f); err != nil {
						t.Fatal(err)
					}
				}
				return sess
			}
			Refused(t, open, from, raw, want, len(raw))
		})
	}
	for _, msgType := range p.Types {
		if !rows[msgType.Name] {
			t.Errorf("corpus/%s/reject.wire has no vector for %s", p.Name, msgType.Name)
		}
	}
}

// Refused decodes raw in one piece and byte by byte, in sessions that open creates, and checks that both
// return the error want. It does not compare the Detail. n is the length that Decode must return with an
// error that is not fatal.
func Refused(t *testing.T, open func() codec.Session, from codec.Side, raw []byte, want codec.Error, n int) {
	t.Helper()
	var f codec.Frame
	length, err := open().Decode(from, raw, &f)
	var e *codec.Error
	if !errors.As(err, &e) {
		t.Fatalf("%q is read as %d, %v", raw, length, err)
	}
	got := *e
	got.Detail = ""
	if got != want || !e.Fatal && length != n {
		t.Errorf("%d, %v (fatal %v); want %d, %s at byte %d, %s (fatal %v)", length, e, e.Fatal, n, want.Rule, want.Offset,
			want.Field, want.Fatal)
	}
	if e.Detail == "" {
		t.Error("the error has no detail")
	}
	bytewise := open()
	for k := 1; k <= len(raw); k++ {
		m, err := bytewise.Decode(from, raw[:k], &f)
		if err == codec.ErrShort {
			continue
		}
		if err == nil || err.Error() != e.Error() || m != length {
			t.Errorf("byte by byte: %d, %v; in one piece: %d, %v", m, err, length, e)
		}
		return
	}
	t.Error("byte by byte it is still short at the end")
}

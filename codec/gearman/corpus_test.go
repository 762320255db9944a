package gearman_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

func readCorpus(t *testing.T, file string) []*transcript.Script {
	t.Helper()
	src, err := corpus.FS.ReadFile("gearman/" + file)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(gearman.Protocol, file, src)
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// TestAcceptVectors reads every vector, at every length, and writes it again.
func TestAcceptVectors(t *testing.T) {
	type way struct {
		row  string
		from codec.Side
	}
	seen := map[way]bool{}
	for _, s := range readCorpus(t, "accept.wire") {
		row := s.Value("case")
		sess := gearman.Protocol.NewSession(codec.Options{})
		mirror := gearman.Protocol.NewSession(codec.Options{})
		for i := range s.Steps {
			st := &s.Steps[i]
			c := &st.Choices[0]
			var f codec.Frame
			for k := range c.Bytes {
				if n, err := sess.Decode(st.From, c.Bytes[:k], &f); err != codec.ErrShort || n <= k {
					t.Errorf("%s: line %d: %d bytes of %d: %d, %v; want short", row, st.Line, k, len(c.Bytes), n, err)
				}
			}
			n, err := sess.Decode(st.From, c.Bytes, &f)
			if err != nil || n != len(c.Bytes) {
				t.Errorf("%s: line %d: %d of %d, %v", row, st.Line, n, len(c.Bytes), err)
				continue
			}
			seen[way{f.Type.Name, st.From}] = seen[way{f.Type.Name, st.From}] || f.Type.Name == row
			var m codec.Message
			f.Message(&m)
			if out, err := mirror.Append(nil, st.From, &m); err != nil || !bytes.Equal(out, c.Bytes) {
				t.Errorf("%s: line %d: written again: %q, %v; want %q", row, st.Line, out, err, c.Bytes)
			}
		}
	}
	for _, row := range gearman.Protocol.Types {
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			if row.Sends(from) && !seen[way{row.Name, from}] {
				t.Errorf("corpus/gearman/accept.wire has no %s from the %s", row.Name, from)
			}
		}
	}
}

// TestRejectVectors holds the codec to the rule, the byte and the field that each
// vector names, in one piece and byte by byte.
func TestRejectVectors(t *testing.T) {
	rows := map[string]bool{}
	for _, s := range readCorpus(t, "reject.wire") {
		want := codec.Error{}
		for _, m := range s.Meta {
			switch m.Key {
			case "case":
			case "row":
				if gearman.Protocol.TypeNamed(m.Value) == nil {
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
				sess := gearman.Protocol.NewSession(codec.Options{})
				for _, st := range s.Steps[:last] {
					var f codec.Frame
					if _, err := sess.Decode(st.From, st.Choices[0].Bytes, &f); err != nil {
						t.Fatal(err)
					}
				}
				return sess
			}
			whole, bytewise := open(), open()
			var f codec.Frame
			n, err := whole.Decode(from, raw, &f)
			var e *codec.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q is read as %v", raw, err)
			}
			got := *e
			got.Detail = ""
			if got != want || !e.Fatal && n != len(raw) {
				t.Errorf("%d, %v (fatal %v); want %s at byte %d, %s (fatal %v)", n, e, e.Fatal, want.Rule, want.Offset, want.Field, want.Fatal)
			}
			for k := 1; k <= len(raw); k++ {
				_, err := bytewise.Decode(from, raw[:k], &f)
				if err == codec.ErrShort {
					continue
				}
				if err == nil || err.Error() != e.Error() {
					t.Errorf("byte by byte: %v; in one piece: %v", err, e)
				}
				break
			}
		})
	}
	for _, row := range gearman.Protocol.Types {
		if !rows[row.Name] {
			t.Errorf("corpus/gearman/reject.wire has no vector for %s", row.Name)
		}
	}
}

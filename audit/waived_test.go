package audit

import (
	"bytes"
	"path"
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

// sentBytes contains bytes that one side sends.
type sentBytes struct {
	from codec.Side
	b    []byte
}

// TestWaivedRules: auditors that waive one rule of a protocol that the codec enforces, or all of them, read the
// conversations of the protocol's test vectors, also with each message truncated after each of its arguments.
func TestWaivedRules(t *testing.T) {
	for _, p := range codec.Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			inputs, rules := conversations(t, p)
			options := []codec.Options{{WaiveAll: true}}
			for rule := range rules {
				options = append(options, codec.Options{Waive: []codec.RuleID{rule}})
			}
			for _, o := range options {
				a := New(Options{Protocol: p, Server: true, Codec: o})
				for _, input := range inputs {
					l := a.open()
					for _, s := range input {
						a.observe(l, s.from, s.b)
					}
					a.ends(l, codec.Peer, false, true)
					a.ends(l, codec.Server, false, true)
				}
				if got := a.Report().Connections; got != len(inputs) {
					t.Errorf("%d connections were heard, want %d", got, len(inputs))
				}
			}
		})
	}
}

// conversations returns the conversations of a protocol's test vectors, and the rules that the rejected ones violate.
// There is a vector for each rule that the codec enforces.
func conversations(t *testing.T, p *codec.Protocol) (all [][]sentBytes, rules map[codec.RuleID]bool) {
	t.Helper()
	rules = map[codec.RuleID]bool{}
	for _, file := range []string{"accept.wire", "reject.wire"} {
		name := path.Join(p.Name, file)
		src, err := corpus.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts, err := transcript.Parse(p, name, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scripts {
			if rule := s.Value("rule"); rule != "" {
				rules[codec.RuleID(rule)] = true
			}
			var conversation []sentBytes
			for i := range s.Steps {
				conversation = append(conversation, sentBytes{s.Steps[i].From, s.Steps[i].Choices[0].Bytes})
			}
			all = append(all, conversation)
			for i, last := range conversation {
				for _, b := range cutShort(p, conversation[:i], last) {
					all = append(all, append(slices.Clip(conversation[:i]), sentBytes{last.from, b}))
				}
			}
		}
	}
	return all, rules
}

// cutShort returns variants of the last message with fewer arguments, or with an empty one. before contains the
// preceding messages.
func cutShort(p *codec.Protocol, before []sentBytes, last sentBytes) (all [][]byte) {
	nonStrict := func() codec.Session {
		s := p.NewSession(codec.Options{WaiveAll: true})
		for _, b := range before {
			s.Decode(b.from, b.b, &codec.Frame{})
		}
		return s
	}
	var f codec.Frame
	if _, err := nonStrict().Decode(last.from, last.b, &f); err != nil || len(f.Raw) > 1<<12 {
		return nil
	}
	var m codec.Message
	f.Message(&m)
	args := m.Args
	for k := range args {
		changed := slices.Clone(args)
		changed[k] = nil
		for _, with := range [][][]byte{args[:k], changed} {
			m.Args = with
			if b, err := nonStrict().Append(nil, last.from, &m); err == nil && !bytes.Equal(b, last.b) {
				all = append(all, b)
			}
		}
	}
	return all
}

package native

import (
	"fmt"
	"path"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/fuzz/laws"
)

// Conversation contains the bytes that each side of a connection sends: the arguments of [laws.Session].
type Conversation struct{ Up, Down []byte }

// Conversations returns seeds: legal conversations, mutated ones, and those in the corpus of the protocol.
func Conversations(p *codec.Protocol) (all []Conversation) {
	add := func(c *laws.Case) {
		s := p.NewSession(codec.Options{WaiveAll: true})
		var b [2][]byte
		for i := range c.Steps {
			st := &c.Steps[i]
			raw := st.Raw
			if st.Message.Type != nil {
				raw, _ = s.Append(nil, st.From, &st.Message)
			}
			b[st.From] = append(b[st.From], raw...)
		}
		if len(b[0])+len(b[1]) < 4096 {
			all = append(all, Conversation{b[codec.Peer], b[codec.Server]})
		}
	}
	for seed := range uint64(200) {
		add(laws.Legal(p, seed))
		add(laws.Broken(p, seed))
	}
	for _, s := range scripts(p) {
		c := &laws.Case{}
		for i := range s.Steps {
			c.Steps = append(c.Steps, laws.Step{From: s.Steps[i].From, Raw: s.Steps[i].Choices[0].Bytes})
		}
		add(c)
	}
	return all
}

// scripts returns the test vectors and example conversations of a protocol.
func scripts(p *codec.Protocol) (all []*transcript.Script) {
	for _, file := range []string{"accept.wire", "reject.wire", "example.wire"} {
		name := path.Join(p.Name, file)
		src, err := corpus.FS.ReadFile(name)
		if err != nil {
			continue // some protocols lack some of the files
		}
		scripts, err := transcript.Parse(p, name, src)
		if err != nil {
			panic(fmt.Sprintf("cannot read the test vectors of the corpus: %v", err))
		}
		all = append(all, scripts...)
	}
	return all
}

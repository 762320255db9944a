// Package laws contains invariants that every message of every protocol's codec must satisfy. Its tests check the
// invariants with generated cases, legal and illegal; native fuzz targets check them with bytes that the Go fuzzer
// generates.
//
//	go test ./fuzz/laws -args -cases 1000000 -seed 7
package laws

import (
	"math/rand/v2"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// Step is a message, or raw bytes, that one side sends to the other.
type Step struct {
	From    codec.Side
	Message codec.Message
	Raw     []byte // bytes instead of a message; Message.Type is then nil
}

// Case is a conversation on one connection.
type Case struct {
	Protocol *codec.Protocol
	Options  codec.Options // options of the sessions
	Role     codec.Role    // role of the peer; 0: the first role
	Seed     uint64        // random seed for choices in a law
	Steps    []Step
}

// Legal returns a conversation of up to eight legal messages.
func Legal(p *codec.Protocol, seed uint64) *Case {
	r := gen.New(seed)
	c := &Case{Protocol: p, Seed: seed, Role: 1 << r.IntN(len(p.Roles))}
	s := p.NewSession(codec.Options{})
	var waiting []*codec.Type // requests without a reply, oldest first
	for range 1 + r.IntN(2)*r.IntN(8) {
		o, from := gen.Options{MaxData: 128}, codec.Side(r.IntN(2))
		if r.IntN(16) == 0 {
			o.MaxData, o.MaxLine = 4096, 2000 // seldom, because long values take time and seldom reveal more
		}
		if from == codec.Server {
			o.Types = expectedTypes(p, waiting)
		}
		m := gen.Message(r, p, from, c.Role, o)
		if m.Type == nil {
			continue
		}
		// An example value is valid only in the reply to another request, and a YAML scalar only in UTF-8.
		limited := func(f codec.Field) bool { return f.Only || f.Scalar }
		_, err := s.Append(nil, from, &m)
		if err != nil && slices.ContainsFunc(slices.Concat(m.Type.Fields, m.Type.Repeat), limited) {
			continue
		}
		switch {
		case from == codec.Peer && m.Type.Ordered:
			waiting = append(waiting, m.Type)
		case from == codec.Server && len(waiting) > 0 && slices.Contains(waiting[0].Answers, m.Type):
			waiting = waiting[1:]
		}
		c.Steps = append(c.Steps, Step{From: from, Message: m})
	}
	return c
}

// expectedTypes returns the types of messages that a server may send next: replies to the oldest request or, if no
// request waits, types that are not replies.
func expectedTypes(p *codec.Protocol, waiting []*codec.Type) []*codec.Type {
	if len(waiting) > 0 {
		return waiting[0].Answers
	}
	types := []*codec.Type{} // not nil, which means all types
	for _, t := range p.Types {
		if t.Res != 0 && !t.Ordered {
			types = append(types, t)
		}
	}
	return types
}

// Broken returns a case in which at least one message is mutated, unless the case is empty. In half of the cases, the
// sessions have low limits.
func Broken(p *codec.Protocol, seed uint64) *Case {
	c := Legal(p, seed)
	r := gen.New(^seed)
	c.Options.MaxPending = 8
	broken := r.IntN(2) == 0
	if broken {
		c.Options.MaxData, c.Options.MaxLine = 1<<(4+r.IntN(8)), 1<<(5+r.IntN(4))
	}
	writer, reader := p.NewSession(codec.Options{}), p.NewSession(codec.Options{})
	var f codec.Frame
	for i := range c.Steps {
		s := &c.Steps[i]
		raw, err := writer.Append(nil, s.From, &s.Message)
		if err != nil {
			return c // the message is not valid
		}
		if _, err := reader.Decode(s.From, raw, &f); err != nil {
			f.Reset(s.From)
		}
		if i == len(c.Steps)-1 || r.IntN(4) == 0 {
			raw, broken = gen.Mutate(r, p, raw, &f), true
		}
		if broken { // after a mutation, the session state of the encoder is wrong, so send raw bytes
			*s = Step{From: s.From, Raw: raw}
		}
	}
	return c
}

// InvalidArgs returns a case in which one message has changed arguments, or too many or too few arguments.
func InvalidArgs(p *codec.Protocol, seed uint64) *Case {
	c := Legal(p, seed)
	if len(c.Steps) == 0 {
		return c
	}
	r := gen.New(^seed)
	m := &c.Steps[r.IntN(len(c.Steps))].Message
	for range 1 + r.IntN(2) {
		i := r.IntN(len(m.Args) + 1)
		switch {
		case i == len(m.Args) || r.IntN(8) == 0:
			m.Args = slices.Insert(m.Args, i, []byte("x"))
		case r.IntN(8) == 0:
			m.Args = slices.Delete(m.Args, i, i+1)
		default:
			m.Args[i] = gen.Value(r, m.Type.FieldAt(i), m.Args[i])
		}
	}
	return c
}

// append appends the encoding of step i to dst. Raw bytes do not change the session.
func (c *Case) append(s codec.Session, dst []byte, i int) ([]byte, error) {
	if st := &c.Steps[i]; st.Message.Type != nil {
		return s.Append(dst, st.From, &st.Message)
	}
	return append(dst, c.Steps[i].Raw...), nil
}

// actor returns the actor that represents the peer in transcripts.
func (c *Case) actor() transcript.Actor {
	role := max(c.Role, 1)
	return transcript.Actor{Name: c.Protocol.RoleNames(role), Role: role}
}

// Script returns the case as a transcript.
func (c *Case) Script() *transcript.Script {
	s := &transcript.Script{Protocol: c.Protocol}
	for i := range c.Steps {
		st := &c.Steps[i]
		choice := transcript.Choice{Verb: transcript.Raw, Bytes: st.Raw}
		if st.Message.Type != nil {
			choice = transcript.Choice{Type: st.Message.Type, CRLF: st.Message.CRLF}
			for _, v := range st.Message.Args {
				choice.Args = append(choice.Args, transcript.Arg{Value: v})
			}
		} else if len(st.Raw) == 0 {
			continue
		}
		s.Steps = append(s.Steps, transcript.Step{Peer: c.actor(), From: st.From, Choices: []transcript.Choice{choice}})
	}
	return s
}

// random returns a new source of random numbers for the choices of a law.
func (c *Case) random() *rand.Rand { return gen.New(c.Seed) }

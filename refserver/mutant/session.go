package mutant

import "jobwire/codec"

// Decode is another way to read what a peer sends; s is the session that would.
type Decode func(s codec.Session, b []byte, f *codec.Frame) (int, error)

// Decoding is p, read in another way. A nil decode changes nothing.
func Decoding(p *codec.Protocol, decode Decode) *codec.Protocol {
	if decode == nil {
		return p
	}
	other := *p
	other.NewSession = func(o codec.Options) codec.Session { return session{p.NewSession(o), decode} }
	return &other
}

type session struct {
	codec.Session
	decode Decode
}

func (s session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	if from == codec.Peer {
		return s.decode(s.Session, b, f)
	}
	return s.Session.Decode(from, b, f)
}

package inject

import "jobwire/codec"

// Decoder reads what a peer sends in place of the session s.
type Decoder func(s codec.Session, b []byte, f *codec.Frame) (int, error)

// decoding returns p with another decoder for what peers send.
func decoding(p *codec.Protocol, decode Decoder) *codec.Protocol {
	other := *p
	other.NewSession = func(o codec.Options) codec.Session { return session{p.NewSession(o), decode} }
	return &other
}

type session struct {
	codec.Session
	decode Decoder
}

func (s session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	if from == codec.Peer {
		return s.decode(s.Session, b, f)
	}
	return s.Session.Decode(from, b, f)
}

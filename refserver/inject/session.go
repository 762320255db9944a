package inject

import (
	"net"
	"regexp"

	"jobwire/codec"
)

// Decoder decodes a message from a peer in place of the Decode method of the session s.
type Decoder func(s codec.Session, b []byte, f *codec.Frame) (int, error)

// decoding returns p with decode as the decoder of messages from peers.
func decoding(p *codec.Protocol, decode Decoder) *codec.Protocol {
	other := *p
	other.NewSession = func(o codec.Options) codec.Session { return &session{p.NewSession(o), decode, nil} }
	return &other
}

// session is the session of a connection with another decoder.
type session struct {
	codec.Session
	decode Decoder
	peer   *Peer // whose Rest is recorded; may be nil
}

// Decode decodes messages from a peer with the other decoder and records in [Peer].Rest the bytes that have arrived
// after the message. After an incomplete message it asks for one more byte only, so that Rest is always current.
func (s *session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	if from != codec.Peer {
		return s.Session.Decode(from, b, f)
	}
	n, err := s.decode(s.Session, b, f)
	switch {
	case s.peer == nil:
	case err == codec.ErrShort:
		s.peer.Rest, n = string(b), len(b)+1
	case err != nil:
		s.peer.Rest = ""
	default:
		s.peer.Rest = string(b[n:])
	}
	return n, err
}

// decode decodes a message as the session does.
func decode(s codec.Session, b []byte, f *codec.Frame) (int, error) {
	return s.Decode(codec.Peer, b, f)
}

// substitution replaces bytes from peers before they are decoded.
type substitution struct {
	pattern *regexp.Regexp
	by      string // replacement; $1 is the first group of the pattern
	segment bool   // in each segment, not in each message
}

// edit adds the substitution to the server.
func (u *substitution) edit(s *Server) {
	if u.segment {
		before := s.Wrap
		s.Wrap = func(c net.Conn) net.Conn {
			if before != nil {
				c = before(c)
			}
			return Filtered(c, func(p []byte) []byte { return u.pattern.ReplaceAll(p, []byte(u.by)) })
		}
		return
	}
	decode := s.decoder()
	s.Decode = func(session codec.Session, b []byte, f *codec.Frame) (int, error) {
		var out []byte
		var ends [][2]int // ends of the replaced parts, in out and in b
		at := 0
		for _, match := range u.pattern.FindAllSubmatchIndex(b, -1) {
			out = u.pattern.Expand(append(out, b[at:match[0]]...), []byte(u.by), b, match)
			at = match[1]
			ends = append(ends, [2]int{len(out), at})
		}
		n, err := decode(session, append(out, b[at:]...), f)
		if err == codec.ErrShort && ends != nil {
			return len(b) + 1, err
		}
		used := n
		for _, end := range ends {
			if end[0] <= n {
				used = end[1] + n - end[0]
			}
		}
		return used, err
	}
}

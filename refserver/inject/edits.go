package inject

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Edit injects a fault into a server. It is called once for each start of the server, so its closures can keep state of
// that server.
type Edit func(*Server)

// When is a condition of an edit. nil: always.
type When func(m *Message) bool

func (w When) holds(m *Message) bool { return w == nil || w(m) }

// Both combines edits.
func Both(edits ...Edit) Edit {
	return func(s *Server) {
		for _, e := range edits {
			e(s)
		}
	}
}

// On calls do for messages from peers, like [Server.On], if when is true.
func On(types string, when When, do func(*Message)) Edit {
	return func(s *Server) {
		s.On(types, func(m *Message) {
			if when.holds(m) {
				do(m)
			}
		})
	}
}

// Out calls do for messages to peers, like [Server.Out], if when is true.
func Out(types string, when When, do func(*Message)) Edit {
	return func(s *Server) {
		s.Out(types, func(m *Message) {
			if when.holds(m) {
				do(m)
			}
		})
	}
}

// Wrap replaces each connection by the result of wrap.
func Wrap(wrap func(net.Conn) net.Conn) Edit { return func(s *Server) { s.Wrap = wrap } }

// Decode replaces the decoder of messages from peers.
func Decode(decode Decoder) Edit { return func(s *Server) { s.Decode = decode } }

// Later calls do after d, unless the connection has been closed by then.
func (p *Peer) Later(d time.Duration, do func()) {
	p.server.After(d, func() {
		if !p.Left {
			do()
		}
	})
}

// UpTo returns a function that truncates values before the first separator.
func UpTo(sep string) func(string) string {
	return func(v string) string {
		v, _, _ = strings.Cut(v, sep)
		return v
	}
}

// Number returns the value of a decimal number, or 0 if s is not one.
func Number(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

package inject

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Edit injects a fault into a server. It is called once for each start of the server, so its closures can keep state of that server.
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

// Ignore keeps messages from peers from the machine.
func Ignore(types string, when When) Edit { return On(types, when, (*Message).Drop) }

// Answer sends a reply to a message from a peer, and keeps the message from the machine.
func Answer(types string, when When, name string, args ...string) Edit {
	return On(types, when, func(m *Message) { m.Answer(name, args...) })
}

// Hangup closes the connection in place of handling a message from a peer.
func Hangup(types string, when When) Edit {
	return On(types, when, func(m *Message) {
		m.Drop()
		m.Peer.Close()
	})
}

// Crash stops the server in place of handling a message from a peer.
func Crash(types string, when When) Edit {
	return On(types, when, func(m *Message) {
		m.Drop()
		m.Server.Crash(m.Peer)
	})
}

// StopReading makes the server ignore a message from a peer and everything after it on the connection.
func StopReading(types string, when When) Edit {
	return On(types, when, func(m *Message) {
		m.Drop()
		m.Peer.Ignored = true
	})
}

// Change changes argument i of messages from peers. It ignores messages that have no argument i. i counts from 0.
func Change(types string, i int, when When, to func(v string) string) Edit {
	return On(types, when, func(m *Message) { m.change(i, to) })
}

// Drop does not send messages to peers.
func Drop(types string, when When) Edit { return Out(types, when, (*Message).Drop) }

// Rewrite changes argument i of messages to peers that have so many arguments. i counts from 0.
func Rewrite(types string, i int, when When, to func(v string) string) Edit {
	return Out(types, when, func(m *Message) { m.change(i, to) })
}

func (m *Message) change(i int, to func(string) string) {
	if i < len(m.Args) {
		m.Args[i] = to(m.Args[i])
	}
}

// Wrap replaces each connection by the result of wrap.
func Wrap(wrap func(net.Conn) net.Conn) Edit { return func(s *Server) { s.Wrap = wrap } }

// Filter changes what is read from each connection; see [Filtered].
func Filter(filter func(p []byte) []byte) Edit {
	return Wrap(func(c net.Conn) net.Conn { return Filtered(c, filter) })
}

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

// CauseIs is a condition on the cause of what the machine does ([Server.Cause]). names has the possible causes, separated by spaces.
func CauseIs(names string) When {
	return func(m *Message) bool { return slices.Contains(strings.Fields(names), m.Cause) }
}

// UpTo returns a function that truncates values before the first separator.
func UpTo(sep string) func(string) string {
	return func(v string) string {
		v, _, _ = strings.Cut(v, sep)
		return v
	}
}

// To returns a function that returns v for every value.
func To(v string) func(string) string { return func(string) string { return v } }

// Number returns the value of a decimal number, or 0 if s is not one.
func Number(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

// Decimal returns n in decimal notation.
func Decimal(n int) string { return strconv.Itoa(n) }

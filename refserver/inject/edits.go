package inject

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// Edit makes a server faulty. It is called once for each start of the server, and keeps what
// it must remember in its closures.
type Edit func(*Server)

// When is a condition of an edit. nil: always.
type When func(m *Message) bool

func (w When) holds(m *Message) bool { return w == nil || w(m) }

// Both makes several edits.
func Both(edits ...Edit) Edit {
	return func(s *Server) {
		for _, e := range edits {
			e(s)
		}
	}
}

// On calls do for messages of peers, as [Server.On] does, if the condition holds.
func On(types string, when When, do func(*Message)) Edit {
	return func(s *Server) {
		s.On(types, func(m *Message) {
			if when.holds(m) {
				do(m)
			}
		})
	}
}

// Out calls do for messages to peers, as [Server.Out] does, if the condition holds.
func Out(types string, when When, do func(*Message)) Edit {
	return func(s *Server) {
		s.Out(types, func(m *Message) {
			if when.holds(m) {
				do(m)
			}
		})
	}
}

// Ignore keeps messages of peers from the machine.
func Ignore(types string, when When) Edit { return On(types, when, (*Message).Drop) }

// Answer sends a reply in place of that of the machine.
func Answer(types string, when When, name string, args ...string) Edit {
	return On(types, when, func(m *Message) { m.Answer(name, args...) })
}

// After sends a message after what the machine sends. The condition is checked then.
func After(types string, when When, name string, args ...string) Edit {
	return On(types, nil, func(m *Message) {
		if m.Pass(); when.holds(m) {
			m.Peer.Send(name, args...)
		}
	})
}

// Hangup closes the connection.
func Hangup(types string, when When) Edit {
	return On(types, when, func(m *Message) {
		m.Drop()
		m.Peer.Close()
	})
}

// Crash ends the server.
func Crash(types string, when When) Edit {
	return On(types, when, func(m *Message) {
		m.Drop()
		m.Server.Crash(m.Peer)
	})
}

// StopReading makes the server read nothing more from the peer.
func StopReading(types string, when When) Edit {
	return On(types, when, func(m *Message) {
		m.Drop()
		m.Peer.Ignored = true
	})
}

// Retype changes messages of peers to another type; see [Message.Retype].
func Retype(types string, when When, to string) Edit {
	return On(types, when, func(m *Message) { m.Retype(to) })
}

// Change changes the i-th argument of messages of peers that have one.
func Change(types string, i int, when When, to func(v string) string) Edit {
	return On(types, when, func(m *Message) { m.change(i, to) })
}

// Drop keeps messages from peers.
func Drop(types string, when When) Edit { return Out(types, when, (*Message).Drop) }

// Replace sends peers other messages.
func Replace(types string, when When, name string, args ...string) Edit {
	return Out(types, when, func(m *Message) { m.Become(name, args...) })
}

// Rewrite changes the i-th argument of messages to peers that have one.
func Rewrite(types string, i int, when When, to func(v string) string) Edit {
	return Out(types, when, func(m *Message) { m.change(i, to) })
}

func (m *Message) change(i int, to func(string) string) {
	if i < len(m.Args) {
		m.Args[i] = to(m.Args[i])
	}
}

// Wrap changes connections.
func Wrap(wrap func(net.Conn) net.Conn) Edit { return func(s *Server) { s.Wrap = wrap } }

// Filter changes what is read from each connection.
func Filter(filter func(p []byte) []byte) Edit {
	return Wrap(func(c net.Conn) net.Conn { return Filtered(c, filter) })
}

// Decode changes how the messages of peers are decoded.
func Decode(decode Decoder) Edit { return func(s *Server) { s.Decode = decode } }

// Incomplete calls f each time that bytes of a peer are decoded: with the bytes if they are an incomplete message, else
// with nil. What it returns, unless nil, is decoded instead.
func Incomplete(f func(session codec.Session, b []byte) []byte) Edit {
	return Decode(func(session codec.Session, b []byte, frame *codec.Frame) (int, error) {
		n, err := session.Decode(codec.Peer, b, frame)
		if err != codec.ErrShort {
			b = nil
		}
		if b = f(session, b); b != nil {
			return session.Decode(codec.Peer, b, frame)
		}
		return n, err
	})
}

// Blocked makes the server ignore messages of the types while a message of another connection is
// incomplete of which is holds.
func Blocked(types string, is func(b []byte) bool) Edit {
	return func(s *Server) {
		var in codec.Session // of the incomplete message
		Incomplete(func(session codec.Session, b []byte) []byte {
			if b != nil && is(b) {
				in = session
			} else if in == session {
				in = nil
			}
			return nil
		})(s)
		Ignore(types, func(*Message) bool { return in != nil })(s)
	}
}

// Later calls do after d, if the peer is still connected.
func (p *Peer) Later(d time.Duration, do func()) {
	p.server.After(d, func() {
		if !p.Left {
			do()
		}
	})
}

// CauseIs is a condition on what the machine does: one of the names has caused it.
func CauseIs(names string) When {
	return func(m *Message) bool { return slices.Contains(strings.Fields(names), m.Cause) }
}

// ArgIs is a condition on the i-th argument: it has one of the values.
func ArgIs(i int, values ...string) When {
	return func(m *Message) bool { return i < len(m.Args) && slices.Contains(values, m.Args[i]) }
}

// OfJob is a condition on the job that a message is about.
func OfJob(is func(*Job) bool) When {
	return func(m *Message) bool { return m.Job != nil && is(m.Job) }
}

// Broken is a condition on an illegal message: it breaks the rule, and is of the type.
func Broken(rule codec.RuleID, typ string) When {
	return func(m *Message) bool { return m.Err.Rule == rule && m.Typed(typ) }
}

// ToNUL truncates a value at its first NUL.
func ToNUL(v string) string { return UpTo("\x00")(v) }

// UpTo truncates values before a separator.
func UpTo(sep string) func(string) string {
	return func(v string) string {
		v, _, _ = strings.Cut(v, sep)
		return v
	}
}

// AtMost truncates values at a length.
func AtMost(n int) func(string) string { return func(v string) string { return v[:min(n, len(v))] } }

// To returns a constant in place of a value.
func To(v string) func(string) string { return func(string) string { return v } }

// Number returns the value of a decimal, or 0.
func Number(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

// Decimal returns n as text.
func Decimal(n int) string { return strconv.Itoa(n) }

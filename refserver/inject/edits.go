package inject

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
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

// After sends a message after the machine has handled a message from a peer. The condition is checked then.
func After(types string, when When, name string, args ...string) Edit {
	return On(types, nil, func(m *Message) {
		if m.Pass(); when.holds(m) {
			m.Peer.Send(name, args...)
		}
	})
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

// Retype changes the type of messages from peers; see [Message.Retype].
func Retype(types string, when When, to string) Edit {
	return On(types, when, func(m *Message) { m.Retype(to) })
}

// Change changes argument i of messages from peers. It ignores messages that have no argument i. i counts from 0.
func Change(types string, i int, when When, to func(v string) string) Edit {
	return On(types, when, func(m *Message) { m.change(i, to) })
}

// Drop does not send messages to peers.
func Drop(types string, when When) Edit { return Out(types, when, (*Message).Drop) }

// Replace sends another message in place of messages to peers.
func Replace(types string, when When, name string, args ...string) Edit {
	return Out(types, when, func(m *Message) { m.Become(name, args...) })
}

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

// Incomplete calls f each time that bytes from a peer are decoded: with the bytes if they are an incomplete message, otherwise with
// nil. If f returns bytes, these are decoded instead.
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

// Blocked makes the server ignore messages of the types while a message of another connection is incomplete whose bytes satisfy is.
func Blocked(types string, is func(b []byte) bool) Edit {
	return func(s *Server) {
		var in codec.Session // the session of the incomplete message, or nil
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

// ArgIs is a condition on argument i, which counts from 0: it has one of the values.
func ArgIs(i int, values ...string) When {
	return func(m *Message) bool { return i < len(m.Args) && slices.Contains(values, m.Args[i]) }
}

// OfJob is a condition on the job that a message is about.
func OfJob(is func(*Job) bool) When {
	return func(m *Message) bool { return m.Job != nil && is(m.Job) }
}

// Broken is a condition on an illegal message: it violates the rule and is of the type. It must only be used for messages with Err.
func Broken(rule codec.RuleID, typ string) When {
	return func(m *Message) bool { return m.Err.Rule == rule && m.Typed(typ) }
}

// ToNUL truncates a value before its first NUL.
func ToNUL(v string) string { return UpTo("\x00")(v) }

// UpTo returns a function that truncates values before the first separator.
func UpTo(sep string) func(string) string {
	return func(v string) string {
		v, _, _ = strings.Cut(v, sep)
		return v
	}
}

// AtMost returns a function that truncates values to n bytes.
func AtMost(n int) func(string) string { return func(v string) string { return v[:min(n, len(v))] } }

// To returns a function that returns v for every value.
func To(v string) func(string) string { return func(string) string { return v } }

// Number returns the value of a decimal number, or 0 if s is not one.
func Number(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

// Decimal returns n in decimal notation.
func Decimal(n int) string { return strconv.Itoa(n) }

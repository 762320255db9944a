package inject

import (
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// Names of messages that are events of a connection.
const (
	Opened     = "(opened)"
	Illegal    = "(illegal)"     // the peer sent an illegal message; Err says why
	Ended      = "(ended)"       // the peer sends nothing more: half-closed or closed, whichever comes first
	HalfClosed = "(half-closed)" // the peer has closed its direction; if the message is dropped, the server stays
	Closed     = "(closed)"      // the connection is closed; if the message is dropped, the machine does not notice
)

// Message is a message from a peer, a message to a peer, or an event.
type Message struct {
	*Server
	Peer  *Peer
	Job   *Job         // that the message is about, if the record knows, or nil
	Frame *codec.Frame // valid only while the message is handled; nil for events
	Err   *codec.Error // of an illegal message
	Name  string       `expr:"name"` // type of the message, in GearMonkey the command of a request
	Args  []string     `expr:"args"` // values of its fields, in GearMonkey the words of a request after the command

	Raw    []byte        // of a message to a peer: if not nil, what is sent in its place
	Delay  time.Duration // of a message to a peer: how much later it is sent
	Hangup bool          // of a message to a peer: the connection is closed after it
	Copies int           // of a message to a peer: how many times more it is sent
	Split  int           // of a message to a peer: it is written in pieces of so many bytes, with a pause after each
	Pause  time.Duration
	Also   *codec.Message // of a message to a peer: what is sent after it

	name string // as it was received
	args []string
	done bool // passed on or dropped
}

func (s *Server) message(p *Peer, f *codec.Frame) *Message {
	m := &Message{Server: s, Peer: p, Frame: f}
	// The decoder of an illegal message may have found values, but not set the bytes of the message.
	beyond := func(s codec.Span) bool { return s.End > len(f.Raw) }
	if f.Type != nil && !slices.ContainsFunc(f.Spans, beyond) {
		var said codec.Message
		f.Message(&said)
		m.Name, m.Args = f.Type.Name, make([]string, len(said.Args))
		for i, a := range said.Args {
			m.Args[i] = string(a)
		}
	}
	return m
}

// original stores what the message says, to see what edits change.
func (m *Message) original() { m.name, m.args = m.Name, slices.Clone(m.Args) }

func (m *Message) changed() bool { return m.Name != m.name || !slices.Equal(m.Args, m.args) }

// Arg returns the i-th argument, or "".
func (m *Message) Arg(i int) string {
	if m == nil || i >= len(m.Args) {
		return ""
	}
	return m.Args[i]
}

// Text returns the bytes of the message.
func (m *Message) Text() string { return string(m.Frame.Raw) }

// Value returns the value of the field with the name, or "".
func (m *Message) Value(field string) string {
	for i := range m.Frame.Spans {
		if m.Frame.Spans[i].Field.Name == field {
			return string(m.Frame.Value(i))
		}
	}
	return ""
}

// Typed reports whether the message is of the type. An illegal message may be, too.
func (m *Message) Typed(name string) bool { return m.Frame.Type != nil && m.Frame.Type.Name == name }

// Become changes the message to one of another type, with other arguments.
func (m *Message) Become(name string, args ...string) { m.Name, m.Args = name, args }

// Retype changes the message to one of another type that has the same values in fields of the same names.
func (m *Message) Retype(name string) {
	to := retyped(m.Frame, m.row(name))
	if m.commands() || m.Name == Illegal {
		m.replace(to)
		return
	}
	m.Become(name)
	for _, a := range to.Args {
		m.Args = append(m.Args, string(a))
	}
}

// Drop keeps the message from the machine or from the peer.
func (m *Message) Drop() { m.done = true }

// Pass gives the message to the machine now. Otherwise that happens after the edits, unless
// they drop the message.
func (m *Message) Pass() {
	if m.done {
		return
	}
	m.done = true
	f := m.Frame
	if m.Err != nil {
		m.Peer.raw = slices.Clone(f.Raw)
		m.Machine.Reject(m.Peer.Conn, f, m.Err)
		return
	}
	if m.changed() || m.rewrite {
		f = m.write(m.Name, m.Args)
		m.Peer.setRequest(m, f)
	}
	m.pass(m, f)
}

// again gives the machine the message once more.
func (m *Message) again() { m.pass(m, m.Frame) }

// Answer sends the peer a reply in place of that of the machine.
func (m *Message) Answer(name string, args ...string) {
	m.Drop()
	m.Peer.Send(name, args...)
}

// Send sends the peer a message, which no edit changes. If name ends with a line feed, these
// bytes are sent.
func (p *Peer) Send(name string, args ...string) {
	if strings.HasSuffix(name, "\n") {
		p.SendRaw(name)
		return
	}
	s := p.server
	s.sending = true
	p.Conn.Send(s.row(name), s.encode(name, args).Args...)
	s.sending = false
}

// SendRaw sends the peer bytes.
func (p *Peer) SendRaw(text string) {
	s := p.server
	s.raw = []byte(text)
	p.Send(s.protocol.Raw[0], s.protocol.Raw[1:]...)
	s.raw = nil
}

// Give gives the machine a message as if the peer had sent it.
func (p *Peer) Give(name string, args ...string) {
	s := p.server
	f := s.write(name, args)
	s.pass(&Message{Server: s, Peer: p, Frame: f, Name: name, Args: args}, f)
}

// GiveSilently gives the machine a message as Give does, and drops what it sends.
func (p *Peer) GiveSilently(name string, args ...string) {
	p.server.silent = true
	p.Give(name, args...)
	p.server.silent = false
}

// Ask gives the machine a message as if the peer had sent it, and returns the reply, which
// is not sent. The peer must not be waiting for a reply. Raw is the text of the reply.
func (p *Peer) Ask(name string, args ...string) *Message {
	s := p.server
	before := s.asking
	q := &question{peer: p, request: s.write(name, args), reply: new(Message)}
	s.asking = q
	s.Machine.Handle(p.Conn, q.request)
	s.asking = before
	return q.reply
}

// question is a message that no peer has sent.
type question struct {
	peer    *Peer
	request *codec.Frame
	reply   *Message
}

// setRequest notes the message as the last that the peer sent.
func (p *Peer) setRequest(m *Message, f *codec.Frame) {
	if p.server.protocol.Paired {
		p.raw = slices.Clone(f.Raw)
	}
	p.Request = &Message{Server: p.server, Peer: p, Name: m.Name, Args: slices.Clone(m.Args)}
}

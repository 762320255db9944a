package inject

import (
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// Names of the events of a connection. An event is handled as a [Message] with this name.
const (
	Opened  = "(opened)"
	Illegal = "(illegal)" // the peer sent an illegal message; Err is the violation
	Ended   = "(ended)"   // the peer has closed its direction or the connection, whichever comes first
	// the peer has closed its direction; if an edit drops the event, the server keeps the connection
	HalfClosed = "(half-closed)"
	Closed     = "(closed)" // the connection is closed; if an edit drops the event, the machine is not informed
)

// Message is a message from a peer, a message to a peer, or an event of a connection.
type Message struct {
	*Server
	Peer  *Peer
	Job   *Job         // the job that the message is about, or nil if it is not known
	Frame *codec.Frame // nil for events; valid only while the message is handled
	Err   *codec.Error // the violation of an illegal message, otherwise nil
	// message type, or event; for messages from peers in a protocol with Read, the command
	Name string `expr:"name"`
	// values of the fields; for messages from peers in a protocol with Read, the arguments of the command
	Args []string `expr:"args"`

	// For messages to a peer only:
	Raw    []byte         // if not nil, these bytes are sent instead
	Delay  time.Duration  // the message is sent this much later
	Hangup bool           // the connection is closed after the message
	Copies int            // number of additional times that the message is sent
	Split  int            // if greater than 0, the message is written in pieces of this many bytes
	Pause  time.Duration  // the pause after each piece
	Also   *codec.Message // another message that is sent afterwards

	nameBefore string   // Name before edits
	argsBefore []string // Args before edits
	done       bool     // the message was passed to the machine or dropped
}

// message returns a message of a frame. Its name and arguments are empty if the bytes could not be decoded.
func (s *Server) message(p *Peer, f *codec.Frame) *Message {
	m := &Message{Server: s, Peer: p, Frame: f}
	// For an illegal message, the decoder may have set spans that exceed the bytes in f.Raw.
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

// original stores the name and arguments, so that changed can detect changes by edits.
func (m *Message) original() { m.nameBefore, m.argsBefore = m.Name, slices.Clone(m.Args) }

func (m *Message) changed() bool {
	return m.Name != m.nameBefore || !slices.Equal(m.Args, m.argsBefore)
}

// Arg returns argument i, which counts from 0, or "" if there is none. m may be nil.
func (m *Message) Arg(i int) string {
	if m == nil || i >= len(m.Args) {
		return ""
	}
	return m.Args[i]
}

// Text returns the bytes of the message. It must not be called for events.
func (m *Message) Text() string { return string(m.Frame.Raw) }

// Value returns the value of the first field with the name, or "". It must not be called for events.
func (m *Message) Value(field string) string {
	for i := range m.Frame.Spans {
		if m.Frame.Spans[i].Field.Name == field {
			return string(m.Frame.Value(i))
		}
	}
	return ""
}

// Become changes the message to another type and other arguments.
func (m *Message) Become(name string, args ...string) { m.Name, m.Args = name, args }

// Retype changes the type of the message. Fields that have the same name in both types keep their values.
func (m *Message) Retype(name string) {
	to := retyped(m.Frame, m.protocol.MustTypeNamed(name))
	if m.commands() || m.Name == Illegal {
		m.replace(to)
		return
	}
	m.Become(name)
	for _, a := range to.Args {
		m.Args = append(m.Args, string(a))
	}
}

// Drop prevents that the message is passed to the machine or sent to the peer.
func (m *Message) Drop() { m.done = true }

// Pass passes a message from a peer to the machine now. Messages that are neither passed nor dropped by edits are
// passed afterwards. It does nothing for an event.
func (m *Message) Pass() {
	if m.done || m.Frame == nil {
		return
	}
	m.done = true
	f := m.Frame
	if m.Err != nil {
		m.Peer.raw = slices.Clone(f.Raw)
		m.Machine.Reject(m.Peer.Conn, f, m.Err)
		return
	}
	if m.changed() {
		f = m.peerFrame(m.Name, m.Args)
		m.Peer.setRequest(m, f)
	}
	m.pass(m, f)
}

// again passes the message to the machine once more.
func (m *Message) again() {
	if m.Frame != nil && m.Err == nil {
		m.pass(m, m.Frame)
	}
}

// Answer drops the message and sends the peer a reply.
func (m *Message) Answer(name string, args ...string) {
	m.Drop()
	m.Peer.Send(name, args...)
}

// Send sends a message to the peer; edits do not change it. If name ends with a line feed, name itself is sent. It
// panics if the type is unknown.
func (p *Peer) Send(name string, args ...string) {
	if strings.HasSuffix(name, "\n") {
		p.SendRaw(name)
		return
	}
	s := p.server
	s.sending = true
	p.Conn.Send(s.protocol.MustTypeNamed(name), s.newMessage(name, args).Args...)
	s.sending = false
}

// SendRaw sends bytes to the peer.
func (p *Peer) SendRaw(text string) {
	s := p.server
	s.raw = []byte(text)
	p.Send(s.protocol.Raw[0], s.protocol.Raw[1:]...)
	s.raw = nil
}

// Inject passes a message to the machine as if the peer had sent it. It panics if the message cannot be encoded.
func (p *Peer) Inject(name string, args ...string) {
	s := p.server
	f := s.peerFrame(name, args)
	s.pass(&Message{Server: s, Peer: p, Frame: f, Name: name, Args: args}, f)
}

// InjectSilently is Give, except that nothing that the machine sends in the meantime is sent to any peer.
func (p *Peer) InjectSilently(name string, args ...string) {
	p.server.silent = true
	p.Inject(name, args...)
	p.server.silent = false
}

// Ask passes a message to the machine as if the peer had sent it, and returns the reply, which is not sent. The peer
// must not be waiting for a reply. Raw is the reply as bytes; if the machine sent several messages, Raw has all of them
// and the other fields are those of the last one.
func (p *Peer) Ask(name string, args ...string) *Message {
	s := p.server
	before := s.asking
	q := &question{peer: p, request: s.peerFrame(name, args), reply: new(Message)}
	s.asking = q
	s.Machine.Handle(p.Conn, q.request)
	s.asking = before
	return q.reply
}

// question is a message of [Peer.Ask] whose reply is being collected.
type question struct {
	peer    *Peer
	request *codec.Frame
	reply   *Message
}

// setRequest records the message as the last one of the peer.
func (p *Peer) setRequest(m *Message, f *codec.Frame) {
	if p.server.protocol.Paired {
		p.raw = slices.Clone(f.Raw)
	}
	p.Request = &Message{Server: p.server, Peer: p, Name: m.Name, Args: slices.Clone(m.Args)}
}

package inject

import (
	"net"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refserver"
)

// Values of [Server].Cause that are not message types.
const (
	Time  = "(time)" // the machine's timer has expired
	Leave = Closed   // a connection has been closed
)

// Server is a machine that applies edits to another machine. Its methods, except those of connections, are called under
// the lock of the reference server.
type Server struct {
	refserver.Machine
	timers
	Effect func() // in place of the effect of the action "crash"; may be nil

	Decode Decoder                 // decoder of messages from peers; nil: that of the protocol
	Wrap   func(net.Conn) net.Conn // replaces each connection; nil: no change

	Peers         []*Peer // connected peers, in the order in which they connected
	Opened        int     // number of connections, including closed ones
	Jobs          []*Job  // in the order of their submission
	ReceivedCount int     // number of messages from all peers, including illegal ones
	// type of the message that the server's state machine is handling, Time or Leave; "" if none
	Cause   string
	Noted   map[string]any // stored by faults
	Errors  func(error)    // called if a fault has an expression that cannot be evaluated; may be nil
	Request *Message       // the message that the server's state machine is handling, or nil

	protocol  *Protocol
	nonStrict codec.Session
	received  map[string][]func(*Message)
	sent      map[string][]func(*Message)
	rests     bool      // [Peer].Rest is recorded
	silent    bool      // messages from the machine are dropped
	sending   bool      // an edit is sending a message
	raw       []byte    // if not nil, these bytes are sent in place of that message
	asking    *question // the question whose reply is being collected, or nil
	crashed   bool

	variables map[string]any // variables and functions of expressions, without the values of a message
}

// server returns a server that passes all messages to the machine unchanged, until an edit adds functions to it.
func (p *Protocol) server(m refserver.Machine) *Server {
	return &Server{
		Machine:   m,
		protocol:  p,
		nonStrict: p.NewSession(codec.Options{WaiveAll: true}),
		received:  map[string][]func(*Message){},
		sent:      map[string][]func(*Message){},
		Noted:     map[string]any{},
	}
}

// On calls do for messages from peers, before the machine handles them, and for events. types are message types or
// events, separated by spaces; "*" means all message types. On panics if a type is unknown, unless the protocol has
// Write.
func (s *Server) On(types string, do func(*Message)) { s.add(s.received, types, do) }

// Out calls do for messages of these types before they are sent. It panics like On.
func (s *Server) Out(types string, do func(*Message)) { s.add(s.sent, types, do) }

func (s *Server) add(to map[string][]func(*Message), types string, do func(*Message)) {
	for name := range strings.FieldsSeq(types) {
		if s.protocol.PeerFrame == nil && name != "*" && name[0] != '(' {
			s.protocol.MustTypeNamed(name)
		}
		to[name] = append(to[name], do)
	}
}

// run calls the functions for a message, first those for its type, then those for "*", until one of them passes or
// drops the message.
func (s *Server) run(by map[string][]func(*Message), m *Message) {
	m.original()
	for _, name := range []string{m.nameBefore, "*"} {
		if name == "*" && strings.HasPrefix(m.nameBefore, "(") {
			return // "*" does not include events
		}
		for _, do := range by[name] {
			if m.done {
				return
			}
			do(m)
		}
	}
}

// event calls the functions for an event, and reports whether one of them dropped it.
func (s *Server) event(name string, p *Peer) (dropped bool) {
	m := &Message{Server: s, Peer: p, Job: p.Job, Name: name}
	s.run(s.received, m)
	return m.done
}

// decoder returns the decoder of messages from peers.
func (s *Server) decoder() Decoder {
	if s.Decode == nil {
		return decode
	}
	return s.Decode
}

func (s *Server) peer(c *refserver.Conn) *Peer {
	for _, p := range s.Peers {
		if p.Conn == c {
			return p
		}
	}
	return nil
}

// Open adds a peer for a new connection and calls the functions for the event Opened, after the machine has handled the
// connection.
func (s *Server) Open(c *refserver.Conn) {
	p := &Peer{Conn: c, server: s, Count: map[string]int{}, Request: &Message{}, Noted: map[string]any{}}
	s.Peers = append(s.Peers, p)
	s.Opened++
	if own, ok := c.Session().(*session); ok && s.rests {
		own.peer = p
	}
	s.Machine.Open(c)
	s.event(Opened, p)
}

// Handle records a message from a peer, calls the functions for its type if edits may change the message, and passes
// the message to the machine unless one of them dropped it.
func (s *Server) Handle(c *refserver.Conn, f *codec.Frame) {
	p := s.peer(c)
	if s.crashed || p.Ignored {
		return
	}
	m := s.message(p, f)
	editable := s.protocol.Read == nil || s.protocol.Read(m)
	if m.Name == "" { // not a message of the protocol
		s.Machine.Handle(c, f)
		return
	}
	s.record(m)
	s.Cause, s.Request = m.Name, m
	if editable && len(s.received[m.Name])+len(s.received["*"]) > 0 {
		s.run(s.received, m)
		m.Pass() // unless a function has passed or dropped it
	} else {
		s.pass(m, f)
	}
	s.Cause, s.Request = "", nil
	if m.nameBefore != s.protocol.Probe { // conform sends the probe itself, so it says nothing about the peer
		p.Past = append(p.Past[max(0, len(p.Past)+1-maxPast):], m.nameBefore)
	}
}

// record updates the counts and the state of the peer for a message from it, before edits.
func (s *Server) record(m *Message) {
	p := m.Peer
	s.ReceivedCount++
	p.ReceivedCount++
	p.Count[m.Name]++
	if p.First == "" {
		p.First = m.Name
	}
	p.setRequest(m, m.Frame)
	p.Waits = true
	m.original()
	update(s.protocol.Record.Received, m)
}

// pass passes a message to the machine and updates the record.
func (s *Server) pass(m *Message, f *codec.Frame) {
	if s.Cause == "" {
		s.Cause, s.Request = m.Name, m
		defer func() { s.Cause, s.Request = "", nil }()
	}
	update(s.protocol.Record.Passing, m)
	s.Machine.Handle(m.Peer.Conn, f)
	update(s.protocol.Record.Passed, m)
}

func update(do func(*Message), m *Message) {
	if do != nil {
		do(m)
	}
}

// Reject calls the functions for the event Illegal, with the violation e in the message, and then passes the illegal
// message to the machine unless one of them dropped it.
func (s *Server) Reject(c *refserver.Conn, f *codec.Frame, e *codec.Error) {
	p := s.peer(c)
	if s.crashed || p.Ignored {
		return
	}
	s.ReceivedCount++
	p.ReceivedCount++
	m := s.message(p, f)
	m.Name, m.Err = Illegal, e
	if p.First == "" && f.Type != nil {
		p.First = f.Type.Name
	}
	s.run(s.received, m)
	m.Pass()
}

// Feed processes text as a message from the peer, including edits. An incomplete message is ignored.
func (p *Peer) Feed(text string) {
	s, f := p.server, new(codec.Frame)
	_, err := s.protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(text), f)
	if e, ok := err.(*codec.Error); ok {
		s.Reject(p.Conn, f, e)
	} else if err == nil {
		s.Handle(p.Conn, f)
	}
}

// end records that the peer sends nothing more, at the first call for the peer.
func (s *Server) end(p *Peer) {
	if p.Ended {
		return
	}
	s.event(Ended, p)
	p.Ended = true
	if do := s.protocol.Record.Ended; do != nil {
		do(p)
	}
}

func (s *Server) HalfClosed(c *refserver.Conn) bool {
	p := s.peer(c)
	s.end(p)
	return s.event(HalfClosed, p) || s.Machine.HalfClosed(c)
}

// Close removes the peer of a connection that has ended and calls the functions for the event Closed. The machine is
// not informed if one of them dropped the event.
func (s *Server) Close(c *refserver.Conn) {
	p := s.peer(c)
	s.end(p)
	dropped := s.event(Closed, p)
	s.Cause, s.Request = Leave, &Message{Server: s, Peer: p, Job: p.Job, Name: Closed}
	if do := s.protocol.Record.Left; do != nil {
		do(p)
	}
	p.Left = true
	s.Peers = slices.DeleteFunc(s.Peers, func(o *Peer) bool { return o == p })
	if !dropped {
		s.Machine.Close(c)
	}
	s.Cause, s.Request = "", nil
}

func (s *Server) Next() time.Time { return s.next(s.Machine.Next()) }

func (s *Server) Tick(now time.Time) {
	s.Cause = Time
	s.timers.run(now)
	s.Machine.Tick(now)
	s.Cause = ""
}

// Crash stops the server at once and ignores all further messages.
func (s *Server) Crash(p *Peer) {
	s.crashed = true
	p.Shutdown(false)
}

// intercept calls the functions for a message to a peer. The verdict says what the reference server sends in place of
// the message, or that it sends nothing. intercept collects the reply to a request of an edit without sending it, and
// does not change a message that an edit sends.
func (s *Server) intercept(c *refserver.Conn, from codec.Side, f *codec.Frame) (v refserver.Verdict) {
	p := s.peer(c)
	switch {
	case from == codec.Peer || p == nil:
		return v
	case s.silent:
		return refserver.Verdict{Drop: true}
	case s.sending:
		p.Waits = false
		if s.raw != nil {
			v.Raw = &s.raw
		}
		return v
	}
	if q := s.asking; q != nil && q.peer == p {
		raw := append(q.reply.Raw, f.Raw...)
		if s.protocol.Read != nil {
			s.nonStrict.Decode(codec.Server, slices.Clone(f.Raw), f)
		}
		q.reply = s.reply(p, q.request.Raw, f)
		q.reply.Raw = raw
		return refserver.Verdict{Drop: true}
	}
	if f.Type == nil && s.protocol.Read != nil { // Peer.Ask has overwritten the frame of a reply in progress
		s.nonStrict.Decode(codec.Server, f.Raw, f)
	}
	m := s.reply(p, p.raw, f)
	if m.Frame.Type == nil && s.protocol.PeerFrame == nil {
		p.Waits = false
		return v
	}
	if s.protocol.Event == nil || !s.protocol.Event(f.Raw) {
		p.Waits = false
	}
	if s.Request != nil {
		m.Job = s.Request.Job
	}
	update(s.protocol.Record.Sent, m)
	p.Reply = m.Name
	s.run(s.sent, m)
	v.Drop, v.Delay, v.Close, v.Extra, v.Split, v.Pause, v.Also = m.done, m.Delay, m.Hangup, m.Copies, m.Split, m.Pause,
		m.Also
	if m.Raw != nil {
		v.Raw = &m.Raw
	} else if m.changed() {
		v.Replace = s.newMessage(m.Name, m.Args)
		v.Replace.CRLF = f.CRLF
	}
	return v
}

// reply decodes a message to a peer; request is the message that it may be a reply to.
func (s *Server) reply(p *Peer, request []byte, f *codec.Frame) *Message {
	if !s.protocol.Paired {
		return s.message(p, f)
	}
	paired := s.protocol.NewSession(codec.Options{WaiveAll: true})
	paired.Decode(codec.Peer, request, new(codec.Frame))
	reply := new(codec.Frame)
	paired.Decode(codec.Server, slices.Clone(f.Raw), reply)
	return s.message(p, reply)
}

// newMessage returns a message to or from a peer. It panics if the type is unknown.
func (s *Server) newMessage(name string, args []string) *codec.Message {
	m := &codec.Message{Type: s.protocol.MustTypeNamed(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// peerFrame returns the frame of a message that a peer could send, given its type and the text of its arguments, or its
// command and words in a protocol with Read. It panics if they are invalid, which is a mistake in an edit.
func (s *Server) peerFrame(name string, args []string) *codec.Frame {
	if s.protocol.PeerFrame != nil {
		return s.protocol.PeerFrame(name, args)
	}
	f := new(codec.Frame)
	raw, err := s.nonStrict.Append(nil, codec.Peer, s.newMessage(name, args))
	if err == nil { // decoding sets the fields that the machine reads
		_, err = s.nonStrict.Decode(codec.Peer, raw, f)
	}
	if err != nil {
		panic(err)
	}
	return f
}

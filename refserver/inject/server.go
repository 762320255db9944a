package inject

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refserver"
)

// Causes of what a machine does that are not messages.
const (
	Time  = "(time)" // its timer has expired
	Leave = Closed   // a connection is closed
)

// Server is the machine of a reference server with edits. The methods are called under the
// lock of the server, except those of connections.
type Server struct {
	refserver.Machine
	timers
	Context context.Context // of the server

	Decode Decoder                 // of what peers send; nil: no change
	Wrap   func(net.Conn) net.Conn // changes connections; nil: no change

	Peers   []*Peer         // that are connected, the first one first
	Opened  int             // connections, closed ones included
	Jobs    []*Job          // in the order of their submission
	Heard   int             // messages of all peers, illegal ones included
	Cause   string          // the type of the message that the machine handles, Time or Leave; "" if none
	Notes   map[string]bool // for edits
	Noted   map[string]any  // by faults
	Errors  func(error)     // called if a fault cannot be injected; may be nil
	Request *Message        // the message that the machine handles, or nil

	protocol *Protocol
	loose    codec.Session
	received map[string][]func(*Message)
	sent     map[string][]func(*Message)
	rewrite  bool      // every message that edits let pass is written anew
	silent   bool      // what the machine sends is dropped
	sending  bool      // an edit sends a message
	raw      []byte    // and if not nil, these bytes in its place
	asking   *question // an edit has asked the machine
	crashed  bool

	variables map[string]any // of expressions, without those of a message
}

func (p *Protocol) server(m refserver.Machine) *Server {
	return &Server{
		Machine:  m,
		Context:  context.Background(),
		protocol: p,
		loose:    p.NewSession(codec.Options{WaiveAll: true}),
		received: map[string][]func(*Message){},
		sent:     map[string][]func(*Message){},
		Notes:    map[string]bool{},
		Noted:    map[string]any{},
	}
}

// On calls do for messages of peers of these types, separated by spaces, before the machine
// handles them, and for events. "*" is every type.
func (s *Server) On(types string, do func(*Message)) { s.add(s.received, types, do) }

// Out calls do for messages of these types before they are sent.
func (s *Server) Out(types string, do func(*Message)) { s.add(s.sent, types, do) }

func (s *Server) add(to map[string][]func(*Message), types string, do func(*Message)) {
	for name := range strings.FieldsSeq(types) {
		if s.protocol.Write == nil && name != "*" && name[0] != '(' {
			s.row(name)
		}
		to[name] = append(to[name], do)
	}
}

func (s *Server) row(name string) *codec.Type {
	t := s.protocol.TypeNamed(name)
	if t == nil {
		panic("unknown message type " + name)
	}
	return t
}

// run calls the functions for a message, until one of them passes or drops it.
func (s *Server) run(by map[string][]func(*Message), m *Message) {
	m.original()
	for _, name := range []string{m.name, "*"} {
		if name == "*" && strings.HasPrefix(m.name, "(") {
			return // an event
		}
		for _, do := range by[name] {
			if m.done {
				return
			}
			do(m)
		}
	}
}

// event calls the functions for an event, and reports whether one of them drops it.
func (s *Server) event(name string, p *Peer) (dropped bool) {
	m := &Message{Server: s, Peer: p, Job: p.Job, Name: name}
	s.run(s.received, m)
	return m.done
}

func (s *Server) peer(c *refserver.Conn) *Peer {
	for _, p := range s.Peers {
		if p.Conn == c {
			return p
		}
	}
	return nil
}

func (s *Server) Open(c *refserver.Conn) {
	p := &Peer{Conn: c, server: s, Count: map[string]int{}, Request: &Message{}, Noted: map[string]any{}, Notes: map[string]string{}}
	s.Peers = append(s.Peers, p)
	s.Opened++
	s.Machine.Open(c)
	s.event(Opened, p)
}

func (s *Server) Handle(c *refserver.Conn, f *codec.Frame) {
	p := s.peer(c)
	if s.crashed || p.Ignored {
		return
	}
	m := s.message(p, f)
	edit := s.protocol.Read == nil || s.protocol.Read(m)
	if m.Name == "" {
		s.Machine.Handle(c, f)
		return
	}
	s.Heard++
	p.Heard++
	p.Count[m.Name]++
	if p.First == "" {
		p.First = m.Name
	}
	p.setRequest(m, f)
	p.Waits = true
	m.original()
	update(s.protocol.Record.Received, m)
	s.Cause, s.Request = m.Name, m
	if edit && len(s.received[m.Name])+len(s.received["*"]) > 0 {
		s.run(s.received, m)
		m.Pass()
	} else {
		s.pass(m, f)
	}
	s.Cause, s.Request = "", nil
	if m.name == s.protocol.Probe {
		return
	}
	p.Past = append(p.Past[max(0, len(p.Past)+1-maxPast):], m.name)
}

// pass gives the machine a message.
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

func (s *Server) Reject(c *refserver.Conn, f *codec.Frame, e *codec.Error) {
	p := s.peer(c)
	if s.crashed || p.Ignored {
		return
	}
	s.Heard++
	p.Heard++
	m := s.message(p, f)
	m.Name, m.Err = Illegal, e
	if p.First == "" && f.Type != nil {
		p.First = f.Type.Name
	}
	s.run(s.received, m)
	m.Pass()
}

// Feed treats text as a message that the peer has sent.
func (p *Peer) Feed(text string) {
	s, f := p.server, new(codec.Frame)
	_, err := s.protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(text), f)
	if e, ok := err.(*codec.Error); ok {
		s.Reject(p.Conn, f, e)
	} else if err == nil {
		s.Handle(p.Conn, f)
	}
}

// end notes that nothing more comes from the peer.
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

// Crash ends the server at once.
func (s *Server) Crash(p *Peer) {
	s.crashed = true
	p.Shutdown(false)
}

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
			s.loose.Decode(codec.Server, slices.Clone(f.Raw), f)
		}
		q.reply = s.reply(p, q.request.Raw, f)
		q.reply.Raw = raw
		return refserver.Verdict{Drop: true}
	}
	if f.Type == nil && s.protocol.Read != nil { // the reply to a question has taken its place
		s.loose.Decode(codec.Server, f.Raw, f)
	}
	m := s.reply(p, p.raw, f)
	if m.Frame.Type == nil && s.protocol.Write == nil {
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
	v.Drop, v.Delay, v.Close, v.Extra, v.Split, v.Pause, v.Also = m.done, m.Delay, m.Hangup, m.Copies, m.Split, m.Pause, m.Also
	if m.Raw != nil {
		v.Raw = &m.Raw
	} else if m.changed() {
		v.Replace = s.encode(m.Name, m.Args)
		v.Replace.CRLF = f.CRLF
	}
	return v
}

// reply reads a message to a peer, as a reply to request if that matters.
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

// encode returns a message of a type.
func (s *Server) encode(name string, args []string) *codec.Message {
	m := &codec.Message{Type: s.row(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// write returns a message of a peer.
func (s *Server) write(name string, args []string) *codec.Frame {
	if s.protocol.Write != nil {
		return s.protocol.Write(name, args)
	}
	f := new(codec.Frame)
	raw, err := s.loose.Append(nil, codec.Peer, s.encode(name, args))
	if err == nil {
		_, err = s.loose.Decode(codec.Peer, raw, f)
	}
	if err != nil {
		panic(err) // the edit's error, not the peer's
	}
	return f
}

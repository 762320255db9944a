package vectors

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// maxVector is the maximum length of a message that becomes a vector, in bytes.
const maxVector = 4 << 10

// vectorSet has the shapes of the messages in a corpus, and the names of its vectors.
type vectorSet struct {
	protocol *codec.Protocol
	shapes   map[string]bool // shapes of the messages, see readMessage.shape
	names    map[string]bool // kinds and names of the vectors, separated by a space
}

// newVector is a vector to add to the corpus.
type newVector struct {
	kind, name, what string
	text             []byte
}

// know adds an existing vector of the corpus to the set.
func (vs *vectorSet) know(kind string, s *transcript.Script) {
	vs.names[kind+" "+s.Value("case")] = true
	r := newReader(vs.protocol)
	for i := range s.Steps {
		st := &s.Steps[i]
		r.read(Sent{"", st.From, st.Choices[0].Bytes}, func(m *readMessage) { vs.shapes[m.shape()] = true })
	}
}

// vectors returns a new vector for each message whose shape is not in the set, and adds the shape. It skips messages
// that are longer than maxVector or that a new session does not decode in the same way.
func (vs *vectorSet) vectors(all []Sent) []newVector {
	var fresh []newVector
	readers := map[string]*reader{}
	for _, s := range all {
		r := readers[s.Conn]
		if r == nil {
			r = newReader(vs.protocol)
			readers[s.Conn] = r
		}
		r.read(s, func(m *readMessage) {
			shape := m.shape()
			if vs.shapes[shape] || len(m.raw) > maxVector || !m.stands(vs.protocol) {
				return
			}
			vs.shapes[shape] = true
			fresh = append(fresh, vs.vector(m))
		})
	}
	return fresh
}

// reader decodes the messages of one connection, with all rules enforced.
type reader struct {
	protocol *codec.Protocol
	streams  [2]codec.Stream
	asked    []*readMessage // requests without a reply so far
	lost     bool           // the start of the next message is unknown
}

// readMessage is a message and, if it is a reply, its request.
type readMessage struct {
	from   codec.Side
	raw    []byte
	frame  codec.Frame
	err    *codec.Error // why the message is invalid, or nil
	before *readMessage // the request of a reply, or nil
}

func newReader(p *codec.Protocol) *reader {
	return &reader{protocol: p, streams: codec.Streams(p.NewSession(codec.Options{}))}
}

// read decodes the next bytes of the connection, and calls found for each message.
func (r *reader) read(s Sent, found func(*readMessage)) {
	stream := &r.streams[s.From]
	var f codec.Frame
	for p := range stream.Feed(s.Raw, &f) {
		if r.lost {
			return
		}
		m := &readMessage{from: s.From, err: p.Err}
		if r.lost = p.Err != nil && (p.Err.Fatal || stream.Skip() > 0); r.lost {
			p.Raw = p.Raw[:min(len(p.Raw), p.Err.Offset+1)]
		}
		f.Raw = p.Raw
		if p.Err == nil {
			m.frame = f.Clone()
		} else {
			m.frame.Type = f.Type
		}
		m.raw = bytes.Clone(p.Raw)
		r.pair(m)
		found(m)
	}
}

// pair sets the request of a reply. A server replies in the order of the requests.
func (r *reader) pair(m *readMessage) {
	t := m.frame.Type
	switch {
	case m.from == codec.Peer && t != nil && t.Ordered:
		r.asked = append(r.asked, m)
	case m.from == codec.Server && len(r.asked) > 0 &&
		(m.err != nil || t != nil && slices.Contains(r.asked[0].frame.Type.Replies, t.Name)):
		m.before, r.asked = r.asked[0], r.asked[1:]
	}
}

// shape describes a message. The corpus needs only one vector for all messages with the same shape.
func (m *readMessage) shape() string {
	if m.err != nil {
		return fmt.Sprintf("%s %s %v", m.err.Rule, m.err.Field, m.from)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v %v", m.frame.Type.Name, m.from, m.frame.CRLF)
	repeats := 0
	for i := range m.frame.Spans {
		fd := m.frame.Spans[i].Field
		if fd.Derived() {
			continue
		}
		if slices.ContainsFunc(m.frame.Type.Repeat, func(r codec.Field) bool { return r.Name == fd.Name }) {
			repeats++
			continue
		}
		fmt.Fprintf(&b, " %s:%s", fd.Name, shapeOf(fd, m.frame.Value(i)))
	}
	fmt.Fprintf(&b, " %d", min(repeats, 3))
	return b.String()
}

// shapeOf classifies the value of a field.
func shapeOf(fd *codec.Field, v []byte) string {
	binary := bytes.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' })
	switch {
	case len(v) == 0:
		return "empty"
	case fd.Kind == codec.Number || fd.Kind == codec.Signed || fd.Kind == codec.Uint:
		return "number"
	case binary && len(v) > 256:
		return "long binary"
	case binary:
		return "binary"
	case len(v) > 256:
		return "long"
	}
	return "text"
}

// stands reports whether a message can become a vector: a new session that has decoded only its request must decode it,
// from prefixes that grow by one byte, with the same result as on its connection, and encode a valid message to the
// same bytes.
func (m *readMessage) stands(p *codec.Protocol) bool {
	open := func() codec.Session {
		s := p.NewSession(codec.Options{})
		if m.before != nil {
			var f codec.Frame
			s.Decode(m.before.from, m.before.raw, &f)
		}
		return s
	}
	if m.before != nil && m.before.err != nil {
		return false
	}
	for k := 1; k <= len(m.raw); k++ {
		var f codec.Frame
		stream := codec.Stream{Session: open(), From: m.from}
		n, found, err := stream.Read(m.raw[:k], &f)
		switch {
		case found == codec.Nothing:
			continue
		case m.err == nil:
			return err == nil && n == len(m.raw) && m.rewritten(open(), &f)
		}
		return err != nil && *err == *m.err && (err.Fatal || n+stream.Skip() == len(m.raw))
	}
	return false
}

// rewritten reports whether the session encodes the frame to the original bytes of the message.
func (m *readMessage) rewritten(s codec.Session, f *codec.Frame) bool {
	var msg codec.Message
	f.Message(&msg)
	out, err := s.Append(nil, m.from, &msg)
	return err == nil && bytes.Equal(out, m.raw)
}

// vector returns the vector of a message, with a name that is not in use.
func (vs *vectorSet) vector(m *readMessage) newVector {
	v := newVector{kind: Accepted, what: "accepted; other fields than in all vectors"}
	base := ""
	if m.err != nil {
		v.kind = Rejected
		_, base, _ = strings.Cut(string(m.err.Rule), ".")
		base = strings.ReplaceAll(base, ".", "-")
		v.what = fmt.Sprintf("rejected: %s at byte %d, %s", m.err.Rule, m.err.Offset, m.err.Field)
	} else {
		base = m.frame.Type.Name
	}
	v.name = base
	for n := 2; vs.names[v.kind+" "+v.name]; n++ {
		v.name = fmt.Sprintf("%s-%d", base, n)
	}
	vs.names[v.kind+" "+v.name] = true
	actor := vs.actor(m)
	if m.before != nil {
		actor = vs.actor(m.before)
	}
	out := fmt.Appendf(nil, "@case %s\n", v.name)
	if m.err == nil {
		pr := transcript.Printer{Protocol: vs.protocol}
		for _, one := range []*readMessage{m.before, m} {
			if one != nil {
				out = append(out, '\n')
				out = pr.AppendFrame(out, actor, &one.frame)
			}
		}
		v.text = out
		return v
	}
	out = fmt.Appendf(out, "@rule %s\n@offset %d\n@field %s\n", m.err.Rule, m.err.Offset, m.err.Field)
	if m.err.Fatal {
		out = append(out, "@fatal\n"...)
	}
	for _, one := range []*readMessage{m.before, m} {
		if one == nil {
			continue
		}
		st := transcript.Step{Peer: transcript.Actor{Name: actor}, From: one.from,
			Choices: []transcript.Choice{{Verb: transcript.Raw, Bytes: one.raw}}}
		out, _ = transcript.AppendStep(out, vs.protocol, &st) // cannot fail: the step is not empty
	}
	v.text = out
	return v
}

// actor returns the first role that may send the message, or receive it if the server sent it.
func (vs *vectorSet) actor(m *readMessage) string {
	roles := vs.protocol.Roles
	if t := m.frame.Type; t != nil {
		set := t.Req
		if m.from == codec.Server {
			set = t.Res
		}
		for i, name := range roles {
			if set&(1<<i) != 0 {
				return name
			}
		}
	}
	return roles[0]
}

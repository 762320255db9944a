// Package replay writes the connections of a capture as transcripts that "jobwire play" can send to any server. Pass
// the items of a [jobwire/pcap.Decoder] to [Collector.Add], and then call [Collector.Write].
package replay

import (
	"fmt"
	"net/netip"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/pcap"
)

// Limits of the data that is kept for transcripts.
const (
	maxSteps       = 50_000   // in all
	maxStepBytes   = 32 << 20 // total bytes of the messages that are kept
	maxScripts     = 1000     // transcripts, one for each set of connections
	maxJoins       = 1 << 17
	maxUnsupported = 1 << 16 // connections that are counted although they cannot be replayed
	maxUnplayable  = 1000    // maximum number of bytes of a step that cannot be replayed, in a comment
)

// Collector collects conversations and writes them as transcripts that can be replayed. Connections to one
// server are in the same transcript if they mention the same job, queue or unique ID. Connections that mention
// none of these share one transcript, and so do all connections of a protocol whose jobs belong to no
// connection.
type Collector struct {
	conns map[int]*session
	steps []step
	joins map[joinKey]*session
	bytes int

	unsupported map[int]bool // connections that cannot be replayed because of their protocol
	left        int          // number of messages that are not kept
}

// session is a connection of a transcript.
type session struct {
	id         int
	proto      *codec.Protocol
	server     netip.AddrPort
	set        *session // another connection of the same transcript, or this one if it represents the transcript
	midway     bool     // the connection began before the capture
	incomplete bool     // bytes are missing
	cutOff     bool     // some messages are not kept
	last       int      // index plus one of the last step
	raw        [2]int   // x

	roles [8]int // number of messages that fit each role
	peer  transcript.Actor
}

// joinKey is a property that connections of the same transcript have in common.
type joinKey struct {
	server netip.AddrPort
	proto  *codec.Protocol
	kind   codec.Meaning // Uninterpreted for connections that mention none
	value  string
}

// step is an event on a connection.
type step struct {
	session *session
	from    codec.Side
	verb    transcript.Verb
	typ     *codec.Type // of a message
	does    *codec.Type // see codec.Protocol.Behavior
	args    [][]byte
	raw     []byte // of a Raw step
	size    int    // of a message, in bytes
	at      int64
	crlf    bool
	cut     bool   // the rest of the message is missing, or was not sent
	problem string // the reason why it cannot be replayed, or ""
	note    string // text of a comment, or ""

	reply     int    // index of its reply, or 0
	request   int    // index plus one of the request that it answers
	late      int    // index of the step before which the server has received it, if it has no reply
	scope     []byte // first argument, or that of the request
	blocks    bool   // the reply may depend on the actions of other peers
	contested bool   // other connections had pending requests at the same time
	varies    bool   // the content of the reply may differ on another server or at another time
}

const partMessage = "an incomplete message"

// New returns an empty Collector.
func New() *Collector {
	return &Collector{conns: map[int]*session{}, joins: map[joinKey]*session{}, unsupported: map[int]bool{}}
}

// Add adds an item.
func (t *Collector) Add(it *pcap.Item) {
	c := it.Conn
	if c.Protocol == nil || c.Protocol.NewSession == nil {
		if (it.Kind <= pcap.Unread || it.Kind == pcap.Skipped) && len(t.unsupported) < maxUnsupported {
			t.unsupported[c.ID] = true
		}
		return
	}
	s := t.conns[c.ID]
	if it.Kind == pcap.Skipped || it.Kind == pcap.Conflicts { // the comments of the transcript already state that the connection began before the capture
		return
	}
	if s == nil {
		if it.Kind > pcap.Gap {
			return // the connection has no messages
		}
		if len(t.steps) >= maxSteps {
			t.left++
			return
		}
		s = &session{id: c.ID, proto: c.Protocol, server: c.Server, midway: c.Midway()}
		s.set = s
		t.conns[c.ID] = s
	}
	if c.Uncertain && !s.incomplete && it.Kind != pcap.Gap {
		t.desync(s, it)
	}
	st := step{session: s, from: it.From, at: it.At}
	switch it.Kind {
	case pcap.Message:
		if it.Omitted > 0 {
			s.incomplete = true
			st.verb, st.problem = transcript.Raw, fmt.Sprintf("%s of %d bytes: jobwire keeps only the beginning", it.Frame.Type.Name, it.Size())
			break
		}
		if it.Frame.Type == nil {
			st.verb, st.raw, st.problem = transcript.Raw, it.Raw, "this response answers no request in the capture"
			break
		}
		t.message(&st, it.Frame)
	case pcap.Violates:
		st.verb, st.raw, st.note = transcript.Raw, it.Raw, "This message breaks rule "+string(it.Err.Rule)+"."
	case pcap.Unread:
		st.verb, st.raw, st.cut = transcript.Raw, it.Raw, it.Cut
	case pcap.Gap:
		s.incomplete = true
		st.verb, st.problem = transcript.Raw, fmt.Sprintf("gap: %d bytes are missing in the capture", it.Missing)
	case pcap.Ends:
		st.verb = transcript.HalfCloses
	case pcap.Breaks:
		st.verb = transcript.Resets
	}
	t.add(st)
}

// desync records that a message of a connection was larger than the decoder keeps, or that only one direction
// was captured.
func (t *Collector) desync(s *session, it *pcap.Item) {
	s.incomplete = true
	if last := s.last - 1; last >= 0 && t.steps[last].cut {
		t.steps[last].problem = partMessage
		return
	}
	t.add(step{session: s, from: it.From, at: it.At, verb: transcript.Raw,
		problem: "from this line on, responses cannot be matched to requests"})
}

// add appends a step to those of the capture, or counts it if there are too many. Raw bytes that directly follow raw
// bytes of the same sender are added to that step.
func (t *Collector) add(st step) {
	if len(t.steps) >= maxSteps || t.bytes+len(st.raw) > maxStepBytes {
		t.left++
		st.session.cutOff = true
		return
	}
	t.bytes += len(st.raw)
	s := st.session
	if k := s.raw[st.from] - 1; k >= 0 && st.verb == transcript.Raw && st.problem == "" && t.steps[k].problem == "" { // the bytes were sent together with the previous ones
		t.steps[k].raw, t.steps[k].cut = append(t.steps[k].raw, st.raw...), st.cut
		return
	}
	st.raw = slices.Clone(st.raw)
	t.steps = append(t.steps, st)
	s.last = len(t.steps)
	switch {
	case st.verb == transcript.Send:
		s.raw = [2]int{}
	case st.verb == transcript.Raw:
		s.raw[st.from] = s.last
	}
}

// message records the content of a message, and joins its connection with others that mention the same job,
// queue or unique ID.
func (t *Collector) message(st *step, f *codec.Frame) {
	p := st.session.proto
	st.typ, st.does, st.crlf, st.size = f.Type, p.Behavior(f), f.CRLF, len(f.Raw)
	st.blocks = f.Type.Blocks != codec.Attached && f.Blocks() || st.does.Blocks == codec.Always
	raw := slices.Clone(f.Raw)
	if t.bytes += len(raw); t.bytes > maxStepBytes {
		return
	}
	s := st.session
	for i := range p.Roles {
		if f.Type.Roles(st.from)&(1<<i) != 0 {
			s.roles[i]++
		}
	}
	for i := range f.Spans {
		sp := &f.Spans[i]
		if sp.Field.Derived() {
			continue
		}
		v := raw[sp.Off:sp.End]
		st.args = append(st.args, v)
		if m := sp.Field.Means; (m == codec.Queue || m == codec.JobID || m == codec.UniqueID) && len(v) > 0 &&
			!f.Type.Varies && !p.Unowned {
			t.join(s, m, string(v))
		}
	}
}

// join puts the connections that mention the same value into one transcript.
func (t *Collector) join(s *session, kind codec.Meaning, value string) {
	k := joinKey{s.server, s.proto, kind, value}
	other := t.joins[k]
	if other == nil {
		if len(t.joins) < maxJoins {
			t.joins[k] = s
		}
		return
	}
	if a, b := s.root(), other.root(); a.id < b.id {
		b.set = a
	} else {
		a.set = b
	}
}

// root returns the connection that represents the transcript of the connection.
func (s *session) root() *session {
	for s.set != s {
		s.set = s.set.set
		s = s.set
	}
	return s
}

// sets returns the steps of each transcript, in the order of their first connections.
func (t *Collector) sets() [][]step {
	joined := map[*session]bool{}
	for _, s := range t.joins {
		joined[s.root()] = true
	}
	for i := range t.steps {
		if s := t.steps[i].session; !joined[s.root()] {
			t.join(s, codec.Uninterpreted, "")
		}
	}
	index := map[*session]int{}
	var sets [][]step
	for _, st := range t.steps {
		root := st.session.root()
		n, ok := index[root]
		if !ok {
			if len(sets) == maxScripts {
				t.left++
				continue
			}
			n = len(sets)
			index[root], sets = n, append(sets, nil)
		}
		sets[n] = append(sets[n], st)
	}
	return sets
}

// sessionsOf returns the connections of a transcript, in the order of their first steps.
func sessionsOf(steps []step) (all []*session) {
	met := map[*session]bool{}
	for i := range steps {
		if s := steps[i].session; !met[s] {
			met[s] = true
			all = append(all, s)
		}
	}
	return all
}

// assignRoles names the connections of a transcript by the role of most of their messages.
func assignRoles(sessions []*session) {
	var counts [][]int
	for _, s := range sessions {
		counts = append(counts, s.roles[:len(s.proto.Roles)])
	}
	for i, a := range transcript.Actors(sessions[0].proto, counts) {
		sessions[i].peer = a
	}
}

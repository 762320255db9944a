package pcap

import (
	"fmt"
	"net/netip"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Bounds of what is remembered for transcripts.
const (
	maxSteps      = 50_000   // in all
	maxStepBytes  = 32 << 20 // of messages, in all
	maxScripts    = 1000     // one for each set of connections
	maxTies       = 1 << 17
	maxUnplayable = 1000 // bytes of what is only told in a comment
)

// Transcripts collects conversations, to be written as transcripts that can be
// performed. Connections to one server that mention a job, a function or a tube in
// common belong to one transcript, and those that mention none do together; so do all
// connections to a Redis.
type Transcripts struct {
	conns map[int]*talk
	talks []*talk
	steps []step
	ties  map[tie]*talk
	bytes int

	foreign map[int]bool // connections in no protocol that can be performed
	left    int          // messages that were too many
}

// talk is a connection of a transcript.
type talk struct {
	id     int
	proto  *codec.Protocol
	server netip.AddrPort
	set    *talk  // another of the same set; itself if there is none
	mid    bool   // it began before the capture
	shaky  bool   // bytes are missing
	goesOn bool   // it said more than is kept
	last   int    // index, plus one, of the last step
	raw    [2]int // the same of bytes by either side that no message has followed

	roles [8]int // how many messages fit each role
	peer  transcript.Actor
}

// tie is what connections have in common.
type tie struct {
	server netip.AddrPort
	proto  *codec.Protocol
	kind   string // of what they mention; "" of connections that mention nothing
	value  string
}

// step is what happens on a connection, kept small.
type step struct {
	talk *talk
	from codec.Side
	verb transcript.Verb
	typ  *codec.Type // of a message
	args [][]byte
	raw  []byte // of a Raw, or of what cannot be performed
	size int    // of a message, in bytes
	at   int64
	crlf bool
	cut  bool   // the rest of the message is missing, or was never sent
	odd  string // why it cannot be performed; "" if it can
	note string // what is to be said of it

	reply     int    // index of the step that answers it; 0 if there is none
	request   int    // index, plus one, of the step that it answers
	late      int    // index of the step before which it is heard at the latest, if it has no such answer
	scope     []byte // first argument, or that of the request
	blocks    bool   // the answer may wait for what others do
	contested bool   // others were asking at the same time
	theirs    bool   // of an answer: another server, or another time, may say something else
}

const oddPart = "a part of a message, of which the rest is missing"

// NewTranscripts returns one that has seen nothing yet.
func NewTranscripts() *Transcripts {
	return &Transcripts{conns: map[int]*talk{}, ties: map[tie]*talk{}, foreign: map[int]bool{}}
}

// Add takes an item.
func (t *Transcripts) Add(it *Item) {
	c := it.Conn
	notes := playRows[c.Protocol]
	if notes == nil {
		if it.Kind <= Unread && len(t.foreign) < maxConns {
			t.foreign[c.ID] = true
		}
		return
	}
	tk := t.conns[c.ID]
	if tk == nil {
		if it.Kind > Gap {
			return // it said nothing
		}
		if len(t.steps) >= maxSteps {
			t.left++
			return
		}
		tk = &talk{id: c.ID, proto: c.Protocol, server: c.Server}
		tk.mid = c.server == unknown || !c.half[1-c.server].syn
		tk.set = tk
		t.conns[c.ID], t.talks = tk, append(t.talks, tk)
	}
	if c.Uncertain && !tk.shaky && it.Kind != Gap {
		t.doubt(tk, it)
	}
	st := step{talk: tk, from: it.From, at: it.At}
	switch it.Kind {
	case Message:
		if it.Frame.Type == nil {
			st.verb, st.raw, st.odd = transcript.Raw, it.Raw, "no request was captured that this could answer"
			break
		}
		t.message(&st, it.Frame, notes)
	case Violates:
		st.verb, st.raw, st.note = transcript.Raw, it.Raw, "It breaks "+string(it.Err.Rule)+"."
	case Unread:
		st.verb, st.raw, st.cut = transcript.Raw, it.Raw, it.Cut
	case Gap:
		tk.shaky = true
		st.verb, st.odd = transcript.Raw, fmt.Sprintf("%d bytes are missing here", it.Missing)
	case Ends:
		st.verb = transcript.HalfCloses
	case Breaks:
		st.verb = transcript.Resets
	}
	t.add(st)
}

// doubt notes that a message of a connection was more than the decoder remembers, or that
// only one direction was captured.
func (t *Transcripts) doubt(tk *talk, it *Item) {
	tk.shaky = true
	if last := tk.last - 1; last >= 0 && t.steps[last].cut {
		t.steps[last].odd = oddPart
		return
	}
	t.add(step{talk: tk, from: it.From, at: it.At, verb: transcript.Raw, odd: "which requests the server answers from here on cannot be told"})
}

func (t *Transcripts) add(st step) {
	if len(t.steps) >= maxSteps || t.bytes+len(st.raw) > maxStepBytes {
		t.left++
		st.talk.goesOn = true
		return
	}
	t.bytes += len(st.raw)
	tk := st.talk
	if k := tk.raw[st.from] - 1; k >= 0 && st.verb == transcript.Raw && st.odd == "" && t.steps[k].odd == "" { // it was said in one go
		t.steps[k].raw, t.steps[k].cut = append(t.steps[k].raw, st.raw...), st.cut
		return
	}
	st.raw = slices.Clone(st.raw)
	t.steps = append(t.steps, st)
	tk.last = len(t.steps)
	switch {
	case st.verb == transcript.Send:
		tk.raw = [2]int{}
	case st.verb == transcript.Raw:
		tk.raw[st.from] = tk.last
	}
}

// message notes what a message says, and to whom its connection is tied by it.
func (t *Transcripts) message(st *step, f *codec.Frame, notes *playNotes) {
	st.typ, st.crlf, st.size = f.Type, f.CRLF, len(f.Raw)
	raw := slices.Clone(f.Raw)
	if t.bytes += len(raw); t.bytes > maxStepBytes {
		return
	}
	tk := st.talk
	role := f.Type.Req
	if st.from == codec.Server {
		role = f.Type.Res
	}
	for i := range tk.proto.Roles {
		if role&(1<<i) != 0 {
			tk.roles[i]++
		}
	}
	for i := range f.Spans {
		s := &f.Spans[i]
		if s.Field.Derived() {
			continue
		}
		st.args = append(st.args, raw[s.Off:s.End])
		if kind := notes.ties[s.Field.Name]; kind != "" && s.End > s.Off && !notes.isTheirs(f.Type, nil) {
			t.tie(tk, kind, string(raw[s.Off:s.End]))
		}
	}
}

// tie joins the sets of connections that mention the same.
func (t *Transcripts) tie(tk *talk, kind, value string) {
	k := tie{tk.server, tk.proto, kind, value}
	other := t.ties[k]
	if other == nil {
		if len(t.ties) < maxTies {
			t.ties[k] = tk
		}
		return
	}
	if a, b := tk.root(), other.root(); a.id < b.id {
		b.set = a
	} else {
		a.set = b
	}
}

// root returns the connection that stands for the set.
func (tk *talk) root() *talk {
	for tk.set != tk {
		tk.set = tk.set.set
		tk = tk.set
	}
	return tk
}

// sets sorts the steps by transcript, in the order of their first connections.
func (t *Transcripts) sets() [][]step {
	tied := map[*talk]bool{}
	for _, tk := range t.ties {
		tied[tk.root()] = true
	}
	index := map[*talk]int{}
	var sets [][]step
	for i := range t.steps {
		tk := t.steps[i].talk
		if !tied[tk.root()] {
			t.tie(tk, "", "")
		}
	}
	for _, st := range t.steps {
		root := st.talk.root()
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

// cast gives the connections of a set their names, by what they do most.
func cast(steps []step) {
	count := map[int]int{}
	done := map[*talk]bool{}
	for i := range steps {
		tk := steps[i].talk
		if done[tk] {
			continue
		}
		done[tk] = true
		best := 0
		for r := range tk.proto.Roles {
			if tk.roles[r] > tk.roles[best] {
				best = r
			}
		}
		name := tk.proto.Roles[best]
		if count[best]++; count[best] > 1 {
			name = transcriptName(name, count[best])
		}
		tk.peer = transcript.Actor{Name: name, Role: 1 << best}
	}
}

package jobs

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/pcap"
)

// Timeline is the list of events of one job.
type Timeline struct {
	Handle   string
	Function string
	Server   netip.AddrPort
	Stages   []Stage

	Uncertain bool // see Anomaly
	More      int  // stages that are not in the list
	dropped   bool
}

// Stage is one event of a job.
type Stage struct {
	At int64 // time, as in Packet.At
	// submitted, created, assigned, assigned again: why, released, buried, kicked, completed, failed, deleted, result
	// delivered, ...
	What string
	Conn int // ID of the connection
}

const maxStages = 64 // of a timeline

// timelines are the timelines of the first jobs.
type timelines struct {
	all  []*Timeline
	max  int
	left int // number of jobs without a timeline
}

// KeepTimelines keeps the timelines of the first n jobs. Call it before the first Add.
func (t *Tracker) KeepTimelines(n int) { t.timelines.max = n }

// Timelines returns the timelines that were kept, in the order in which the jobs were first seen, and the
// number of jobs without a timeline.
func (t *Tracker) Timelines() (all []*Timeline, more int) {
	return slices.DeleteFunc(slices.Clone(t.timelines.all), func(l *Timeline) bool { return l.dropped }), t.timelines.left
}

// begin returns an empty timeline for a new job, or nil if enough timelines are kept. It counts the jobs without a
// timeline if timelines are wanted at all.
func (l *timelines) begin(j *job) *Timeline {
	if len(l.all) >= l.max {
		if l.left++; l.max == 0 {
			l.left = 0
		}
		return nil
	}
	t := &Timeline{Handle: j.key.id, Function: j.queue, Server: j.key.server.AddrPort}
	l.all = append(l.all, t)
	return t
}

// name sets the ID of the job.
func (l *Timeline) name(j *job) {
	if l != nil {
		l.Handle, l.Function = j.key.id, j.queue
	}
}

// drop removes a timeline, because its job turned out to be another known job.
func (l *Timeline) drop() {
	if l != nil {
		l.dropped = true
	}
}

// note adds a stage to the job's timeline.
func (j *job) note(e *event, what string) {
	switch l := j.timeline; {
	case l == nil:
	case len(l.Stages) >= maxStages:
		l.More++
	default:
		l.Stages = append(l.Stages, Stage{e.it.At, what, e.conn.id})
		l.Uncertain = j.uncertain
	}
}

// trace selects the messages of one job and passes them on.
type trace struct {
	handle  string
	show    func(*pcap.Item)
	pending int // number of messages that wait until their job's handle is known
}

const maxPendingItems = 1 << 12

// Trace passes all messages of one job to show, in order. Once the handle of the job is known, this includes
// the messages before that. If handles are unique only within a function, handle may be FUNCTION:ID or only the
// ID. Call Trace before the first Add.
func (t *Tracker) Trace(handle string, show func(*pcap.Item)) {
	t.trace = &trace{handle: handle, show: show}
}

func (t *trace) wants(handle string, scoped bool) bool {
	return handle == t.handle || scoped && strings.HasSuffix(handle, ":"+t.handle)
}

// show passes on the messages of the traced job, and keeps messages that may belong to it.
func (t *Tracker) show(e *event, j *job) {
	tr := t.trace
	if tr == nil {
		return
	}
	handle := e.id
	if j != nil && j.key.id != "" {
		handle = j.key.id
	}
	switch {
	case handle == "" && j != nil && e.Does.Does == codec.Refuse:
	case handle == "" && j != nil:
		if tr.pending < maxPendingItems {
			tr.pending++
			j.pending = append(j.pending, e.it.Clone())
		}
		return
	case tr.wants(handle, e.it.Conn.Protocol.ScopedIDs):
		if j != nil {
			for _, it := range j.pending {
				tr.show(it)
			}
		}
		tr.show(e.it)
	}
	if j != nil {
		tr.pending -= len(j.pending)
		j.pending = nil
	}
}

// showInvalid passes on an invalid message that names the traced job: at the beginning of its job ID, which may contain
// later fields if their form is wrong, or in any word if it has no job ID that could be decoded.
func (t *Tracker) showInvalid(it *pcap.Item) {
	typ := it.Frame.Type
	if t.trace == nil || it.Kind != pcap.Violates || typ != nil && !typ.Has(codec.JobID) {
		return
	}
	words := it.Raw
	for i := range it.Frame.Spans {
		if it.Frame.Spans[i].Field.Means == codec.JobID {
			words, _, _ = bytes.Cut(bytes.ReplaceAll(it.Frame.Value(i), []byte{0}, []byte{' '}), []byte{' '})
		}
	}
	for word := range bytes.FieldsFuncSeq(words, func(r rune) bool { return r <= ' ' }) {
		if t.trace.wants(string(word), it.Conn.Protocol.ScopedIDs) {
			t.trace.show(it)
			return
		}
	}
}

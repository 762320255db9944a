package pcap

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"jobwire/codec"
)

// Timeline is what happened to one job.
type Timeline struct {
	Handle   string
	Function string
	Server   netip.AddrPort
	Stages   []Stage

	Uncertain bool // see Anomaly
	More      int  // stages that are not in the list
	dropped   bool
}

// Stage is one thing that happened to a job.
type Stage struct {
	At   int64  // as Packet.At
	What string // submitted, created, assigned, assigned again: why, released, buried, kicked, completed, failed, deleted, result delivered, ...
	Conn int    // the connection's ID
}

const maxStages = 64 // of a timeline

// timelines are those of the first jobs.
type timelines struct {
	all  []*Timeline
	max  int
	left int // jobs of which no timeline was kept
}

// KeepTimelines has the timelines of the first n jobs kept. It is called before the first Add.
func (j *Jobs) KeepTimelines(n int) { j.timelines.max = n }

// Timelines returns the timelines that were kept, in the order in which the jobs were first seen,
// and the number of jobs beyond them.
func (j *Jobs) Timelines() (all []*Timeline, more int) {
	return slices.DeleteFunc(slices.Clone(j.timelines.all), func(l *Timeline) bool { return l.dropped }), j.timelines.left
}

func (l *timelines) begin(w *job) *Timeline {
	if len(l.all) >= l.max {
		if l.left++; l.max == 0 {
			l.left = 0
		}
		return nil
	}
	t := &Timeline{Handle: w.key.id, Function: w.queue, Server: w.key.server}
	l.all = append(l.all, t)
	return t
}

// name sets the ID of the job.
func (l *Timeline) name(w *job) {
	if l != nil {
		l.Handle, l.Function = w.key.id, w.queue
	}
}

// drop removes a timeline that turned out to be another job's.
func (l *Timeline) drop() {
	if l != nil {
		l.dropped = true
	}
}

// note adds a stage to the job's timeline.
func (w *job) note(e *event, what string) {
	switch l := w.timeline; {
	case l == nil:
	case len(l.Stages) >= maxStages:
		l.More++
	default:
		l.Stages = append(l.Stages, Stage{e.it.At, what, e.conn.id})
		l.Uncertain = w.uncertain
	}
}

// trace shows the messages of one job.
type trace struct {
	handle string
	show   func(*Item)
	shown  int
	held   int // messages that wait for their job's handle
}

const maxHeldItems = 1 << 12

// Trace passes all messages of one job to show, in their order, with those before its handle was
// known, once it is. Where handles count within a function, handle may be
// FUNCTION:ID or the ID alone. It is called before the first Add.
func (j *Jobs) Trace(handle string, show func(*Item)) { j.trace = &trace{handle: handle, show: show} }

// Traced returns how many messages of the traced job there were.
func (j *Jobs) Traced() int { return j.trace.shown }

func (t *trace) wants(handle string, scoped bool) bool {
	return handle == t.handle || scoped && strings.HasSuffix(handle, ":"+t.handle)
}

// show passes on what is of the traced job, and keeps what may be of it.
func (j *Jobs) show(e *event, w *job) {
	t := j.trace
	if t == nil {
		return
	}
	handle := e.id
	if w != nil && w.key.id != "" {
		handle = w.key.id
	}
	switch {
	case handle == "" && w != nil && e.Does.Does == codec.Refuse:
	case handle == "" && w != nil:
		if t.held < maxHeldItems {
			t.held++
			w.held = append(w.held, e.it.clone())
		}
		return
	case t.wants(handle, e.it.Conn.Protocol.ScopedIDs):
		if w != nil {
			for _, it := range w.held {
				t.show(it)
				t.shown++
			}
		}
		t.show(e.it)
		t.shown++
	}
	if w != nil {
		t.held -= len(w.held)
		w.held = nil
	}
}

// clone returns a copy that stays valid.
func (it *Item) clone() *Item {
	c := *it
	conn := *it.Conn // with the time of the message before, as it is now
	c.Conn = &conn
	c.Raw = bytes.Clone(it.Raw)
	if it.Frame != nil {
		f := it.Frame.Clone()
		c.Frame = &f
	}
	return &c
}

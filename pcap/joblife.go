package pcap

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
)

// Life is what happened to one job.
type Life struct {
	Handle   string
	Function string
	Server   netip.AddrPort
	Stages   []Stage

	Uncertain bool // see OddJob
	More      int  // stages that are not in the list
	dropped   bool
}

// Stage is one thing that happened to a job.
type Stage struct {
	At   int64  // as Packet.At
	What string // submitted, created, assigned, assigned again: why, released, buried, kicked, completed, failed, deleted, told, ...
	Conn int    // the connection's ID
}

const maxStages = 64 // of a life

// lives are those of the first jobs.
type lives struct {
	all  []*Life
	max  int
	left int // jobs of which no life was kept
}

// KeepLives has the lives of the first n jobs kept. It is called before the first Add.
func (j *Jobs) KeepLives(n int) { j.lives.max = n }

// Lives returns the lives that were kept, in the order in which the jobs were first seen,
// and the number of jobs beyond them.
func (j *Jobs) Lives() (all []*Life, more int) {
	return slices.DeleteFunc(slices.Clone(j.lives.all), func(l *Life) bool { return l.dropped }), j.lives.left
}

func (l *lives) begin(w *job) *Life {
	if len(l.all) >= l.max {
		if l.left++; l.max == 0 {
			l.left = 0
		}
		return nil
	}
	life := &Life{Handle: w.key.handle, Function: w.function, Server: w.key.server}
	l.all = append(l.all, life)
	return life
}

// name tells a life what its job is called.
func (l *Life) name(w *job) {
	if l != nil {
		l.Handle, l.Function = w.key.handle, w.function
	}
}

// drop takes back a life that turned out to be another's.
func (l *Life) drop() {
	if l != nil {
		l.dropped = true
	}
}

// note adds a stage to the job's life.
func (w *job) note(e *deedOf, what string) {
	switch l := w.life; {
	case l == nil:
	case len(l.Stages) >= maxStages:
		l.More++
	default:
		l.Stages = append(l.Stages, Stage{e.it.At, what, e.link.id})
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

// Trace has all messages of one job handed on, in their order: those before its handle was
// known as well, when it is. Where handles count within a function, handle may be
// FUNCTION:ID or the ID alone. It is called before the first Add.
func (j *Jobs) Trace(handle string, show func(*Item)) { j.trace = &trace{handle: handle, show: show} }

// Traced returns how many messages of the traced job there were.
func (j *Jobs) Traced() int { return j.trace.shown }

func (t *trace) wants(handle string, scoped bool) bool {
	return handle == t.handle || scoped && strings.HasSuffix(handle, ":"+t.handle)
}

// show hands on what is of the traced job, and keeps what may be.
func (j *Jobs) show(e *deedOf, w *job) {
	t := j.trace
	if t == nil {
		return
	}
	handle := e.handle
	if w != nil && w.key.handle != "" {
		handle = w.key.handle
	}
	switch {
	case handle == "" && w != nil && e.row.does == doesRefuses:
	case handle == "" && w != nil:
		if t.held < maxHeldItems {
			t.held++
			w.held = append(w.held, e.it.clone())
		}
		return
	case t.wants(handle, e.row.table.scoped):
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

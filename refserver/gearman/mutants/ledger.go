package mutants

import (
	"strings"

	protocol "jobwire/codec/gearman"
)

// ledger is what a hook can know of the jobs by listening.
type ledger struct {
	jobs    map[string]*job // by handle, finished ones too
	order   []*job          // as they were submitted
	peers   map[*conn]*peer
	request *frame // the one that is being handled
	heard   int    // messages from all peers
}

// job is one job as it was seen from outside.
type job struct {
	handle               string
	typ                  string // of its first submission
	fn, unique, workload string
	submitter            *conn   // who submitted it first
	clients              []*conn // who wait for it
	worker               *conn   // who has it, or nil
	grabbed              bool    // somebody had it once
	ended                string  // the type that ended it; "" while it has not
}

// peer is one connection as it was seen from outside.
type peer struct {
	conn       *conn
	first      string   // the type of its first message
	functions  []string // every function that it announced, in order
	abilities  map[string]bool
	asleep     bool // since its last PRE_SLEEP there was no GRAB_JOB
	slept      bool // it has slept once
	grabbed    bool // it has grabbed once
	woken      bool // it was sent NOOP since its last GRAB_JOB
	exceptions bool
}

func background(typ string) bool {
	return strings.HasSuffix(typ, "_BG") || strings.HasSuffix(typ, "_BACKGROUND") || typ == "SUBMIT_JOB_EPOCH" || typ == "SUBMIT_JOB_SCHED"
}

func submission(typ string) bool { return strings.HasPrefix(typ, "SUBMIT_") }

// queued reports whether the job waits for a worker.
func (j *job) queued() bool { return j.ended == "" && j.worker == nil }

// running returns the jobs that the worker has.
func (l *ledger) running(worker *conn) []*job {
	var all []*job
	for _, j := range l.order {
		if j.ended == "" && j.worker == worker {
			all = append(all, j)
		}
	}
	return all
}

// find returns the first job of which it holds, or nil.
func (l *ledger) find(holds func(j *job) bool) *job {
	for _, j := range l.order {
		if holds(j) {
			return j
		}
	}
	return nil
}

// met notes that a message came, whether it is legal or not.
func (l *ledger) met(c *conn, f *frame) {
	l.heard++
	if p := l.peers[c]; p.first == "" && f.Type != nil {
		p.first = f.Type.Name
	}
}

// note is what a message changes in the ledger.
type note func(l *ledger, c *conn, f *frame)

// What is noted of messages from peers, before they are handled and after it, and of those that
// the server sends; by row.
var (
	before = byRow(map[string]note{
		"CAN_DO CAN_DO_TIMEOUT": func(l *ledger, c *conn, f *frame) {
			p := l.peers[c]
			p.functions = append(p.functions, arg(f, 0))
			p.abilities[arg(f, 0)] = true
		},
		"CANT_DO":         func(l *ledger, c *conn, f *frame) { delete(l.peers[c].abilities, arg(f, 0)) },
		"RESET_ABILITIES": func(l *ledger, c *conn, _ *frame) { clear(l.peers[c].abilities) },
		"PRE_SLEEP": func(l *ledger, c *conn, _ *frame) {
			p := l.peers[c]
			p.asleep, p.slept, p.woken = true, true, false
		},
		grabs: func(l *ledger, c *conn, _ *frame) {
			p := l.peers[c]
			p.asleep, p.woken, p.grabbed = false, false, true
		},
		"OPTION_REQ": func(l *ledger, c *conn, f *frame) {
			p := l.peers[c]
			p.exceptions = p.exceptions || arg(f, 0) == "exceptions"
		},
	})
	after = byRow(map[string]note{
		results: func(l *ledger, c *conn, f *frame) {
			if j := l.jobs[arg(f, 0)]; j != nil && j.worker == c && j.ended == "" {
				j.ended = f.Type.Name
			}
		},
	})
	sent = byRow(map[string]note{
		"JOB_CREATED": (*ledger).created,
		assignments: func(l *ledger, c *conn, f *frame) {
			if j := l.jobs[arg(f, 0)]; j != nil {
				j.worker, j.grabbed = c, true
			}
		},
		"NOOP": func(l *ledger, c *conn, _ *frame) { l.peers[c].woken = true },
		"WORK_FAIL": func(l *ledger, _ *conn, f *frame) {
			if j := l.jobs[arg(f, 0)]; j != nil && l.request == nil {
				j.ended = "timeout"
			}
		},
	})
)

// byRow is a table of what is noted of the types that stand in the keys.
func byRow(notes map[string]note) []note {
	table := make([]note, len(protocol.Protocol.Types))
	for types, n := range notes {
		for _, name := range strings.Fields(types) {
			table[row(name).Index] = n
		}
	}
	return table
}

// take notes what a message changes.
func (l *ledger) take(notes []note, c *conn, f *frame) {
	if n := notes[f.Type.Index]; n != nil {
		n(l, c, f)
	}
}

// created notes a job, or a client that joins one.
func (l *ledger) created(c *conn, f *frame) {
	r, handle := l.request, arg(f, 0)
	if r == nil || !submission(r.Type.Name) {
		return
	}
	j := l.jobs[handle]
	if j == nil {
		j = &job{
			handle: handle, typ: r.Type.Name, submitter: c,
			fn: arg(r, 0), unique: arg(r, 1), workload: arg(r, len(r.Type.Fields)-1),
		}
		l.jobs[handle] = j
		l.order = append(l.order, j)
	}
	if !background(r.Type.Name) {
		j.clients = append(j.clients, c)
	}
}

// left notes that a connection has ended.
func (l *ledger) left(c *conn) {
	for _, j := range l.order {
		if j.ended == "" && j.worker == c {
			j.worker = nil
		}
		kept := j.clients[:0]
		for _, w := range j.clients {
			if w != c {
				kept = append(kept, w)
			}
		}
		j.clients = kept
	}
}

package pcap

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"jobwire/codec"
)

// Limits of what is kept.
const (
	maxJobs      = 1 << 16
	minSweepJobs = maxJobs / 4
	maxQueues    = 1000
	maxAnomalies = 1000
	maxWaiters   = 64 // clients that wait for one job
)

// Jobs follows jobs across connections, by their IDs. Jobs that a worker gets without an ID are
// told apart by their queue and payload.
type Jobs struct {
	jobs       map[jobKey]*job
	unassigned map[content][]*job // jobs without a worker, where workers get no ID
	conns      map[int]*connState
	last       *connState // of the last item, or nil
	event      event      // of the last message
	queues     map[string]*JobStats
	report     JobReport
	sweep      int // number of jobs at which those that have ended are forgotten
	nameless   int // jobs without an ID
	waiting    int // jobs in unassigned
	seed       maphash.Seed

	trace     *trace
	timelines timelines
}

type jobKey struct {
	server netip.AddrPort
	id     string
}

// content is what jobs without IDs are told apart by.
type content struct {
	server netip.AddrPort
	sum    uint64 // of queue and payload
}

// connState is what matters of a connection.
type connState struct {
	id       int
	unnamed  bool // workers get one job at a time, without its ID
	closed   bool // by its peer
	reset    bool // by its peer, which may not have read what was sent last
	ends     int
	requests codec.Conversation[request]
	queue    string                   // of the jobs that it submits
	limits   map[string]time.Duration // by queue
	current  *job                     // of a worker, if unnamed
	attached []*job                   // jobs whose ends are reported to it, if unnamed
	worker   bool                     // it has sent more than submissions

	unregistered int64 // time at which it last gave up a queue
}

// request is what a request says, until its reply.
type request struct {
	does  *codec.Type // see Protocol.Behavior
	job   *job
	id    string
	delay time.Duration
}

// job is one that has not been forgotten.
type job struct {
	key       jobKey
	queue     string
	stats     *JobStats
	content   content
	submitted int64
	ready     int64 // when it could be assigned first: submitted, or later with a delay
	first     int64 // assigned for the first time
	assigned  int64
	ended     int64
	delivered int64
	assigns   int
	ends      int
	worker    *connState // it was assigned to last
	waiters   []*connState
	touched   int64 // when the time limit began anew
	limit     time.Duration
	requeued  string // why it can be assigned again
	failed    bool   // the first end is a failure
	reported  bool   // by a worker, without a reply

	background bool // no client waits for the end
	exception  bool // it has ended by an exception
	buried     bool
	abandoned  bool // when it ended, no client waited any more
	alone      bool // stats are its own
	uncertain  bool
	timeline   *Timeline
	held       []*Item // while its ID is not known, for a trace
}

// NewJobs returns one that knows no job.
func NewJobs() *Jobs {
	return &Jobs{jobs: map[jobKey]*job{}, unassigned: map[content][]*job{}, conns: map[int]*connState{}, queues: map[string]*JobStats{}, seed: maphash.MakeSeed(), sweep: minSweepJobs}
}

// Add follows the jobs in an item.
func (j *Jobs) Add(it *Item) {
	switch it.Kind {
	case Message:
		if it.Frame.Type != nil {
			j.message(it)
			return
		}
		fallthrough
	case Violates: // it is not taken for what it seems, but is a request or a reply
		if t, c := it.Frame.Type, j.conn(it); it.From == codec.Server {
			c.requests.Reply(t)
		} else if t != nil && len(t.Answers) == 0 {
			c.requests.Add(nil)
		} else {
			c.requests.Add(t)
		}
	case Gap:
		if c := j.conns[it.Conn.ID]; c != nil {
			c.requests.Forget()
			c.attached = nil
		}
	case Ends, Breaks:
		if it.Conn.Protocol != nil {
			j.end(it)
		}
	}
}

// conn returns what is known of a connection.
func (j *Jobs) conn(it *Item) *connState {
	if c := j.last; c != nil && c.id == it.Conn.ID {
		return c
	}
	c := j.conns[it.Conn.ID]
	if c == nil {
		if len(j.conns) >= 2*maxConns { // of connections that never end
			clear(j.conns)
		}
		p := it.Conn.Protocol
		c = &connState{id: it.Conn.ID, unnamed: slices.ContainsFunc(p.Types, func(t *codec.Type) bool { return t.Does == codec.Assign && !t.Has(codec.JobID) })}
		if !it.Conn.Uncertain {
			c.queue = p.DefaultQueue
		}
		j.conns[it.Conn.ID] = c
	}
	j.last = c
	return c
}

// end notes that a side has closed. The job of its worker is for others.
func (j *Jobs) end(it *Item) {
	c := j.conn(it) // even if it has sent nothing: what was sent to it may be captured late
	c.closed, c.reset = true, c.reset || it.Kind == Breaks
	if c.ends++; c.ends > 1 || it.Kind == Breaks {
		delete(j.conns, c.id)
		j.last = nil
		c.requests.Forget()
	}
	j.requeue(c, workerLeft)
}

// requeue puts back the job of a worker that does not name it.
func (j *Jobs) requeue(c *connState, why string) {
	if w := c.current; w != nil {
		c.current = nil
		w.requeued = why
		j.unassigned[w.content] = append([]*job{w}, j.unassigned[w.content]...)
		j.waiting++
	}
}

// event is what a message does to a job, and where.
type event struct {
	codec.Event
	it      *Item
	conn    *connState
	id      string // of the job, as jobs are told apart; "" if none
	queue   string
	request request // that a reply answers
	delay   time.Duration
}

func (e *event) key() jobKey { return jobKey{e.it.Conn.Server, e.id} }

// name sets what tells the job.
func (e *event) name(ev codec.Event) {
	e.Event = ev
	if e.queue = string(ev.Queue); ev.Job == nil || ev.Does.At(codec.JobID) >= len(ev.Does.Fields) { // a list of jobs is about none of them
		return
	}
	if e.id = string(ev.Job); e.it.Conn.Protocol.ScopedIDs {
		if e.id = e.queue + ":" + e.id; ev.Queue == nil {
			e.id = ""
		}
	}
}

// message follows the job in a message.
func (j *Jobs) message(it *Item) {
	p, f := it.Conn.Protocol, it.Frame
	e := &j.event
	*e = event{it: it, conn: j.conn(it)}
	e.name(p.Event(f))
	if it.From == codec.Peer {
		r := e.conn.requests.Add(f.Type)
		if r != nil {
			r.Value = request{does: e.Does, id: e.id, delay: f.Duration(codec.Delay)}
			if e.Does.Does == codec.Unregister || confirmed(e.Does) {
				j.show(e, j.known(e))
				return
			}
		}
		e.delay = f.Duration(codec.Delay)
		w := j.apply(e)
		if r != nil {
			r.Value.job = w
		}
		j.show(e, w)
		return
	}
	if r, ok := e.conn.requests.Reply(f.Type); ok {
		e.request = r.Value
	}
	asked, answers := e.request.does, e.Does.Does == codec.Answer
	if asked != nil && confirmed(asked) && !p.Unowned && (answers || e.Does.Does == codec.Bury) {
		if e.id, e.delay = e.request.id, e.request.delay; answers {
			e.Does, e.Side = asked, codec.Peer
		}
	} else if answers && p.Reread != nil {
		if ev, ok := p.Reread(f); ok {
			e.name(ev)
		}
	}
	j.show(e, j.apply(e))
}

// confirmed reports whether a request, if it has a reply, takes effect by that.
func confirmed(t *codec.Type) bool { return t.Does >= codec.Release && t.Does <= codec.Delete }

// apply follows a job, and returns it if it is known.
func (j *Jobs) apply(e *event) *job {
	if do := effects[e.Side][e.Does.Does]; do != nil {
		return do(j, e)
	}
	if e.id == "" {
		return nil
	}
	return j.known(e)
}

func (j *Jobs) of(queue string) *JobStats {
	s := j.queues[queue]
	if s == nil {
		if len(j.queues) >= maxQueues {
			queue = "(other functions)"
		}
		if s = j.queues[queue]; s == nil {
			s = &JobStats{}
			j.queues[queue] = s
		}
	}
	return s
}

// remember follows a job. From time to time it forgets those that have ended.
func (j *Jobs) remember(w *job) {
	if len(j.jobs) >= j.sweep {
		for key, old := range j.jobs {
			if old.ends > 0 && (old.delivered != 0 || old.background || old.abandoned || j.sweep >= maxJobs) {
				j.settle(old)
				delete(j.jobs, key)
			}
		}
		j.sweep = min(maxJobs, max(minSweepJobs, 2*len(j.jobs)))
		if len(j.jobs) > maxJobs*7/8 { // none has ended: not for every job
			j.sweep = maxJobs + 1
		}
	}
	if len(j.jobs) >= maxJobs {
		if j.report.Forgotten++; j.report.Forgotten%(maxJobs/8) == 0 {
			j.sweep = maxJobs
		}
		return
	}
	j.jobs[w.key] = w
}

func (j *Jobs) anomaly(w *job, format string, args ...any) {
	if len(j.report.Anomalies) < maxAnomalies {
		j.report.Anomalies = append(j.report.Anomalies, Anomaly{w.key.id, w.key.server.String(), w.queue, fmt.Sprintf(format, args...), w.uncertain})
	}
}

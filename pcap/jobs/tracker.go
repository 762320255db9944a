// Package jobs tracks the jobs in a capture across connections: when each job was submitted, assigned to a
// worker and ended. Pass the items of a [jobwire/pcap.Decoder] to [Tracker.Add]. [Tracker.Report] then returns
// statistics for each function or tube and a list of anomalies. [Tracker.Timelines] returns the events of
// single jobs.
package jobs

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/pcap"
)

// Limits of the data that is kept.
const (
	maxJobs      = 1 << 16
	minSweepJobs = maxJobs / 4
	maxQueues    = 1000
	maxAnomalies = 1000
	maxWaiters   = 64      // clients that wait for one job
	maxConns     = 1 << 17 // connections whose state is kept
)

// Tracker tracks jobs across connections by their IDs. Jobs that a worker gets without an ID are distinguished by
// their queue and payload.
type Tracker struct {
	jobs       map[jobKey]*job
	unassigned map[content][]*job // jobs without a worker, for protocols in which workers get no ID
	conns      map[int]*connState
	last       *connState // connection of the last item, or nil
	event      event      // of the last message
	queues     map[string]*Stats
	report     Report
	sweep      int // number of jobs at which ended jobs are forgotten
	nameless   int // number of jobs without an ID
	waiting    int // number of jobs in unassigned
	seed       maphash.Seed

	trace     *trace
	timelines timelines
}

type jobKey struct {
	server pcap.Service
	id     string
}

// content identifies jobs without an ID.
type content struct {
	server pcap.Service
	sum    uint64 // hash of queue and payload
}

// connState is the state of a connection.
type connState struct {
	id       int
	unnamed  bool // workers get one job at a time, without its ID
	closed   bool // by its peer
	reset    bool // the peer has reset the connection, and may not have read the last messages to it
	ends     int
	requests codec.Conversation[request]
	queue    string                   // queue of the jobs that it submits
	limits   map[string]time.Duration // time limits by queue
	current  *job                     // the worker's job, if unnamed
	attached []*job                   // jobs whose ends are reported to it, if unnamed
	worker   bool                     // the peer has sent messages other than submissions

	unregistered int64 // time at which it last left a queue
}

// request is the content of a request, kept until its reply.
type request struct {
	does  *codec.Type // see Protocol.Behavior
	job   *job
	id    string
	delay time.Duration
}

// job is a job that is being tracked.
type job struct {
	key     jobKey
	queue   string
	content content
	stats   *Stats
	alone   bool // stats are only for this job
	times
	outcome

	limit      time.Duration
	background bool // no client waits for the end
	waiters    []*connState
	assigns    int
	worker     *connState // the worker to which it was assigned last
	requeued   string     // the reason for which it may be assigned again
	buried     bool

	uncertain bool
	timeline  *Timeline
	pending   []*pcap.Item // items for a trace, kept until the ID of the job is known
}

// times are the times of a job's events, as in [pcap.Item], or 0.
type times struct {
	submitted int64
	ready     int64 // the earliest time of an assignment: submitted, or later with a delay
	first     int64 // the first assignment
	assigned  int64
	touched   int64 // the time limit restarted
	ended     int64
	delivered int64
}

// outcome describes the ends of a job, of which only the first one counts.
type outcome struct {
	ends      int
	failed    bool // the first end is a failure
	exception bool // the job has ended with an exception
	reported  bool // the end was reported by a worker, not by a reply
	abandoned bool // when it ended, no client waited any more
}

// New returns an empty Tracker.
func New() *Tracker {
	return &Tracker{jobs: map[jobKey]*job{}, unassigned: map[content][]*job{}, conns: map[int]*connState{},
		queues: map[string]*Stats{}, seed: maphash.MakeSeed(), sweep: minSweepJobs}
}

// Add updates the jobs that an item affects.
func (t *Tracker) Add(it *pcap.Item) {
	switch it.Kind {
	case pcap.Message:
		if it.Frame.Type != nil {
			t.message(it)
			return
		}
		fallthrough
	case pcap.Violates: // an invalid message has no effect on jobs, but it is a request or a reply
		t.showInvalid(it)
		if typ, c := it.Frame.Type, t.conn(it); it.From == codec.Server {
			c.requests.Reply(typ)
		} else if typ != nil && len(typ.Answers) == 0 {
			c.requests.Add(nil)
		} else {
			c.requests.Add(typ)
		}
	case pcap.Gap:
		if c := t.conns[it.Conn.ID]; c != nil {
			c.requests.Forget()
			c.attached = nil
		}
	case pcap.Ends, pcap.Breaks:
		if it.Conn.Protocol != nil {
			t.end(it)
		}
	}
}

// conn returns the state of a connection.
func (t *Tracker) conn(it *pcap.Item) *connState {
	if c := t.last; c != nil && c.id == it.Conn.ID {
		return c
	}
	c := t.conns[it.Conn.ID]
	if c == nil {
		if len(t.conns) >= maxConns { // the capture may contain connections that never end
			clear(t.conns)
		}
		p := it.Conn.Protocol
		c = &connState{id: it.Conn.ID, unnamed: slices.ContainsFunc(p.Types,
			func(t *codec.Type) bool { return t.Does == codec.Assign && !t.Has(codec.JobID) })}
		if !it.Conn.Uncertain {
			c.queue = p.DefaultQueue
		}
		t.conns[it.Conn.ID] = c
	}
	t.last = c
	return c
}

// end records that a side has closed the connection. If it is a worker, its job can be assigned to another
// worker.
func (t *Tracker) end(it *pcap.Item) {
	// create the state even if the peer has sent nothing, because messages to the peer may be captured late
	c := t.conn(it)
	c.closed, c.reset = true, c.reset || it.Kind == pcap.Breaks
	if c.ends++; c.ends > 1 || it.Kind == pcap.Breaks {
		delete(t.conns, c.id)
		t.last = nil
		c.requests.Forget()
	}
	t.requeue(c, workerLeft)
}

// requeue returns the job of a worker that does not name it to its queue.
func (t *Tracker) requeue(c *connState, why string) {
	if j := c.current; j != nil {
		c.current = nil
		j.requeued = why
		t.unassigned[j.content] = append([]*job{j}, t.unassigned[j.content]...)
		t.waiting++
	}
}

// event is the effect of a message on a job.
type event struct {
	codec.Event
	it      *pcap.Item
	conn    *connState
	id      string // ID of the job, with its queue if IDs are unique only in a queue; "" if none
	queue   string
	request request // the request that a reply answers
	delay   time.Duration
}

func (e *event) key() jobKey { return jobKey{e.it.Conn.Service(), e.id} }

// name sets the job and queue that a message names.
func (e *event) name(ev codec.Event) {
	e.Event = ev
	if e.queue = string(ev.Queue); ev.Job == nil || ev.Does.At(codec.JobID) >= len(ev.Does.Fields) { // not for a list of jobs
		return
	}
	if e.id = string(ev.Job); e.it.Conn.Protocol.ScopedIDs {
		if e.id = e.queue + ":" + e.id; ev.Queue == nil {
			e.id = ""
		}
	}
}

// message updates the job of a message.
func (t *Tracker) message(it *pcap.Item) {
	p, f := it.Conn.Protocol, it.Frame
	e := &t.event
	*e = event{it: it, conn: t.conn(it)}
	e.name(p.Event(f))
	if it.From == codec.Peer {
		r := e.conn.requests.Add(f.Type)
		if r != nil {
			r.Value = request{does: e.Does, id: e.id, delay: f.Duration(codec.Delay)}
			if e.Does.Does == codec.Unregister || confirmed(e.Does) {
				t.show(e, t.known(e))
				return
			}
		}
		e.delay = f.Duration(codec.Delay)
		j := t.apply(e)
		if r != nil {
			r.Value.job = j
		}
		t.show(e, j)
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
	t.show(e, t.apply(e))
}

// confirmed reports whether a request takes effect only when its reply arrives, if it has a reply.
func confirmed(t *codec.Type) bool { return t.Does >= codec.Release && t.Does <= codec.Delete }

// apply updates the job of an event, and returns it if it is known.
func (t *Tracker) apply(e *event) *job {
	if do := effects[e.Side][e.Does.Does]; do != nil {
		return do(t, e)
	}
	if e.id == "" {
		return nil
	}
	return t.known(e)
}

// statsOf returns the statistics of a queue. If there are more than maxQueues queues, further ones share their
// statistics.
func (t *Tracker) statsOf(queue string) *Stats {
	s := t.queues[queue]
	if s == nil {
		if len(t.queues) >= maxQueues {
			queue = "(other functions)"
		}
		if s = t.queues[queue]; s == nil {
			s = &Stats{Because: map[string]int{}}
			t.queues[queue] = s
		}
	}
	return s
}

// remember starts to track a job. From time to time it forgets jobs that have ended.
func (t *Tracker) remember(j *job) {
	if len(t.jobs) >= t.sweep {
		for key, old := range t.jobs {
			if old.ends > 0 && (old.delivered != 0 || old.background || old.abandoned || t.sweep >= maxJobs) {
				t.settle(old)
				delete(t.jobs, key)
			}
		}
		t.sweep = min(maxJobs, max(minSweepJobs, 2*len(t.jobs)))
		if len(t.jobs) > maxJobs*7/8 { // few jobs have ended, so remove more jobs now instead of sweeping for every new job
			t.sweep = maxJobs + 1
		}
	}
	if len(t.jobs) >= maxJobs {
		if t.report.Forgotten++; t.report.Forgotten%(maxJobs/8) == 0 {
			t.sweep = maxJobs
		}
		return
	}
	t.jobs[j.key] = j
}

// anomaly adds an anomaly of a job to the report, which contains at most maxAnomalies.
func (t *Tracker) anomaly(j *job, format string, args ...any) {
	if len(t.report.Anomalies) < maxAnomalies {
		t.report.Anomalies = append(t.report.Anomalies,
			Anomaly{j.key.id, j.key.server.String(), j.queue, fmt.Sprintf(format, args...), j.uncertain})
	}
}

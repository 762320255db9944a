package judge

import (
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
)

// dangaChecker checks the Danga draft. Few of its packets name a job, so it can check little across connections.
type dangaChecker struct {
	*Monitor
	handles map[string]creation
	before  map[creation]bool // creations of jobs that received a handle
	names   map[string]string // job name of the last job with a handle, by duplicate key
}

// creation is the content of a request that creates a job.
type creation struct {
	name, key string
	kind      uint64
}

// dangaConn contains what is known about a connection.
type dangaConn struct {
	*Conn
	d   *dangaChecker
	seq int // number of messages of the peer
	dangaApplication
	dangaWorker
}

// dangaApplication is what is known about an application.
type dangaApplication struct {
	created  []creation // creations that wait for a reply
	waits    int        // number of jobs for whose end the application waits
	made     [3]bool    // by job type: the application has created such a job
	statuses int        // number of pending requests for the status of a job
	results  int        // number of pending requests for the result of a job
}

// dangaWorker is what is known about a worker.
type dangaWorker struct {
	announced bool           // the worker has announced job names
	names     map[string]int // announced names, with the seq of the announcement
	replaced  map[string]int // names of the previous announcement
	since     int            // seq of the last announcement
	gone      bool           // the worker has sent worker_disconnect
	left      int64          // time of the last worker_disconnect
	late      int            // noops that the server may have sent before it received that worker_disconnect
	asked     []int          // seq of each pending request for a job
	asks      int            // total number of requests for a job
	wakeups   int            // number of noops and jobs; the worker may interpret each of them as the reply to a request
	sleeps    []int          // seq of each worker_sleep after which no noop was captured yet
	woken     bool           // the worker has been woken since it last slept
	has       bool           // the worker has a job
	mixed     bool           // the worker may have a job whose assignment was not captured yet
}

// Danga returns a checker of the Danga draft.
func Danga(m *Monitor) Checker {
	m.Declare(codec.Peer, protocol.Application, "sync.one-at-a-time")
	m.Declare(codec.Peer, protocol.Worker, "status.no-job complete.no-job sleep.hears-first")
	m.Declare(codec.Server, 0, `create.answered create.answered-first async.handle async.handles-distinct dup.empty-off
		dup.per-name application.only-answers async.not-streamed throwaway.silent complete.elapsed assign.asked-for
		connect.capabilities worker.one-task connect.replaces connect.needed sleep.awake-undisturbed sleep.once
		disconnect.no-more`)
	d := &dangaChecker{Monitor: m}
	d.Reset()
	return d
}

func (d *dangaChecker) Open(c *Conn) Conversation { return &dangaConn{Conn: c, d: d} }

func (d *dangaChecker) Reset() {
	d.handles, d.before, d.names = map[string]creation{}, map[creation]bool{}, map[string]string{}
}

func (d *dangaChecker) Size() int { return len(d.handles) + len(d.before) + len(d.names) }

func (c *dangaConn) Size() int {
	return len(c.created) + len(c.names) + len(c.replaced) + len(c.asked) + len(c.sleeps)
}

// End implements Conversation: until the end, the server has sent nothing more to a worker that has sent
// worker_disconnect.
func (c *dangaConn) End(from codec.Side, _ bool) {
	if c.gone && from == codec.Server {
		c.Pass("danga.disconnect.no-more")
	}
}

func (c *dangaConn) Invalid(*codec.Frame, codec.RuleID) { c.Stop() }

// Message implements Conversation. It counts the messages of the peer, because a worker may send worker_connect or
// worker_sleep while replies to earlier requests are on their way: the seq of a request shows what the server knew when
// it replied.
func (c *dangaConn) Message(f *codec.Frame) {
	if f.From == codec.Server {
		c.received(f)
		return
	}
	c.seq++
	switch f.Type.Does {
	case codec.Submit:
		c.creates(f)
	case codec.Query:
		c.checkOutstanding()
		c.statuses++
	case codec.Wait:
		c.checkOutstanding()
		c.results++
	case codec.Register:
		c.connects(f)
	case codec.Leave:
		if time.Duration(c.d.at-c.left) >= maxInFlight {
			c.late = 0
		}
		c.gone, c.has, c.late, c.sleeps = true, false, c.late+len(c.sleeps), nil
		c.since, c.left = c.seq, c.d.at
	case codec.Sleep:
		// A reply is captured before the worker receives it, so the worker has not received a reply that was not
		// captured. A worker cannot know which noop is a reply, so there must be at least as many noops and jobs as
		// requests.
		if c.d.PeerChecks {
			c.Check("danga.sleep.hears-first", c.wakeups >= c.asks, "",
				"the worker sent this message before it received the reply to its request for a job")
		}
		c.sleeps = append(c.sleeps, c.seq)
	case codec.Ask:
		c.asks++
		c.asked = append(c.asked, c.seq)
	case codec.Status:
		c.reports("danga.status.no-job")
	case codec.Complete:
		c.reports("danga.complete.no-job")
		c.has = false
	}
}

// received checks a message of the server: a noop, the reply to a creation, an assignment, or the progress or result of
// a job. Each reply must have a request, and a result without a request must belong to a job of type 0 (sync+wait).
// results and statuses count requests without a reply, and waits counts jobs of type 0, whose application receives any
// number of statuses and one result.
func (c *dangaConn) received(f *codec.Frame) {
	switch f.Type.Does {
	case codec.Wake:
		c.wakes()
	case codec.Accept:
		c.accepted(f)
	case codec.Assign:
		c.assigned(f)
	case codec.Status:
		if c.expected(c.statuses > 0 || c.waits > 0) && c.statuses > 0 {
			c.statuses--
		}
	case codec.Complete:
		switch {
		case !c.expected(c.results > 0 || c.waits > 0):
		case c.results > 0:
			c.results--
		default:
			c.waits--
			c.Check("danga.complete.elapsed", string(f.Arg(0)) != "\x00\x00\x00\x00", "Job status",
				"expected an elapsed time of at least 1 second for a finished job, got the job status 0 (incomplete)")
		}
	}
}

// Applications.

// checkOutstanding checks a request that an application must not send while it waits for the end of a job.
func (c *dangaConn) checkOutstanding() {
	waits := c.waits
	for _, p := range c.created {
		if p.kind == protocol.SyncWait {
			waits++
		}
	}
	if c.made[protocol.SyncWait] && !c.Check("danga.sync.one-at-a-time", waits == 0, "", "the application sent this "+
		"request while it waits for a job of type 0 (sync+wait)") {
		c.Stop() // from here on, it is unknown to which requests replies belong
	}
}

// creates records job_create_req. A job of type 0 (sync+wait) must not be created while the application waits for
// another one.
func (c *dangaConn) creates(f *codec.Frame) {
	p := creation{c.d.Name(f.Get(codec.Queue)), c.d.Name(f.Get(codec.UniqueID)), f.Number(codec.Attachment)}
	c.made[min(p.kind, protocol.AsyncThrow)] = true
	if p.kind == protocol.SyncWait {
		c.checkOutstanding()
	}
	c.created = append(c.created, p)
}

// accepted checks job_create_res, which belongs to the oldest creation without a reply. A job of type 1 (async+handle)
// must have a handle.
func (c *dangaConn) accepted(f *codec.Frame) {
	if !c.Check("danga.create.answered", len(c.created) > 0, "",
		"the server sent job_create_res, but no job_create_req waits for a reply") {
		return
	}
	p := c.created[0]
	c.created = after(c.created, 1)
	switch p.kind {
	case protocol.SyncWait:
		c.waits++
		c.Pass("danga.create.answered-first")
	case protocol.Async:
		if handle := c.d.Name(f.Get(codec.JobID)); c.Check("danga.async.handle", handle != "", "",
			"expected a handle for a job of type 1 (async+handle), got none") {
			c.handle(handle, p)
		}
	}
}

// handle checks the handle of a job.
func (c *dangaConn) handle(handle string, p creation) {
	const field = "Job handle"
	d := c.d
	old, again := d.handles[handle]
	switch {
	case again && old.name == p.name && old.key == p.key && p.key == "":
		c.Check("danga.dup.empty-off", false, field,
			"expected a new handle, because the job has no duplicate key, got the handle of another job")
	case again && old.name != p.name && old.key == p.key && p.key != "":
		c.Check("danga.dup.per-name", false, field, "expected a new handle, got the handle of a job with another name, %q",
			old.name)
	case len(d.handles) > 0 && !c.Check("danga.async.handles-distinct", !again ||
		old == p, field, "expected a new handle, got the handle of another job, which has the name %q and the duplicate "+
		"key %q", old.name, old.key):
	case p.key == "":
		if d.before[p] {
			c.Pass("danga.dup.empty-off")
		}
	case d.names[p.key] != "" && d.names[p.key] != p.name:
		c.Pass("danga.dup.per-name")
	}
	if len(d.handles) >= maxJobs {
		d.Reset()
	}
	d.handles[handle], d.before[p], d.names[p.key] = p, true, p.name
}

// expected checks a message of the server about a job. ok reports whether the application has
// requested the message or waits for the job.
func (c *dangaConn) expected(ok bool) bool {
	async, throwaway := c.made[protocol.Async], c.made[protocol.AsyncThrow]
	if ok {
		c.Pass("danga.application.only-answers")
		if async {
			c.Pass("danga.async.not-streamed")
		}
		if throwaway {
			c.Pass("danga.throwaway.silent")
		}
		return true
	}
	rule := codec.RuleID("danga.application.only-answers")
	switch {
	case len(c.created) > 0 && c.created[0].kind == protocol.SyncWait:
		rule = "danga.create.answered-first"
	case async && !throwaway:
		rule = "danga.async.not-streamed"
	case throwaway && !async:
		rule = "danga.throwaway.silent"
	}
	return c.Check(rule, false, "", "the server sent this message, but the application has no request without a reply "+
		"and waits for no job")
}

// Workers.

// connects records the job names of worker_connect, which replace those of the worker's previous announcement.
func (c *dangaConn) connects(f *codec.Frame) {
	c.announced, c.gone, c.since = true, false, c.seq
	c.replaced, c.names = c.names, map[string]int{}
	for i := f.Head; i < len(f.Spans); i++ {
		c.names[c.d.Name(f.Value(i))] = c.seq
	}
}

// maxInFlight is how long a noop may be on its way to a worker that has sent worker_disconnect in the meantime.
const maxInFlight = time.Second

// wakes checks a noop, which wakes a sleeping worker or means that there is no job. It must have a worker_sleep or a
// request for a job before it, and must not follow worker_disconnect, unless it was then already on its way.
func (c *dangaConn) wakes() {
	const goneRule = "danga.disconnect.no-more"
	c.wakeups++
	switch {
	case len(c.sleeps) > 0: // the noop may instead be the reply to a request, which then stays in asked
		c.Pass("danga.sleep.awake-undisturbed")
		c.Pass("danga.sleep.once")
		c.sleeps, c.woken = after(c.sleeps, 1), true
	case len(c.asked) > 0:
		if c.asked = after(c.asked, 1); c.gone {
			c.Pass(goneRule)
		} else if !c.announced {
			c.Pass("danga.connect.needed")
		}
	case c.late > 0 && time.Duration(c.d.at-c.left) < maxInFlight:
		c.late--
	case c.gone:
		c.Check(goneRule, false, "", "the server sent this message to a worker that has sent worker_disconnect")
	case c.woken:
		c.Check("danga.sleep.once", false, "", "the server sent another noop, but the worker has not sent worker_sleep "+
			"since the noop before")
	case c.announced:
		c.Check("danga.sleep.awake-undisturbed", false, "",
			"the server sent noop, but the worker has sent neither job_assign_req nor worker_sleep")
	default:
		c.Check("danga.application.only-answers", false, "",
			"the server sent a response for workers, but this connection has sent no worker request")
	}
}

// assigned checks job_assign_res: the worker must have requested a job, have announced the job's name, and have no
// unfinished job. The name is checked only if the server knew the latest announcement when it processed the request.
func (c *dangaConn) assigned(f *codec.Frame) {
	c.wakeups++
	name := c.d.Name(f.Get(codec.Queue))
	if len(c.asked) == 0 {
		rule := codec.RuleID("danga.assign.asked-for")
		if c.gone {
			rule = "danga.disconnect.no-more"
		}
		c.Check(rule, false, "", "the server assigned a job, but the worker has not asked for one")
		c.has = true // the worker has received the job, even if no request was captured
		return
	}
	c.Pass("danga.assign.asked-for")
	seq := c.asked[0]
	c.asked = after(c.asked, 1)
	c.sleeps = since(c.sleeps, seq)
	added, able := c.names[name]
	_, was := c.replaced[name]
	known := c.since < seq // the names that the server knew when it processed the request are known
	switch {
	case c.gone && known:
		c.Check("danga.disconnect.no-more", false, "",
			"the server sent this message to a worker that has sent worker_disconnect")
	case !c.announced:
		c.Check("danga.connect.needed", false, "Job name",
			"the server assigned a job, but the worker has announced no job names with worker_connect")
	case known && (!able || added > seq):
		rule := codec.RuleID("danga.connect.capabilities")
		if was {
			rule = "danga.connect.replaces"
		}
		c.Check(rule, false, "Job name", "the server assigned a job with the name %q, which the worker has not announced "+
			"with worker_connect", name)
	default:
		if known {
			c.Pass("danga.connect.capabilities")
			if len(c.replaced) > 0 {
				c.Pass("danga.connect.replaces")
			}
		}
		if !c.mixed && !c.Check("danga.worker.one-task", !c.has, "",
			"the server assigned a job, but the worker has not finished the job that it already has") {
			c.mixed = true
		}
	}
	c.has = true
}

// reports checks a message of a worker about its job. Unless every message is captured before it is forwarded, the
// message may be captured before the assignment of the job.
func (c *dangaConn) reports(rule codec.RuleID) {
	c.mixed = c.mixed || !c.has && len(c.asked) > 0 && !c.d.PeerChecks
	if c.has || !c.mixed {
		c.Check(rule, c.has, "", "the worker sent this message, but the server has assigned it no job")
	}
}

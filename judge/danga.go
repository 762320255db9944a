package judge

import (
	"jobwire/codec"
	protocol "jobwire/codec/danga"
)

// dangaCourt judges the Danga draft. Most of its packets name no job, so that little is to be
// said across connections.
type dangaCourt struct {
	*Judge
	handles map[string]creation
}

// creation is a request for a job.
type creation struct {
	name, key string
	kind      byte
}

// dangaConn is what is known of a connection.
type dangaConn struct {
	created  []creation // that wait for their answer
	waits    int        // jobs whose end is to be streamed
	made     [3]bool    // jobs of this type were created
	statuses int        // questions that wait
	results  int

	seq       int
	announced bool           // it has said what it can do
	names     map[string]int // since which message
	replaced  map[string]int // the list before
	before    int            // when names were replaced
	gone      bool           // it has said goodbye
	asked     []int          // seq of requests for a job
	asks      int            // all of these requests
	came      int            // noops and jobs: each may be taken for the answer to one of them
	sleeps    []int          // seq of each worker_sleep that it may still be woken from
	woken     bool           // since it slept
	has       bool           // a job
	mixed     bool           // it was given one too many
}

func newDanga(j *Judge) court { return &dangaCourt{Judge: j, handles: map[string]creation{}} }

func (d *dangaCourt) join(c *conn) { c.dg = &dangaConn{} }
func (d *dangaCourt) forget()      { clear(d.handles) }

func (d *dangaCourt) leave(*conn, codec.Side, bool) {}

func (d *dangaCourt) broken(c *conn, f *codec.Frame, _ codec.RuleID) { c.lose() }

func (d *dangaCourt) hear(c *conn, f *codec.Frame) {
	if f.From == codec.Peer {
		c.dg.seq++
	}
	if do := dangaDoes[f.Type][f.From]; do != nil {
		do(d, c, f)
	}
}

var dangaDoes = on(protocol.Protocol, map[string]func(*dangaCourt, *conn, *codec.Frame){
	"job_create_req":        (*dangaCourt).creates,
	"job_status_req":        func(d *dangaCourt, c *conn, _ *codec.Frame) { d.oneAtATime(c); c.dg.statuses++ },
	"job_complete_req":      func(d *dangaCourt, c *conn, _ *codec.Frame) { d.oneAtATime(c); c.dg.results++ },
	"worker_connect":        (*dangaCourt).connects,
	"worker_disconnect":     (*dangaCourt).disconnects,
	"worker_sleep":          (*dangaCourt).sleeps,
	"job_assign_req":        func(_ *dangaCourt, c *conn, _ *codec.Frame) { c.dg.asks++; await(c, &c.dg.asked, c.dg.seq) },
	"job_status_announce":   (*dangaCourt).announces,
	"job_complete_announce": (*dangaCourt).finishes,
}, map[string]func(*dangaCourt, *conn, *codec.Frame){
	"noop":             (*dangaCourt).noop,
	"job_create_res":   (*dangaCourt).created,
	"job_assign_res":   (*dangaCourt).assigns,
	"job_status_res":   (*dangaCourt).status,
	"job_complete_res": (*dangaCourt).result,
})

// oneAtATime judges a request of an application that may wait for a job.
func (d *dangaCourt) oneAtATime(c *conn) {
	waits := c.dg.waits
	for _, p := range c.dg.created {
		if p.kind == protocol.SyncWait {
			waits++
		}
	}
	if waits > 0 {
		d.accuse(c, "danga.sync.one-at-a-time", "", "the application waits for a job")
		c.lose() // it asked for trouble: whose answer is whose
	}
}

func (d *dangaCourt) creates(c *conn, f *codec.Frame) {
	p := creation{string(f.Arg(0)), string(f.Arg(1)), 0}
	if k := f.Arg(3); len(k) == 1 {
		p.kind = k[0]
	}
	if p.kind == protocol.SyncWait {
		d.oneAtATime(c)
	}
	c.dg.made[min(p.kind, protocol.AsyncThrow)] = true
	await(c, &c.dg.created, p)
}

func (d *dangaCourt) created(c *conn, f *codec.Frame) {
	if len(c.dg.created) == 0 {
		d.accuse(c, "danga.create.answered", "", "no job_create_req waits for this")
		return
	}
	p := c.dg.created[0]
	c.dg.created = c.dg.created[1:]
	if p.kind == protocol.SyncWait {
		c.dg.waits++
	}
	handle := string(f.Arg(0))
	if p.kind != protocol.Async {
		return
	}
	if handle == "" {
		d.accuse(c, "danga.async.handle", "", "a job of type 1 without a handle")
		return
	}
	old, twice := d.handles[handle]
	switch {
	case !twice:
	case old.name == p.name && old.key == p.key && p.key == "":
		d.accuse(c, "danga.dup.empty-off", "Job handle", "another job without a duplicate key has this handle")
	case old.name != p.name && old.key == p.key && p.key != "":
		d.accuse(c, "danga.dup.per-name", "Job handle", "it is a job %q already", old.name)
	case old != p:
		d.accuse(c, "danga.async.handles-distinct", "Job handle", "it is a job %q with key %q already", old.name, old.key)
	}
	if len(d.handles) >= maxJobs {
		clear(d.handles)
	}
	d.handles[handle] = p
}

// unasked judges what nobody has asked for.
func (d *dangaCourt) unasked(c *conn) {
	rule := codec.RuleID("danga.application.only-answers")
	switch {
	case len(c.dg.created) > 0 && c.dg.created[0].kind == protocol.SyncWait:
		rule = "danga.create.answered-first"
	case c.dg.made[protocol.Async] && !c.dg.made[protocol.AsyncThrow]:
		rule = "danga.async.not-streamed"
	case c.dg.made[protocol.AsyncThrow] && !c.dg.made[protocol.Async]:
		rule = "danga.throwaway.silent"
	}
	d.accuse(c, rule, "", "the application has not asked, and waits for no job")
}

func (d *dangaCourt) status(c *conn, _ *codec.Frame) {
	switch {
	case c.dg.statuses > 0:
		c.dg.statuses--
	case c.dg.waits == 0:
		d.unasked(c)
	}
}

func (d *dangaCourt) result(c *conn, f *codec.Frame) {
	switch {
	case c.dg.results > 0:
		c.dg.results--
	case c.dg.waits > 0:
		if c.dg.waits--; string(f.Arg(0)) == "\x00\x00\x00\x00" {
			d.accuse(c, "danga.complete.elapsed", "Job status", "the job of an application that waits is told as incomplete")
		}
	default:
		d.unasked(c)
	}
}

// Workers.

func (d *dangaCourt) connects(c *conn, f *codec.Frame) {
	c.dg.announced, c.dg.gone, c.dg.before = true, false, c.dg.seq
	c.dg.replaced = c.dg.names
	c.dg.names = map[string]int{}
	for i := f.Head; i < len(f.Spans); i++ {
		c.dg.names[string(f.Value(i))] = c.dg.seq
	}
}

func (d *dangaCourt) disconnects(c *conn, _ *codec.Frame) {
	c.dg.gone, c.dg.has, c.dg.sleeps = true, false, nil
	c.dg.before = c.dg.seq
}

// sleeps judges a worker that says that it sleeps. What has answered it is heard here before it is heard there,
// so that what has not come was not waited for. A worker cannot tell which noop is an answer: there must be
// fewer of them than questions.
func (d *dangaCourt) sleeps(c *conn, _ *codec.Frame) {
	if d.Conduct && c.dg.came < c.dg.asks {
		d.accuse(c, "danga.sleep.hears-first", "", "it has asked for a job, and the answer has not come")
	}
	await(c, &c.dg.sleeps, c.dg.seq)
}

func (d *dangaCourt) noop(c *conn, _ *codec.Frame) {
	c.dg.came++
	switch {
	case len(c.dg.sleeps) > 0: // where it may be the answer to a request, that goes on waiting
		c.dg.sleeps, c.dg.woken = c.dg.sleeps[1:], true
	case len(c.dg.asked) > 0:
		c.dg.asked = c.dg.asked[1:]
	case c.dg.gone:
		d.accuse(c, "danga.disconnect.no-more", "", "the worker has said goodbye")
	case c.dg.woken:
		d.accuse(c, "danga.sleep.once", "", "the worker was woken before, and has not slept since")
	case c.dg.announced:
		d.accuse(c, "danga.sleep.awake-undisturbed", "", "the worker has neither asked nor said that it sleeps")
	default:
		d.accuse(c, "danga.application.only-answers", "", "the connection is no worker's")
	}
}

func (d *dangaCourt) assigns(c *conn, f *codec.Frame) {
	c.dg.came++
	name := string(f.Arg(0))
	if len(c.dg.asked) == 0 {
		rule := codec.RuleID("danga.assign.asked-for")
		if c.dg.gone {
			rule = "danga.disconnect.no-more"
		}
		d.accuse(c, rule, "", "the worker has not asked for a job")
		c.dg.has = true // all the same
		return
	}
	seq := c.dg.asked[0]
	c.dg.asked = c.dg.asked[1:]
	c.dg.sleeps = behind(c.dg.sleeps, seq)
	since, able := c.dg.names[name]
	switch {
	case c.dg.gone && c.dg.before < seq:
		d.accuse(c, "danga.disconnect.no-more", "", "the worker has said goodbye")
	case !c.dg.announced:
		d.accuse(c, "danga.connect.needed", "Job name", "the worker has announced nothing")
	case !able && c.dg.before < seq || able && since > seq && c.dg.before < seq:
		rule := codec.RuleID("danga.connect.capabilities")
		if _, was := c.dg.replaced[name]; was {
			rule = "danga.connect.replaces"
		}
		d.accuse(c, rule, "Job name", "the worker has not announced %q", name)
	case c.dg.has && !c.dg.mixed:
		d.accuse(c, "danga.worker.one-task", "", "the worker has a job")
		c.dg.mixed = true
	}
	c.dg.has = true
}

// idle reports whether a worker surely has no job. One that has asked for it may speak of it
// before it is heard to be assigned, unless all is heard here first.
func (d *dangaCourt) idle(c *dangaConn) bool {
	c.mixed = c.mixed || !c.has && len(c.asked) > 0 && !d.Conduct
	return !c.has && !c.mixed
}

func (d *dangaCourt) announces(c *conn, _ *codec.Frame) {
	if d.idle(c.dg) {
		d.accuse(c, "danga.status.no-job", "", "the worker has no job")
	}
}

func (d *dangaCourt) finishes(c *conn, _ *codec.Frame) {
	if d.idle(c.dg) {
		d.accuse(c, "danga.complete.no-job", "", "the worker has no job")
	}
	c.dg.has = false
}

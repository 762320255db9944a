package judge

import (
	"slices"

	"jobwire/codec"
)

// Requests of workers.

func (g *gearmanCourt) can(c *conn, f *codec.Frame) {
	c.gm.conduct.announced = true
	name := string(f.Arg(0))
	if len(f.Type.Fields) > 1 && string(f.Arg(1)) != "0" {
		g.timed = true
	}
	a := c.gm.able[name]
	if a == nil {
		if len(c.gm.able) >= maxPerConn {
			c.lose()
			return
		}
		a = &ability{}
		c.gm.able[name] = a
	}
	a.added = c.gm.seq
}

func (g *gearmanCourt) cannot(c *conn, f *codec.Frame) {
	if a := c.gm.able[string(f.Arg(0))]; a != nil {
		a.removed = c.gm.seq
	}
	g.yields(c)
}

func (g *gearmanCourt) resets(c *conn, _ *codec.Frame) {
	c.gm.reset = c.gm.seq
	g.yields(c)
}

// yields leaves open whether a worker that cannot do a function any more keeps its jobs: some
// servers take them away.
func (g *gearmanCourt) yields(c *conn) {
	c.gm.yielded = c.gm.seq
	for h := range c.gm.holds {
		g.loosens(c, h)
	}
}

// loosens leaves it open of one job.
func (g *gearmanCourt) loosens(c *conn, handle string) {
	if job := g.jobs[handle]; job != nil && job.holder == c {
		job.holder, job.assigns = nil, job.assigns+1
	}
	held := c.gm.holds[handle]
	held.firm = false
	c.gm.holds[handle] = held
}

func (g *gearmanCourt) grabs(c *conn, f *codec.Frame) {
	g.asks(c)
	await(c, &c.gm.grabs, grab{f.Type.Name, c.gm.seq})
}

// Replies to them.

func (g *gearmanCourt) wakes(c *conn, _ *codec.Frame) {
	switch {
	case !c.gm.worker:
		g.accuse(c, "gearman.role.responses", "", "the connection is no worker's")
	case len(c.gm.sleeps) == 0:
		g.accuse(c, "gearman.worker.awake-undisturbed", "", "the worker has not said that it sleeps")
	default:
		c.gm.sleeps, c.gm.conduct.woken = c.gm.sleeps[1:], true
	}
}

// replies are what may answer a grab.
var replies = map[string][]string{
	"GRAB_JOB":      {"NO_JOB", "JOB_ASSIGN"},
	"GRAB_JOB_UNIQ": {"NO_JOB", "JOB_ASSIGN_UNIQ"},
	"GRAB_JOB_ALL":  {"NO_JOB", "JOB_ASSIGN_UNIQ", "JOB_ASSIGN_ALL"},
}

// dueRules are the rules of replies to grabs.
var dueRules = map[string]codec.RuleID{
	"GRAB_JOB": "gearman.grab.assign", "GRAB_JOB_UNIQ": "gearman.grab.assign-unique", "GRAB_JOB_ALL": "gearman.grab.all",
}

func (g *gearmanCourt) answersGrab(c *conn, f *codec.Frame) { g.answered(c, f) }

// answered finds the grab that a message answers.
func (g *gearmanCourt) answered(c *conn, f *codec.Frame) (grab, bool) {
	t := f.Type.Name
	switch {
	case !c.gm.worker:
		g.accuse(c, "gearman.role.responses", "", "the connection is no worker's")
		return grab{}, false
	case len(c.gm.grabs) == 0 && t == "NO_JOB":
		g.accuse(c, "gearman.grab.no-job", "", "nothing was asked that this could answer")
		return grab{}, false
	case len(c.gm.grabs) == 0:
		g.accuse(c, "gearman.grab.assign", "", "the worker has not asked for a job")
		return grab{}, false
	}
	first := c.gm.grabs[0]
	got, ok := take(&c.gm.grabs, &c.gm.slack, func(p grab) bool { return slices.Contains(replies[p.typ], t) })
	if !ok {
		g.accuse(c, dueRules[first.typ], "", "%s is no answer to %s", t, first.typ)
		c.gm.grabs = c.gm.grabs[1:]
		return first, false
	}
	c.gm.sleeps = behind(c.gm.sleeps, got.seq)
	return got, true
}

func (g *gearmanCourt) assigns(c *conn, f *codec.Frame) {
	const field = "Job handle"
	got, ok := g.answered(c, f)
	handle, function, workload := string(f.Arg(0)), string(f.Arg(1)), g.sum(f.Arg(len(f.Type.Fields)-1))
	if ok {
		g.mayDo(c, function, got.seq)
	}
	job, held := g.job(handle), c.gm.holds[handle]
	old := job.holder
	switch {
	case job.void:
	case old == c && held.firm:
		g.accuse(c, "gearman.grab.once", field, "this worker has the job already")
	case old != nil && !c.over && !g.timed:
		g.suspect(c, "gearman.grab.once", field, func(p *conn) bool { return p.gm.holds[handle].firm }, []*conn{old, c}, "connection %d has the job", old.id)
	case job.results == 1 && !c.over && !g.timed:
		g.suspect(c, "gearman.work.final", field, func(p *conn) bool { return p.gm.holds[handle].firm }, []*conn{c}, "it has a result already, %s", job.result)
	}
	switch {
	case job.void:
	case job.known && !job.joined && job.as.unique == "":
		if job.as.function != function || job.as.workload != workload {
			g.mismatchAssigned(c, job, function)
		}
	case job.seen && job.function != function:
		g.accuse(c, "gearman.grab.assign", "Function", "it was a job of function %q before", job.function)
	}
	if len(f.Type.Fields) > 3 && job.known && !job.void && job.as.unique != "-" && job.as.unique != string(f.Arg(2)) && !job.as.among {
		g.accuse(c, "gearman.grab.assign-unique", "Unique ID", "it was submitted with %q", job.as.unique)
	}
	job.seen, job.function, job.workload = true, function, workload
	if old != nil && c.over { // captured late: it has gone before the other one got it
		return
	}
	job.assigns++
	job.holder, job.assigned = c, g.at
	if len(c.gm.holds) >= maxPerConn {
		c.lose()
		return
	}
	held.firm, held.times = held.times == 0, held.times+1
	c.gm.holds[handle] = held
	if ok && got.seq < c.gm.yielded { // it was on its way
		g.loosens(c, handle)
	}
}

// mayDo judges whether a worker could do a function when it asked.
func (g *gearmanCourt) mayDo(c *conn, function string, seq int) {
	a := c.gm.able[function]
	switch {
	case a == nil:
		g.accuse(c, "gearman.worker.can-do", "Function", "the worker has not said that it can do %q", function)
	case a.added > seq: // it came and went
	case c.gm.reset > a.added && c.gm.reset < seq:
		g.accuse(c, "gearman.worker.reset", "Function", "the worker has reset its abilities")
	case a.removed > a.added && a.removed < seq:
		g.accuse(c, "gearman.worker.cant-do", "Function", "the worker has said that it can not do %q any more", function)
	}
}

func (g *gearmanCourt) mismatchAssigned(c *conn, job *gearmanJob, function string) {
	switch {
	case job.as.among:
		g.accuse(c, "gearman.submit.order", "Job handle", "its handle was given to another submission")
	case job.as.function != function:
		g.accuse(c, "gearman.grab.assign", "Function", "it was submitted for %q", job.as.function)
	default:
		g.accuse(c, "gearman.submit.opaque-workload", "Workload", "it was submitted with another one")
	}
}

// mismatch is the same where the assignment came first.
func (g *gearmanCourt) mismatch(c *conn, job *gearmanJob, s *submission) {
	rule := codec.RuleID("gearman.submit.opaque-workload")
	if s.among {
		rule = "gearman.submit.order"
	} else if job.function != s.function {
		rule = "gearman.grab.assign"
	}
	g.accuse(c, rule, "Job handle", "a worker was assigned another job under it")
}

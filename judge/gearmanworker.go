package judge

import (
	"slices"

	"jobwire/codec"
)

// gearmanWorker is what is known about a worker. The keys of its maps are hashes of names.
type gearmanWorker struct {
	registered  bool      // the worker has registered a function
	asked       bool      // the worker has requested a job
	woken       bool      // the worker was woken, and has not requested a job since
	ignored     int       // number of consecutive PRE_SLEEPs after which the worker was woken and did not request a job
	requests    []request // pending requests for a job
	unasked     int       // number of replies for workers that the server sent without a request
	functions   map[uint64]*ability
	reset       int   // seq of the last RESET_ABILITIES
	removed     int   // seq of the last CANT_DO
	sleeps      []int // seq of each PRE_SLEEP after which no NOOP was captured yet
	assignments map[uint64]assignment
	done        recent // handles of jobs that the worker has ended
}

// request is a pending request of a worker for a job.
type request struct {
	typ *codec.Type
	seq int
}

// ability contains the seq of the last messages with which a worker registered and removed a function.
type ability struct{ added, removed int }

// assignment is a job that was assigned to a worker.
type assignment struct {
	firm  bool // the worker certainly still has the job, because the server has no reason to take it away
	times int  // number of assignments to this worker; the server may assign a job again after taking it away
}

// Requests of workers.

// registers records CAN_DO or CAN_DO_TIMEOUT. Once a worker sets a time limit, the server may take jobs away from
// workers, which weakens other checks.
func (c *gearmanConn) registers(f *codec.Frame) {
	c.registered = true
	name := c.g.Hash(f.Get(codec.Queue))
	c.g.timed = c.g.timed || f.Type.Has(codec.TimeLimit) && string(f.Get(codec.TimeLimit)) != "0"
	a := c.functions[name]
	if a == nil {
		a = &ability{}
		c.functions[name] = a
	}
	a.added = c.seq
}

// unregisters handles CANT_DO and RESET_ABILITIES. Afterwards it is unknown whether the worker still has its jobs,
// because some servers take away the jobs of a function that the worker removes.
func (c *gearmanConn) unregisters(f *codec.Frame) {
	if f.Type.Has(codec.Queue) {
		c.removed = c.seq
		if a := c.functions[c.g.Hash(f.Get(codec.Queue))]; a != nil {
			a.removed = c.seq
		}
	} else {
		c.reset = c.seq
	}
	for h := range c.assignments {
		c.markUncertain(h)
	}
}

// markUncertain records that it is unknown whether a worker still has a job.
func (c *gearmanConn) markUncertain(handle uint64) {
	if job := c.g.jobs[handle]; job != nil && job.holder == c {
		job.holder, job.assigns = nil, job.assigns+1
	}
	a := c.assignments[handle]
	a.firm = false
	c.assignments[handle] = a
}

// ask records a GRAB_JOB* request. With PeerChecks it checks that the worker has registered a function before.
func (c *gearmanConn) ask(f *codec.Frame) {
	if c.g.PeerChecks {
		c.Check("gearman.worker.announces-first", c.registered, "",
			"the worker asked for a job, but it has registered no function")
		if c.woken {
			c.Pass("gearman.worker.asks-when-woken")
		}
	}
	c.asked, c.woken, c.ignored = true, false, 0
	c.requests = append(c.requests, request{f.Type, c.seq})
}

// sleep checks PRE_SLEEP. A reply is captured before the worker receives it, so the worker has not
// received a reply that was not captured. If the server sent a reply without a request, the worker
// may have used it as the reply to a request.
func (c *gearmanConn) sleep() {
	c.sleeps = append(c.sleeps, c.seq)
	if !c.g.PeerChecks {
		return
	}
	switch {
	case !c.Check("gearman.worker.hears-before-sleep", len(c.requests) <= c.skipped+c.unasked, "",
		"the worker sent this message before it received the reply to its request for a job"):
	case !c.Check("gearman.worker.asks-before-sleep", c.asked, "",
		"the worker sent PRE_SLEEP, but it has not asked for a job before"):
	case c.woken:
		// The worker may have sent its first PRE_SLEEP before it received NOOP.
		if c.ignored++; c.ignored > 1 {
			c.Check("gearman.worker.asks-when-woken", false, "",
				"the server woke the worker with NOOP %d times, but the worker has not asked for a job", c.ignored)
		}
	}
	c.woken = false
}

// reports checks a message of a worker about a job.
func (c *gearmanConn) reports(f *codec.Frame) {
	const uses, final = "gearman.worker.uses-the-handle", "gearman.work.final"
	handle, does := c.g.Hash(f.Get(codec.JobID)), f.Type.Does
	a, has := c.assignments[handle]
	if !has {
		switch {
		case c.done.has(handle) && ends(does):
			c.Check(final, false, "Job handle", "the worker sent a result, but it has already finished the job")
		case !c.done.forgot:
			c.Check(uses, false, "Job handle", "the worker sent this message about a job that the server has not assigned to it")
		}
		return
	}
	c.Pass(uses)
	job := c.g.jobs[handle]
	if !ends(does) {
		if job != nil && job.assigns == 1 && len(job.reports) < maxReports {
			job.reports = append(job.reports, report{f.Type, c.g.rest(f)})
		} else if job != nil {
			job.more = true
		}
		return
	}
	c.Pass(final)
	if a.times > 1 {
		c.assignments[handle] = assignment{times: a.times - 1}
	} else {
		delete(c.assignments, handle)
	}
	c.done.add(handle)
	if job == nil {
		return
	}
	if job.holder == c {
		job.holder = nil
	}
	if job.results++; !a.firm || !c.Complete() { // the server may ignore this result, so do not rely on it
		job.results++
	}
	job.result, job.data, job.resultAt = f.Type, c.g.rest(f), c.g.at
}

// Replies to workers.

func (c *gearmanConn) isWorker() bool {
	return c.Check("gearman.role.responses", c.worker, "",
		"the server sent a response for workers, but this connection has sent no worker request")
}

// wakes checks NOOP, which the server may send only to a worker that has sent PRE_SLEEP, once for each PRE_SLEEP.
func (c *gearmanConn) wakes() {
	if c.isWorker() && c.Check("gearman.worker.awake-undisturbed", len(c.sleeps) > 0, "",
		"the server sent NOOP, but the worker has not sent PRE_SLEEP") {
		c.sleeps, c.woken = after(c.sleeps, 1), true
	}
}

// replyRule returns the rule about the assignment that the server sends in reply to a request of the type.
func replyRule(t *codec.Type) codec.RuleID {
	switch t.Name {
	case "GRAB_JOB_UNIQ":
		return "gearman.grab.assign-unique"
	case "GRAB_JOB_ALL":
		return "gearman.grab.all"
	}
	return "gearman.grab.assign"
}

// answers returns the pending request for a job to which a message is the reply, and false if there is none.
func (c *gearmanConn) answers(f *codec.Frame) (request, bool) {
	t, waits := f.Type, len(c.requests) > 0
	switch {
	case !c.isWorker():
		return request{}, false
	case t.Does == codec.NoJob && !c.Check("gearman.grab.no-job", waits, "",
		"the server sent NO_JOB, but the worker has not asked for a job"):
		c.unasked++
		return request{}, false
	case t.Does == codec.Assign && !c.Check("gearman.grab.assign", waits, "",
		"the server assigned a job, but the worker has not asked for one"):
		c.unasked++
		return request{}, false
	}
	first := c.requests[0]
	got, ok := take(&c.requests, &c.skipped, func(r request) bool { return slices.Contains(r.typ.Answers, t) })
	if !ok {
		c.Check(replyRule(first.typ), false, "", "the server sent %s in reply to %s", t.Name, first.typ.Name)
		c.requests = after(c.requests, 1)
		return first, false
	}
	c.sleeps = since(c.sleeps, got.seq)
	if t.Does == codec.Assign {
		c.Pass(replyRule(got.typ))
		return got, true
	}
	if c.reset > 0 && c.reset < got.seq {
		c.Pass("gearman.worker.reset")
	}
	if c.removed > 0 && c.removed < got.seq {
		c.Pass("gearman.worker.cant-do")
	}
	return got, true
}

// mayDo checks that the worker could do the function when it sent the request with the given seq, and returns false if
// it could not.
func (c *gearmanConn) mayDo(function string, a *ability, seq int) bool {
	if a == nil {
		return c.Check("gearman.worker.can-do", false, "Function",
			"the server assigned a job of function %q, which the worker has not registered", function)
	}
	c.Pass("gearman.worker.can-do")
	switch {
	case a.added > seq: // the worker registered the function again after the request, so its earlier state is unknown
	case c.reset > 0 && c.reset < seq && !c.Check("gearman.worker.reset", c.reset < a.added, "Function",
		"the server assigned a job, but after RESET_ABILITIES the worker has registered no function"):
		return false
	case a.removed > 0 && a.removed < seq:
		return c.Check("gearman.worker.cant-do", a.removed < a.added, "Function",
			"the server assigned a job of function %q, which the worker has removed with CANT_DO", function)
	}
	return true
}

// checkUnassigned checks that a job that the server assigns is neither assigned to a worker nor finished.
func (c *gearmanConn) checkUnassigned(job *gearmanJob) {
	const field = "Job handle"
	old := job.holder
	certain := !c.PeerClosed() && !c.g.timed // the server did not assign the job before, or take it away from its worker
	switch {
	case job.canceled:
	case old == c && c.assignments[job.id].firm:
		c.Check("gearman.grab.once", false, field, "the server assigned a job to this worker that is already assigned to it")
	case old != nil && certain:
		c.Defer("gearman.grab.once", field, certainlyAssigned(job.id), []*Conn{old.Conn, c.Conn},
			"the server assigned a job to this worker that is assigned to the worker on connection %d", old.ID)
	case job.results == 1 && certain:
		c.Defer("gearman.work.final", field, certainlyAssigned(job.id), []*Conn{c.Conn},
			"the server assigned a job for which a worker has already sent a result, %s", job.result.Name)
	case old == nil && job.results == 0:
		c.Pass("gearman.grab.once")
		c.Pass("gearman.work.final")
	}
}

// checkSubmitted checks that the function and the workload of an assignment are those of the submission, or the
// function that of an earlier assignment if the submission is not known.
func (c *gearmanConn) checkSubmitted(job *gearmanJob, function string, workload uint64) {
	switch as := &job.as; {
	case job.canceled:
	case job.known && !job.joined && as.unique == "" && as.among:
		c.Check("gearman.submit.order", as.function == function && as.workload == workload, "Job handle",
			"the server replied to another SUBMIT_JOB* request with the handle of this job")
	case job.known && !job.joined && as.unique == "":
		if as.function != function {
			c.Check("gearman.grab.assign", false, "Function",
				"expected the function %q, because the client submitted the job for it", as.function)
		} else {
			c.Pass("gearman.grab.assign")
			c.Check("gearman.submit.opaque-workload", as.workload == workload, "Workload",
				"expected the workload that the client submitted, got another workload")
		}
	case job.assigned && job.function == function:
		c.Pass("gearman.grab.assign")
	case job.assigned:
		c.Check("gearman.grab.assign", false, "Function",
			"expected the function %q, because the server assigned the job with this function before", job.function)
	}
}

// assigned checks JOB_ASSIGN, JOB_ASSIGN_UNIQ and JOB_ASSIGN_ALL, and records which worker has the job: the worker must
// have requested a job and registered the function, no other worker may have the job, and its function, workload and
// unique ID must be those of the submission.
func (c *gearmanConn) assigned(f *codec.Frame) {
	g := c.g
	got, ok := c.answers(f)
	name := f.Get(codec.Queue)
	function, workload := g.function(name), g.Hash(f.Get(codec.Payload))
	able := !ok || c.mayDo(function, c.functions[g.Hash(name)], got.seq)
	job := g.job(f.Get(codec.JobID))
	handle, old := job.id, job.holder
	c.checkUnassigned(job)
	if able { // otherwise the function may be what is wrong
		c.checkSubmitted(job, function, workload)
	}
	if f.Type.Has(codec.UniqueID) && job.known && !job.canceled && job.as.unique != "-" && !job.as.among {
		if job.as.id == g.Hash(f.Get(codec.UniqueID)) {
			c.Pass("gearman.grab.assign-unique")
		} else {
			c.Check("gearman.grab.assign-unique", false, "Unique ID",
				"expected the unique ID %q, because the client submitted the job with it", job.as.unique)
		}
	}
	job.assigned, job.function, job.workload = true, function, workload
	// this assignment was captured late: another worker received the job after this worker had disconnected
	if old != nil && c.PeerClosed() {
		return
	}
	job.assigns++
	job.holder, job.since = c, g.at
	own := c.assignments[handle]
	own.firm, own.times = own.times == 0, own.times+1
	c.assignments[handle] = own
	// the server may have sent the assignment before it received CANT_DO or RESET_ABILITIES
	if ok && got.seq < max(c.reset, c.removed) {
		c.markUncertain(handle)
	}
}

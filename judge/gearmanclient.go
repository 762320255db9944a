package judge

import (
	"slices"

	"jobwire/codec"
)

// gearmanClient is what is known about a client. The keys of its map are hashes of handles.
type gearmanClient struct {
	submitted  []submission
	echoes     []uint64
	options    []string
	queries    []query // pending requests for the status of a job
	exceptions bool    // the client has requested exceptions
	granted    int64   // time at which the server confirmed exceptions; 0: not yet
	jobs       map[uint64]*listener
	finished   recent // handles of jobs whose end the client has received
}

type query struct {
	handle uint64
	at     int64
}

// listener contains the submissions of one client that became the same job.
type listener struct {
	waits     int         // number of submissions for whose end the client waits
	detached  *codec.Type // type of a background submission, or nil
	ends      int
	since     int64  // time of the first submission
	next      int    // index in gearmanJob.reports of the next report for the client
	passed    [2]int // numbers of WORK_DATA and WORK_WARNING that the client has received
	exception bool   // the client has received an exception
}

// Replies to clients.

// refused records an ERROR, which may be the reply to any pending request. If only requests for options are pending, it
// is the reply to one of them.
func (c *gearmanConn) refused() {
	c.skipped++
	if n := len(c.options); len(c.submitted)+len(c.requests)+len(c.echoes)+len(c.queries) == 0 && c.skipped <= n &&
		c.options[c.skipped-1] != "exceptions" {
		c.Pass("gearman.option.unknown")
	}
}

// optionSet checks OPTION_RES: the client must have requested the option, and the option must be "exceptions", the only
// one in the specification.
func (c *gearmanConn) optionSet(f *codec.Frame) {
	name := c.g.Name(f.Get(codec.OptionName))
	_, ok := take(&c.options, &c.skipped, func(s string) bool { return s == name })
	switch {
	case !c.Check("gearman.option.exceptions", ok, "Option",
		"the server sent OPTION_RES, but no OPTION_REQ for this option waits for a reply"):
	case name != "exceptions":
		c.Check("gearman.option.unknown", false, "Option", "expected ERROR, because %q is not an option", name)
	case c.granted == 0:
		c.granted = c.g.at
	}
}

// status checks STATUS_RES against what is known about the job: a job that finished before the request must not be
// known to the server, and a job that a worker has must be running.
func (c *gearmanConn) status(f *codec.Frame) {
	handle, known, running := c.g.Hash(f.Get(codec.JobID)), f.Number(codec.Known) == 1, f.Number(codec.Running) == 1
	q, ok := take(&c.queries, &c.skipped, func(q query) bool { return q.handle == handle })
	if !c.Check("gearman.status.answered", ok, "Job handle",
		"the server sent STATUS_RES, but no GET_STATUS with this handle waits for a reply") {
		return
	}
	job := c.g.jobs[handle]
	if !known && (running || job == nil) {
		c.Check("gearman.status.unknown", !running, "Known",
			"the server reported the job as running and as not known, which is a contradiction")
	}
	if job == nil || job.canceled {
		return
	}
	switch busy := job.holder != nil && job.since < q.at && !c.g.timed; {
	case job.endedAt != 0 && job.endedAt < q.at &&
		!c.Check("gearman.status.finished", !known, "Known",
			"the server reported the job as known, but the job had finished before the client sent this GET_STATUS"):
	case busy && running:
		c.Pass("gearman.status.running")
	case busy:
		c.deferFor(job, "gearman.status.running", "Running",
			"the server reported the job as not running, but the job is assigned to the worker on connection %d", job.holder.ID)
	}
}

// deferFor defers a violation until the worker that has the job sends its next message.
func (c *gearmanConn) deferFor(job *gearmanJob, rule codec.RuleID, field, format string, args ...any) {
	c.Defer(rule, field, certainlyAssigned(job.id), []*Conn{job.holder.Conn}, format, args...)
}

// certainlyAssigned returns a function that reports whether a worker certainly still has a job.
func certainlyAssigned(handle uint64) func(Conversation) bool {
	return func(p Conversation) bool { return p.(*gearmanConn).assignments[handle].firm }
}

// created checks JOB_CREATED, which belongs to the oldest submission without a reply, and records the job or adds the
// client to an existing job. It stops checking the connection if an ERROR may instead be the reply to that submission.
func (c *gearmanConn) created(f *codec.Frame) {
	if len(c.submitted) == 0 {
		rule := codec.RuleID("gearman.submit.created")
		if !c.client {
			rule = "gearman.role.responses"
		}
		c.Check(rule, false, "", "the server sent JOB_CREATED, but no SUBMIT_JOB* request waits for a reply")
		return
	}
	c.Pass("gearman.role.responses")
	c.Pass("gearman.submit.created")
	s := c.submitted[0]
	unsure := c.skipped > 0 && (s.among || len(c.submitted) > 1)
	c.submitted = after(c.submitted, 1)
	if unsure || !c.Complete() {
		c.Stop() // it is unknown to which request this reply belongs
		return
	}
	job := c.g.job(f.Get(codec.JobID))
	l := c.jobs[job.id]
	if l == nil {
		l = c.g.newListener()
		c.jobs[job.id] = l
	}
	if s.typ.Background {
		l.detached = s.typ
		c.Pass(detachedRule(s.typ))
		c.trim()
	} else {
		l.waits++
	}
	if job.canceled {
		return
	}
	if job.known {
		c.createdAgain(job, &s)
		job.joined = true
		return
	}
	job.as, job.known = s, true
	if job.assigned && s.unique == "" {
		same := job.function == s.function && job.workload == s.workload
		rule := codec.RuleID("gearman.submit.opaque-workload")
		if s.among {
			rule = "gearman.submit.order"
		} else if job.function != s.function {
			rule = "gearman.grab.assign"
		}
		c.Check(rule, same, "Job handle", "the server sent this handle to the client, but assigned another job with the "+
			"same handle to a worker")
	}
	c.createdNew(job, &s)
}

// trim removes the background jobs of a connection if too many jobs are stored.
func (c *gearmanConn) trim() {
	if len(c.jobs) < maxNames/2 {
		return
	}
	for h, l := range c.jobs {
		if l.waits == 0 {
			delete(c.jobs, h)
			c.finished.forgot = true
		}
	}
}

// createdAgain checks a JOB_CREATED whose handle an earlier job already has.
func (c *gearmanConn) createdAgain(job *gearmanJob, s *submission) {
	const field = "Job handle"
	dash := s.unique == "-"
	switch {
	case job.as.function != s.function && job.as.unique == s.unique && s.unique != "":
		c.Check("gearman.submit.unique-per-function", false, field,
			"expected a new handle, got the handle of a job of another function, %q", job.as.function)
	case !c.Check("gearman.submit.handles-distinct", job.as.function == s.function, field,
		"expected a new handle, got the handle of a job of another function, %q", job.as.function):
	case s.unique == "" && job.as.unique == "":
		c.Check("gearman.submit.empty-unique", false, field,
			"expected a new handle, because the job has no unique ID, got the handle of another job without a unique ID")
	case !c.Check("gearman.submit.handles-distinct", s.unique == job.as.unique, field,
		"expected a new handle, got the handle of a job with another unique ID, %q", job.as.unique):
	case dash && !c.Check("gearman.submit.coalesce-workload", s.workload == job.as.workload, field,
		"expected a new handle, got the handle of a job with another workload"):
	case job.endedAt != 0 && job.endedAt < s.at:
		c.Check("gearman.submit.unique-reusable", false, field,
			"expected a new handle, got the handle of a job that has finished")
	case !dash && job.endedAt == 0:
		c.Pass("gearman.submit.coalesce")
	}
}

// createdNew checks a JOB_CREATED with a new handle against the last job with the same unique ID.
func (c *gearmanConn) createdNew(job *gearmanJob, s *submission) {
	g := c.g
	if g.called {
		c.Pass("gearman.submit.handles-distinct")
	}
	g.called = true
	old := g.unique[s.key]
	if len(g.unique) < 2*maxJobs {
		g.unique[s.key] = job
	}
	if g.Counts && s.unique != "" && s.unique != "-" {
		other := g.unique[s.id]
		if other != nil && other.as.function != s.function {
			c.Pass("gearman.submit.unique-per-function")
		}
		if len(g.unique) < 2*maxJobs {
			g.unique[s.id] = job
		}
	}
	switch {
	case old == nil || old == job || old.canceled:
	case s.unique == "":
		c.Pass("gearman.submit.empty-unique")
	case s.unique == "-":
		if s.workload != old.as.workload {
			c.Pass("gearman.submit.coalesce-workload")
		}
	case old.holder != nil && old.since < s.at && !g.timed:
		c.deferFor(old, "gearman.submit.coalesce", "Job handle", "expected the handle %s of the unfinished job "+
			"with the same unique ID, which is assigned to the worker on connection %d", string(old.handle), old.holder.ID)
	case old.endedAt != 0 && old.endedAt < s.at:
		c.Pass("gearman.submit.unique-reusable")
	}
}

// Messages about jobs.

// resultRules maps the effects of messages about jobs to the rules for forwarding them to clients.
var resultRules = [...]codec.RuleID{
	codec.Complete: "gearman.work.complete", codec.Fail: "gearman.work.fail", codec.Exception: "gearman.work.exception",
	codec.Data: "gearman.work.data", codec.Warning: "gearman.work.warning", codec.Status: "gearman.work.status",
}

// detachedRule returns the rule for background jobs of a submission type.
func detachedRule(t *codec.Type) codec.RuleID {
	switch {
	case t.Has(codec.StartTime):
		return "gearman.epoch.background"
	case t.Name == "SUBMIT_JOB_SCHED":
		return "gearman.sched.background"
	}
	return "gearman.submit.bg-detached"
}

// ends reports whether a message with the effect ends a job.
func ends(does codec.Effect) bool {
	return does == codec.Complete || does == codec.Fail || does == codec.Exception
}

// reported checks a message about a job that the server sends to a client.
func (c *gearmanConn) reported(f *codec.Frame) {
	const field = "Job handle"
	handle, does := c.g.Hash(f.Get(codec.JobID)), f.Type.Does
	l, job := c.jobs[handle], c.g.jobs[handle]
	switch {
	case !c.Check("gearman.role.responses", c.client, "",
		"the server sent a response for clients, but this connection has sent no client request"):
	case job != nil && job.canceled:
		return
	case l == nil && c.finished.has(handle):
		c.Check(resultRules[does], false, field, "the server sent this message after the client had received the result of "+
			"the job")
	case l == nil && c.finished.forgot:
	case !c.Check("gearman.submit.created-first", l != nil, field,
		"the server sent this message about a job before it sent the JOB_CREATED of the job"):
	case l.waits == 0:
		c.Check(detachedRule(l.detached), false, field,
			"the server sent this message about a background job to the client that submitted the job")
	default:
		c.Pass(resultRules[does])
		if does == codec.Exception {
			c.Check("gearman.work.exception-unasked", c.exceptions, "",
				"the server sent WORK_EXCEPTION to a client that has not set the option \"exceptions\"")
		}
	}
	if !ends(does) {
		if l != nil && l.waits > 0 {
			c.forwarded(l, f, job)
		}
		return
	}
	if job != nil {
		c.compare(f, job)
	}
	if l == nil {
		return
	}
	if l.waits > 0 && job != nil {
		c.missing(l, does, job)
	}
	l.exception = l.exception || does == codec.Exception
	if does != codec.Exception {
		if l.ends++; l.ends >= l.waits {
			delete(c.jobs, handle)
			c.g.spare = l
			c.finished.add(handle)
		}
	}
}

// compare checks whether the end of a job that a client receives matches the end that the worker has sent.
func (c *gearmanConn) compare(f *codec.Frame, job *gearmanJob) {
	does := f.Type.Does
	// without a result of a worker, WORK_FAIL may mean that an administrator canceled the job
	if does == codec.Complete || does == codec.Fail && job.results > 0 {
		defer func() {
			job.endedAt = c.g.at
			if g := c.g; !g.Counts && job.holder == nil && g.unique[job.as.key] == job {
				delete(g.unique, job.as.key) // createdNew would only count that this job has ended
			}
		}()
	}
	if c.g.timed || job.assigns != 1 {
		return
	}
	rule := resultRules[does]
	switch {
	case job.results == 0 && job.holder != nil && job.holder != c:
		c.deferFor(job, rule, "", "the server sent a result, but the job is assigned to the worker on connection %d, which "+
			"has sent no result", job.holder.ID)
	case job.results != 1:
	case job.result == f.Type:
		c.Check(rule, job.data == c.g.rest(f), "", "expected the data of the result that the worker sent, got other data")
	case job.result.Does == codec.Exception: // a client without the option exceptions receives WORK_FAIL
	default:
		c.Check(resultRules[job.result.Does], false, "", "expected %s, because the worker sent this result", job.result.Name)
	}
}

const maxReports = 1 << 6 // of one job

// forwarded checks a message about an unfinished job that the server sends to a client. It must be a report of the
// worker, later than the last report that the server sent to this client.
func (c *gearmanConn) forwarded(l *listener, f *codec.Frame, job *gearmanJob) {
	if job == nil || job.assigns != 1 || job.more || job.joined || c.g.timed {
		return
	}
	r, does := report{f.Type, c.g.rest(f)}, f.Type.Does
	if does == codec.Data { // changed data is a violation, but it is not missing
		l.passed[0]++
	} else if does == codec.Warning {
		l.passed[1]++
	}
	if k := slices.Index(job.reports[l.next:], r); k >= 0 {
		l.next += k + 1
		return
	}
	rule := resultRules[does]
	switch {
	case job.results == 1:
		c.Check(rule, false, "", "the server sent this message, but no worker has sent it")
	case job.holder != nil && job.holder != c:
		id := job.id // the job may be forgotten in the meantime, and its memory used for another job
		unsent := func(Conversation) bool {
			return job.id == id && job.assigns == 1 && !job.more && !slices.Contains(job.reports, r)
		}
		c.Defer(rule, "", unsent, []*Conn{job.holder.Conn},
			"the server sent this message, but the job is assigned to the worker on connection %d, which has not sent it",
			job.holder.ID)
	}
}

// missing checks, at the end of a job, whether the client has received all reports that the server must forward.
func (c *gearmanConn) missing(l *listener, does codec.Effect, job *gearmanJob) {
	if job.assigns != 1 || job.results != 1 || job.more || job.joined || c.g.timed || l.since >= job.since {
		return
	}
	if does == codec.Fail && job.result.Does == codec.Exception && c.granted != 0 && c.granted < job.resultAt {
		c.Check("gearman.work.exception", l.exception, "",
			"expected WORK_EXCEPTION, because the worker sent it and the client has set the option \"exceptions\"")
	}
	if does == codec.Exception {
		return
	}
	for i, e := range [...]codec.Effect{codec.Data, codec.Warning} {
		sent, name := 0, ""
		for _, r := range job.reports {
			if r.typ.Does == e {
				sent++
				name = r.typ.Name
			}
		}
		if sent > 0 {
			c.Check(resultRules[e], sent <= l.passed[i], "",
				"the worker sent %d %s packets for the job, but the client received %d", sent, name, l.passed[i])
		}
	}
}

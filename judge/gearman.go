package judge

import (
	"hash/maphash"
	"slices"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
)

// gearmanCourt judges Gearman.
type gearmanCourt struct {
	*Judge
	seed    maphash.Seed
	jobs    map[string]*gearmanJob // by handle
	unique  map[string]*gearmanJob // by function and unique ID
	timed   bool                   // a worker has set a time limit: jobs may be taken from it
	evicted bool                   // jobs were too many
}

// gearmanJob is what is known of a job.
type gearmanJob struct {
	handle   string
	as       submission // how it was submitted
	known    bool       // as is
	joined   bool       // others have joined it
	seen     bool       // function and workload are known by an assignment
	function string
	workload uint64
	holder   *conn
	assigned int64
	assigns  int
	result   string // type of what the holder gave as its end
	data     uint64
	results  int
	resultAt int64
	told     int64       // a client was told of its end
	said     []utterance // by its only holder, besides its end
	mute     bool        // that was too much
}

// utterance is what a worker says of a job before its end.
type utterance struct {
	typ string
	sum uint64
}

// submission is a request for a job.
type submission struct {
	typ      string
	function string
	unique   string
	workload uint64
	detached bool
	at       int64
	among    bool // others wait beside it for their handles
}

// gearmanConn is what is known of a connection.
type gearmanConn struct {
	submitted []submission
	grabs     []grab
	echoes    []uint64
	options   []string
	asked     []string // handles whose status was asked for
	statusAt  []int64
	slack     int // requests that an ERROR may have answered

	client, worker bool  // it has sent a request of one
	exceptions     bool  // it has asked for them
	granted        int64 // when that was confirmed

	seq    int
	able   map[string]*ability
	reset  int
	sleeps []int // seq of each PRE_SLEEP that it may still be woken from

	told     map[string]*listener // by handle: jobs that it has submitted
	finished recent               // handles that it was told the end of
	holds    map[string]bool      // handles that it was assigned; false if the server may have taken it away
	done     recent               // handles that it has given the end of
	raised   recent               // of these: by an exception
}

// grab is a request for a job.
type grab struct {
	typ string
	seq int
}

// ability is whether a worker can do a function: since and until which message.
type ability struct{ added, removed int }

// listener is a client's interest in a job.
type listener struct {
	waits    int    // submissions that are to hear of its end
	detached string // type of a submission that is not to
	ends     int
	since    int64  // of the first
	next     int    // of what the worker has said
	heard    [2]int // data and warnings that were passed on
	excepted bool
}

func newGearman(j *Judge) court {
	return &gearmanCourt{Judge: j, seed: maphash.MakeSeed(), jobs: map[string]*gearmanJob{}, unique: map[string]*gearmanJob{}}
}

func (g *gearmanCourt) join(c *conn) {
	c.gm = &gearmanConn{able: map[string]*ability{}, told: map[string]*listener{}, holds: map[string]bool{}}
}

func (g *gearmanCourt) forget() {
	clear(g.jobs)
	clear(g.unique)
	g.evicted, g.timed = false, false
}

// leave takes its jobs from a worker that has gone.
func (g *gearmanCourt) leave(c *conn, _ codec.Side, reset bool) {
	if !c.over {
		return
	}
	for h := range c.gm.holds {
		if job := g.jobs[h]; job != nil && job.holder == c {
			job.holder = nil
		}
	}
	if reset { // what it said last may not have arrived
		for h := range c.gm.done.names {
			if job := g.jobs[h]; job != nil {
				job.results += 2
			}
		}
	}
}

func (g *gearmanCourt) broken(c *conn, f *codec.Frame, _ codec.RuleID) {
	if f.From == codec.Peer { // what may answer it nobody can say
		c.lose()
	}
}

func (g *gearmanCourt) hear(c *conn, f *codec.Frame) {
	if f.From == codec.Peer {
		c.gm.seq++
		c.gm.client = c.gm.client || f.Type.Req&protocol.Client != 0
		c.gm.worker = c.gm.worker || f.Type.Req&protocol.Worker != 0
	}
	if do := gearmanDoes[f.Type][f.From]; do != nil {
		do(g, c, f)
	}
}

var gearmanDoes = on(protocol.Protocol, map[string]func(*gearmanCourt, *conn, *codec.Frame){
	"SUBMIT_JOB": (*gearmanCourt).submits, "SUBMIT_JOB_BG": (*gearmanCourt).submits, "SUBMIT_JOB_HIGH": (*gearmanCourt).submits, "SUBMIT_JOB_HIGH_BG": (*gearmanCourt).submits,
	"SUBMIT_JOB_LOW": (*gearmanCourt).submits, "SUBMIT_JOB_LOW_BG": (*gearmanCourt).submits, "SUBMIT_JOB_SCHED": (*gearmanCourt).submits, "SUBMIT_JOB_EPOCH": (*gearmanCourt).submits,
	"SUBMIT_REDUCE_JOB": (*gearmanCourt).submits, "SUBMIT_REDUCE_JOB_BACKGROUND": (*gearmanCourt).submits,
	"ECHO_REQ":   func(g *gearmanCourt, c *conn, f *codec.Frame) { await(c, &c.gm.echoes, g.sum(f.Arg(0))) },
	"OPTION_REQ": (*gearmanCourt).option,
	"GET_STATUS": func(g *gearmanCourt, c *conn, f *codec.Frame) {
		await(c, &c.gm.asked, string(f.Arg(0)))
		await(c, &c.gm.statusAt, g.at)
	},
	"CAN_DO": (*gearmanCourt).can, "CAN_DO_TIMEOUT": (*gearmanCourt).can, "CANT_DO": (*gearmanCourt).cannot, "RESET_ABILITIES": (*gearmanCourt).resets,
	"PRE_SLEEP": func(_ *gearmanCourt, c *conn, _ *codec.Frame) { await(c, &c.gm.sleeps, c.gm.seq) },
	"GRAB_JOB":  (*gearmanCourt).grabs, "GRAB_JOB_UNIQ": (*gearmanCourt).grabs, "GRAB_JOB_ALL": (*gearmanCourt).grabs,
	"WORK_COMPLETE": (*gearmanCourt).works, "WORK_FAIL": (*gearmanCourt).works, "WORK_EXCEPTION": (*gearmanCourt).works,
	"WORK_DATA": (*gearmanCourt).works, "WORK_WARNING": (*gearmanCourt).works, "WORK_STATUS": (*gearmanCourt).works,
}, map[string]func(*gearmanCourt, *conn, *codec.Frame){
	"JOB_CREATED": (*gearmanCourt).created, "ERROR": func(_ *gearmanCourt, c *conn, _ *codec.Frame) { c.gm.slack++ },
	"ECHO_RES": (*gearmanCourt).echoed, "OPTION_RES": (*gearmanCourt).opted, "STATUS_RES": (*gearmanCourt).status,
	"NO_JOB": (*gearmanCourt).answersGrab, "NOOP": (*gearmanCourt).wakes,
	"JOB_ASSIGN": (*gearmanCourt).assigns, "JOB_ASSIGN_UNIQ": (*gearmanCourt).assigns, "JOB_ASSIGN_ALL": (*gearmanCourt).assigns,
	"WORK_COMPLETE": (*gearmanCourt).tells, "WORK_FAIL": (*gearmanCourt).tells, "WORK_EXCEPTION": (*gearmanCourt).tells,
	"WORK_DATA": (*gearmanCourt).tells, "WORK_WARNING": (*gearmanCourt).tells, "WORK_STATUS": (*gearmanCourt).tells,
})

func (g *gearmanCourt) sum(b []byte) uint64 { return maphash.Bytes(g.seed, b) }

// rest sums up what stands behind the first field: what a message says of a job.
func (g *gearmanCourt) rest(f *codec.Frame) uint64 {
	if len(f.Type.Fields) < 2 {
		return 0
	}
	return g.sum(f.Raw[f.Spans[f.Head].Next:])
}

// Requests of clients.

func (g *gearmanCourt) submits(c *conn, f *codec.Frame) {
	t := f.Type.Name
	await(c, &c.gm.submitted, submission{
		typ: t, function: string(f.Arg(0)), unique: string(f.Arg(1)), workload: g.sum(f.Arg(len(f.Type.Fields) - 1)), at: g.at,
		detached: strings.Contains(t, "_BG") || strings.HasSuffix(t, "_BACKGROUND") || t == "SUBMIT_JOB_EPOCH" || t == "SUBMIT_JOB_SCHED",
		among:    len(c.gm.submitted) > 0 || c.gm.slack > 0})
}

func (g *gearmanCourt) option(c *conn, f *codec.Frame) {
	name := string(f.Arg(0))
	await(c, &c.gm.options, name)
	c.gm.exceptions = c.gm.exceptions || name == "exceptions"
}

// Replies to them.

func (g *gearmanCourt) echoed(c *conn, f *codec.Frame) {
	sum, any := g.sum(f.Arg(0)), len(c.gm.echoes) // in whatever order they come
	if _, ok := take(&c.gm.echoes, &any, func(s uint64) bool { return s == sum }); !ok {
		g.accuse(c, "gearman.echo.same-data", "Data", "no ECHO_REQ with this data waits for an answer")
	}
}

func (g *gearmanCourt) opted(c *conn, f *codec.Frame) {
	name := string(f.Arg(0))
	if _, ok := take(&c.gm.options, &c.gm.slack, func(s string) bool { return s == name }); !ok {
		g.accuse(c, "gearman.option.exceptions", "Option", "no OPTION_REQ with this name waits for an answer")
	} else if name != "exceptions" {
		g.accuse(c, "gearman.option.unknown", "Option", "%q is no option, and is taken for one", name)
	} else if c.gm.granted == 0 {
		c.gm.granted = g.at
	}
}

func (g *gearmanCourt) status(c *conn, f *codec.Frame) {
	handle, known, running := string(f.Arg(0)), string(f.Arg(1)) == "1", string(f.Arg(2)) == "1"
	was := len(c.gm.asked)
	if _, ok := take(&c.gm.asked, &c.gm.slack, func(s string) bool { return s == handle }); !ok {
		g.accuse(c, "gearman.status.answered", "Job handle", "no GET_STATUS with this handle waits for an answer")
		return
	}
	n := was - len(c.gm.asked)
	asked := c.gm.statusAt[n-1]
	c.gm.statusAt = c.gm.statusAt[n:]
	if running && !known {
		g.accuse(c, "gearman.status.unknown", "Known", "a job that is running and not known")
	}
	job := g.jobs[handle]
	switch {
	case job == nil:
	case job.told != 0 && job.told < asked && known:
		g.accuse(c, "gearman.status.finished", "Known", "a client was told of its end before this was asked")
	case job.holder != nil && job.assigned < asked && !running && !g.timed:
		g.suspect(c, "gearman.status.running", "Running", func(p *conn) bool { return p.gm.holds[handle] }, []*conn{job.holder},
			"connection %d has the job", job.holder.id)
	}
}

func (g *gearmanCourt) created(c *conn, f *codec.Frame) {
	handle := string(f.Arg(0))
	if len(c.gm.submitted) == 0 {
		rule := codec.RuleID("gearman.submit.created")
		if !c.gm.client {
			rule = "gearman.role.responses"
		}
		g.accuse(c, rule, "", "no submission waits for this")
		return
	}
	s := c.gm.submitted[0]
	unsure := c.gm.slack > 0 && len(c.gm.submitted) > 0 && s.among || c.gm.slack > 0 && len(c.gm.submitted) > 1
	c.gm.submitted = c.gm.submitted[1:]
	if unsure || !c.certain {
		c.lose() // whose handle this is nobody knows
		return
	}
	l := c.gm.told[handle]
	if l == nil {
		if len(c.gm.told) >= maxPerConn {
			c.lose()
			return
		}
		l = &listener{since: g.at}
		c.gm.told[handle] = l
	}
	if s.detached {
		l.detached = s.typ
		g.trim(c)
	} else {
		l.waits++
	}
	job := g.job(handle)
	if job == nil {
		return
	}
	if job.known {
		g.again(c, job, &s)
		job.joined = true
		return
	}
	job.as, job.known = s, true
	if job.seen && (job.function != s.function || job.workload != s.workload) && s.unique == "" {
		g.mismatch(c, job, &s)
	}
	g.coalesce(c, job, &s)
}

// trim forgets background jobs of a connection once they are many.
func (g *gearmanCourt) trim(c *conn) {
	if len(c.gm.told) < maxPerConn/2 {
		return
	}
	for h, l := range c.gm.told {
		if l.waits == 0 {
			delete(c.gm.told, h)
			c.gm.finished.lost = true
		}
	}
}

// again judges a handle that was given before.
func (g *gearmanCourt) again(c *conn, job *gearmanJob, s *submission) {
	const field = "Job handle"
	switch {
	case job.as.function != s.function && job.as.unique == s.unique && s.unique != "":
		g.accuse(c, "gearman.submit.unique-per-function", field, "it is a job of function %q already", job.as.function)
	case job.as.function != s.function:
		g.accuse(c, "gearman.submit.handles-distinct", field, "it is a job of function %q already", job.as.function)
	case s.unique == "" && job.as.unique == "":
		g.accuse(c, "gearman.submit.empty-unique", field, "it is another job without a unique ID already")
	case s.unique != job.as.unique:
		g.accuse(c, "gearman.submit.handles-distinct", field, "it is the job with the unique ID %q already", job.as.unique)
	case s.unique == "-" && s.workload != job.as.workload:
		g.accuse(c, "gearman.submit.coalesce-workload", field, "it is a job with another workload already")
	case job.told != 0 && job.told < s.at:
		g.accuse(c, "gearman.submit.unique-reusable", field, "the job has ended")
	}
}

// coalesce looks for a job with the same unique ID that somebody is doing.
func (g *gearmanCourt) coalesce(c *conn, job *gearmanJob, s *submission) {
	if s.unique == "" || s.unique == "-" {
		return
	}
	key := s.function + "\x00" + s.unique
	old := g.unique[key]
	if old != nil && old != job && old.holder != nil && old.assigned < s.at && !g.timed {
		h := old.handle
		g.suspect(c, "gearman.submit.coalesce", "Job handle", func(p *conn) bool { return p.gm.holds[h] }, []*conn{old.holder},
			"%s has the same unique ID, and connection %d has not finished it", h, old.holder.id)
	}
	if len(g.unique) < maxJobs {
		g.unique[key] = job
	}
}

// job returns what is known of a job, nil if there are too many.
func (g *gearmanCourt) job(handle string) *gearmanJob {
	job := g.jobs[handle]
	if job == nil {
		if len(g.jobs) >= maxJobs {
			for h, old := range g.jobs {
				if old.results > 0 || old.told != 0 {
					delete(g.jobs, h)
					delete(g.unique, old.as.function+"\x00"+old.as.unique)
				}
			}
			if g.evicted = true; len(g.jobs) >= maxJobs*3/4 {
				clear(g.jobs)
				clear(g.unique)
			}
		}
		job = &gearmanJob{handle: handle}
		g.jobs[handle] = job
	}
	return job
}

// Requests of workers.

func (g *gearmanCourt) can(c *conn, f *codec.Frame) {
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
	for h := range c.gm.holds {
		if job := g.jobs[h]; job != nil && job.holder == c {
			job.holder, job.assigns = nil, job.assigns+1
		}
		c.gm.holds[h] = false
	}
}

func (g *gearmanCourt) grabs(c *conn, f *codec.Frame) {
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
		c.gm.sleeps = c.gm.sleeps[1:]
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
	job := g.job(handle)
	old := job.holder
	switch {
	case old == c && c.gm.holds[handle]:
		g.accuse(c, "gearman.grab.once", field, "this worker has the job already")
	case old != nil && !c.over && !g.timed:
		g.suspect(c, "gearman.grab.once", field, func(p *conn) bool { return p.gm.holds[handle] }, []*conn{old, c}, "connection %d has the job", old.id)
	case job.results == 1 && !c.over && !g.timed:
		g.suspect(c, "gearman.work.final", field, func(p *conn) bool { return p.gm.holds[handle] }, []*conn{c}, "it has a result already, %s", job.result)
	}
	switch {
	case job.known && !job.joined && job.as.unique == "":
		if job.as.function != function || job.as.workload != workload {
			g.mismatchAssigned(c, job, function)
		}
	case job.seen && job.function != function:
		g.accuse(c, "gearman.grab.assign", "Function", "it was a job of function %q before", job.function)
	}
	if len(f.Type.Fields) > 3 && job.known && job.as.unique != "-" && job.as.unique != string(f.Arg(2)) && !job.as.among {
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
	c.gm.holds[handle] = true
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

// ends are the types that end a job.
func ends(t string) bool { return t == "WORK_COMPLETE" || t == "WORK_FAIL" || t == "WORK_EXCEPTION" }

// works judges what a worker says of a job.
func (g *gearmanCourt) works(c *conn, f *codec.Frame) {
	handle, t := string(f.Arg(0)), f.Type.Name
	if _, has := c.gm.holds[handle]; !has {
		switch {
		case c.gm.raised.has(handle) && t == "WORK_FAIL": // the end of it, once more
		case c.gm.done.has(handle) && ends(t):
			g.accuse(c, "gearman.work.final", "Job handle", "this worker has ended the job already")
		case !c.gm.done.lost:
			g.accuse(c, "gearman.worker.uses-the-handle", "Job handle", "this worker was not assigned the job")
		}
		return
	}
	if !ends(t) {
		if job := g.jobs[handle]; job != nil && job.assigns == 1 && len(job.said) < maxSaid {
			job.said = append(job.said, utterance{t, g.rest(f)})
		} else if job != nil {
			job.mute = true
		}
		return
	}
	delete(c.gm.holds, handle)
	c.gm.done.add(handle)
	if t == "WORK_EXCEPTION" {
		c.gm.raised.add(handle)
	}
	if job := g.jobs[handle]; job != nil {
		if job.holder == c {
			job.holder = nil
		}
		job.results++
		job.result, job.data, job.resultAt = t, g.rest(f), g.at
	}
}

// toldRules are the rules of what clients are told.
var toldRules = map[string]codec.RuleID{
	"WORK_COMPLETE": "gearman.work.complete", "WORK_FAIL": "gearman.work.fail", "WORK_EXCEPTION": "gearman.work.exception",
	"WORK_DATA": "gearman.work.data", "WORK_WARNING": "gearman.work.warning", "WORK_STATUS": "gearman.work.status",
}

// detachedRules are those of submissions that have one of their own.
var detachedRules = map[string]codec.RuleID{"SUBMIT_JOB_EPOCH": "gearman.epoch.background", "SUBMIT_JOB_SCHED": "gearman.sched.background"}

// tells judges what a client is told of a job.
func (g *gearmanCourt) tells(c *conn, f *codec.Frame) {
	const field = "Job handle"
	handle, t := string(f.Arg(0)), f.Type.Name
	l := c.gm.told[handle]
	switch {
	case !c.gm.client:
		g.accuse(c, "gearman.role.responses", "", "the connection is no client's")
	case l == nil && c.gm.finished.has(handle):
		g.accuse(c, toldRules[t], field, "the client was told of the job's end already")
	case l == nil && !c.gm.finished.lost:
		g.accuse(c, "gearman.submit.created-first", field, "the client was not told of such a job")
	case l == nil:
	case l.waits == 0:
		rule := codec.RuleID("gearman.submit.bg-detached")
		if own, ok := detachedRules[l.detached]; ok {
			rule = own
		}
		g.accuse(c, rule, field, "it was submitted in the background")
	case t == "WORK_EXCEPTION" && !c.gm.exceptions:
		g.accuse(c, "gearman.work.exception-unasked", "", "the client has not asked for exceptions")
	}
	if !ends(t) {
		if l != nil && l.waits > 0 {
			g.passes(c, l, f, handle)
		}
		return
	}
	g.compare(c, f, handle)
	if l != nil && l.waits > 0 {
		g.misses(c, l, t, handle)
	}
	if l != nil {
		l.excepted = l.excepted || t == "WORK_EXCEPTION"
	}
	if l != nil && t != "WORK_EXCEPTION" {
		if l.ends++; l.ends >= l.waits {
			delete(c.gm.told, handle)
			c.gm.finished.add(handle)
		}
	}
}

// compare holds what a client is told of the end against what the worker has said.
func (g *gearmanCourt) compare(c *conn, f *codec.Frame, handle string) {
	job, t := g.jobs[handle], f.Type.Name
	if job == nil {
		return
	}
	if t != "WORK_EXCEPTION" {
		defer func() { job.told = g.at }()
	}
	if g.timed || job.assigns != 1 {
		return
	}
	rule := toldRules[t]
	switch {
	case job.results == 0 && job.holder != nil && job.holder != c:
		g.suspect(c, rule, "", func(p *conn) bool { return p.gm.holds[handle] }, []*conn{job.holder}, "connection %d has the job, and has not ended it", job.holder.id)
	case job.results != 1:
	case job.result == t && job.data != g.rest(f):
		g.accuse(c, rule, "", "the worker has given another result")
	case job.result == "WORK_EXCEPTION": // which some are told as a failure
	case job.result != t:
		g.accuse(c, toldRules[job.result], "", "the worker has said %s", job.result)
	}
}

const maxSaid = 1 << 6 // of one job

// passes judges what is passed on to a client before the end: some thing that the worker has said
// behind what was passed on before.
func (g *gearmanCourt) passes(c *conn, l *listener, f *codec.Frame, handle string) {
	job, u := g.jobs[handle], utterance{f.Type.Name, g.rest(f)}
	if job == nil || job.assigns != 1 || job.mute || job.joined || g.timed {
		return
	}
	if k := slices.Index(job.said[l.next:], u); k >= 0 {
		l.next += k + 1
		if u.typ == "WORK_DATA" {
			l.heard[0]++
		} else if u.typ == "WORK_WARNING" {
			l.heard[1]++
		}
		return
	}
	rule := toldRules[u.typ]
	switch {
	case job.results == 1:
		g.accuse(c, rule, "", "the worker has not said this")
	case job.holder != nil && job.holder != c:
		unsaid := func(*conn) bool { return job.assigns == 1 && !job.mute && !slices.Contains(job.said, u) }
		g.suspect(c, rule, "", unsaid, []*conn{job.holder}, "connection %d, which has the job, has not said this", job.holder.id)
	}
}

// misses judges, at the end of a job, whether a client was told all that it was to be told.
func (g *gearmanCourt) misses(c *conn, l *listener, t, handle string) {
	job := g.jobs[handle]
	if job == nil || job.assigns != 1 || job.results != 1 || job.mute || job.joined || g.timed || l.since >= job.assigned {
		return
	}
	if t == "WORK_FAIL" && job.result == "WORK_EXCEPTION" && !l.excepted && c.gm.granted != 0 && c.gm.granted < job.resultAt {
		g.accuse(c, "gearman.work.exception", "", "the client has asked for exceptions, and the worker has sent one")
	}
	if t == "WORK_EXCEPTION" {
		return
	}
	for i, typ := range [...]string{"WORK_DATA", "WORK_WARNING"} {
		said := 0
		for _, u := range job.said {
			if u.typ == typ {
				said++
			}
		}
		if said > l.heard[i] {
			g.accuse(c, toldRules[typ], "", "the worker has sent %d %s, and the client was told of %d", said, typ, l.heard[i])
		}
	}
}

package judge

import (
	"hash/maphash"
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
	void     bool        // an administrator may have cancelled it: nothing more is said of it
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

	conduct conduct

	seq    int
	able   map[string]*ability
	reset  int
	sleeps []int // seq of each PRE_SLEEP that it may still be woken from

	told     map[string]*listener // by handle: jobs that it has submitted
	finished recent               // handles that it was told the end of
	holds    map[string]tenure    // by handle: jobs that it was assigned
	yielded  int                  // seq of the last CANT_DO or RESET_ABILITIES
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

// tenure is a job that a worker has.
type tenure struct {
	firm  bool // no reason is known why the server should have taken it away
	times int  // that it was assigned; more than once after it was taken away
}

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
	c.gm = &gearmanConn{able: map[string]*ability{}, told: map[string]*listener{}, holds: map[string]tenure{}}
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
	"PRE_SLEEP": (*gearmanCourt).sleeps,
	"GRAB_JOB":  (*gearmanCourt).grabs, "GRAB_JOB_UNIQ": (*gearmanCourt).grabs, "GRAB_JOB_ALL": (*gearmanCourt).grabs,
	"WORK_COMPLETE": (*gearmanCourt).works, "WORK_FAIL": (*gearmanCourt).works, "WORK_EXCEPTION": (*gearmanCourt).works,
	"WORK_DATA": (*gearmanCourt).works, "WORK_WARNING": (*gearmanCourt).works, "WORK_STATUS": (*gearmanCourt).works,
	"cancel-job": (*gearmanCourt).cancels,
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
	case job == nil || job.void:
	case job.told != 0 && job.told < asked && known:
		g.accuse(c, "gearman.status.finished", "Known", "a client was told of its end before this was asked")
	case job.holder != nil && job.assigned < asked && !running && !g.timed:
		g.suspect(c, "gearman.status.running", "Running", func(p *conn) bool { return p.gm.holds[handle].firm }, []*conn{job.holder},
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
	if job.void {
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
	if old != nil && old != job && !old.void && old.holder != nil && old.assigned < s.at && !g.timed {
		h := old.handle
		g.suspect(c, "gearman.submit.coalesce", "Job handle", func(p *conn) bool { return p.gm.holds[h].firm }, []*conn{old.holder},
			"%s has the same unique ID, and connection %d has not finished it", h, old.holder.id)
	}
	if len(g.unique) < maxJobs {
		g.unique[key] = job
	}
}

// cancels hears an administrator. What becomes of a job that a worker has is the server's
// affair, and it may not have been heard in this order.
func (g *gearmanCourt) cancels(_ *conn, f *codec.Frame) { g.job(string(f.Arg(0))).void = true }

// job returns what is known of a job. Where there are too many those that have ended are
// forgotten, and all of them if these are few.
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

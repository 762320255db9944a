package judge

import (
	"maps"
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
)

// gearmanChecker checks Gearman.
type gearmanChecker struct {
	*Monitor
	jobs   map[uint64]*gearmanJob // by the hash of the handle
	unique map[uint64]*gearmanJob // the last job, by submission.key; if Counts is set, also by submission.id
	names  map[string]string      // names of functions, each of which is stored once
	spare  *listener              // to be used again
	all    []*gearmanJob          // the memory of jobs, in the order of addresses
	free   []*gearmanJob          // the elements of all that are in use for no job, the next one last
	timed  bool                   // a worker has set a time limit, so the server may take jobs away from it
	called bool                   // at least one job was submitted
}

// gearmanJob contains what is known about a job.
type gearmanJob struct {
	used     bool   // the job is in gearmanChecker.jobs
	id       uint64 // hash of the handle
	handle   []byte
	as       submission // the submission that created it
	known    bool       // the submission was captured, so as is set
	joined   bool       // later submissions were combined with this job
	assigned bool       // function and workload are those of an assignment
	function string
	workload uint64
	holder   *gearmanConn
	since    int64 // time of the last assignment
	assigns  int
	result   *codec.Type // type of the message with which the worker ended the job
	data     uint64
	results  int
	resultAt int64
	endedAt  int64    // time at which a client received the end of the job; 0: not yet
	reports  []report // reports of the only worker that had the job, before the end of the job
	more     bool     // some reports are not in reports
	canceled bool     // an administrator may have canceled the job, so it is not checked any more
}

// report is a message of a worker about an unfinished job.
type report struct {
	typ *codec.Type
	sum uint64
}

// submission is the content of a request that submits a job.
type submission struct {
	typ      *codec.Type
	function string
	unique   string
	id, key  uint64 // hashes of the unique ID, and of function and unique ID
	workload uint64
	at       int64
	// other submissions were pending at the same time, so it is unknown to which of them the handle in the reply belongs
	among bool
}

// gearmanConn contains what is known about a connection.
type gearmanConn struct {
	*Conn
	g              *gearmanChecker
	seq            int  // number of messages of the peer
	skipped        int  // number of pending requests to which a captured ERROR may be the reply
	client, worker bool // the peer has sent a request that only this role sends
	gearmanClient
	gearmanWorker
}

// Gearman returns a checker of Gearman.
func Gearman(m *Monitor) Checker {
	m.Declare(codec.Peer, protocol.Worker, `worker.uses-the-handle work.final worker.announces-first
		worker.asks-before-sleep worker.hears-before-sleep worker.asks-when-woken`)
	m.Declare(codec.Server, 0, `role.responses echo.same-data submit.created submit.handles-distinct submit.order
		submit.empty-unique submit.coalesce-workload submit.coalesce submit.unique-per-function submit.unique-reusable
		grab.assign grab.once submit.opaque-workload worker.can-do work.final grab.assign-unique grab.all grab.no-job
		worker.awake-undisturbed worker.cant-do worker.reset submit.created-first work.complete work.fail work.exception
		work.exception-unasked work.data work.warning work.status option.exceptions option.unknown status.answered
		status.unknown status.running status.finished submit.bg-detached epoch.background sched.background`)
	jobs, unique := map[uint64]*gearmanJob{}, map[uint64]*gearmanJob{}
	return &gearmanChecker{Monitor: m, jobs: jobs, unique: unique, names: map[string]string{}}
}

func (g *gearmanChecker) Open(c *Conn) Conversation {
	return &gearmanConn{Conn: c, g: g, gearmanClient: gearmanClient{jobs: map[uint64]*listener{}},
		gearmanWorker: gearmanWorker{functions: map[uint64]*ability{}, assignments: map[uint64]assignment{}}}
}

func (g *gearmanChecker) Reset() {
	clear(g.jobs)
	clear(g.unique)
	clear(g.names)
	g.all, g.free = nil, nil
	g.timed, g.called = false, false
}

func (g *gearmanChecker) Size() int { return 4*len(g.jobs) + len(g.unique) + len(g.names) }

func (c *gearmanConn) Size() int {
	return len(c.submitted) + len(c.requests) + len(c.echoes) + len(c.options) + len(c.queries) + len(c.functions) +
		len(c.sleeps) + len(c.jobs) + len(c.assignments) + len(c.finished.names) + len(c.done.names)
}

// End removes the assignments of a worker that has disconnected.
func (c *gearmanConn) End(_ codec.Side, reset bool) {
	if !c.PeerClosed() {
		return
	}
	for h := range c.assignments {
		if job := c.g.jobs[h]; job != nil && job.holder == c {
			job.holder = nil
		}
	}
	if reset { // after a reset, the server may not have received the last messages of the worker
		for _, h := range c.done.names {
			if job := c.g.jobs[h]; job != nil {
				job.results += 2
			}
		}
	}
}

// Invalid stops the checks: the reply to an invalid request is unknown, and so is the request to which an invalid reply
// belongs. A report about the progress of a job is neither. After an invalid one, it is unknown whether the server has
// forwarded it, and whether the worker still has the job.
func (c *gearmanConn) Invalid(f *codec.Frame, _ codec.RuleID) {
	var job *gearmanJob
	if f.Type != nil && f.Type.Does == codec.Status && f.Type.Sends(f.From) {
		job = c.g.jobs[c.g.Hash(f.Get(codec.JobID))]
	}
	if job == nil {
		c.Stop()
		return
	}
	job.more = true
	if _, has := c.assignments[job.id]; has && f.From == codec.Peer {
		c.markUncertain(job.id)
	}
}

// Message implements Conversation. It stores the requests of clients and workers until their replies arrive, and checks
// the messages of workers about registrations, sleep and jobs.
func (c *gearmanConn) Message(f *codec.Frame) {
	if f.From == codec.Server {
		c.received(f)
		return
	}
	c.seq++
	c.client = c.client || f.Type.Req&protocol.Client != 0
	c.worker = c.worker || f.Type.Req&protocol.Worker != 0
	g := c.g
	switch f.Type.Does {
	case codec.Submit:
		function, unique := f.Get(codec.Queue), f.Get(codec.UniqueID)
		id := g.Hash(unique)
		c.submitted = append(c.submitted, submission{typ: f.Type, function: g.function(function), unique: g.Name(unique),
			id: id, key: id + 3*g.Hash(function), workload: g.Hash(f.Get(codec.Payload)), at: g.at,
			among: len(c.submitted) > 0 || c.skipped > 0})
	case codec.Echo:
		c.echoes = append(c.echoes, g.Hash(f.Get(codec.Payload)))
	case codec.Configure:
		if f.Type.Has(codec.OptionName) {
			name := g.Name(f.Get(codec.OptionName))
			c.options = append(c.options, name)
			c.exceptions = c.exceptions || name == "exceptions"
		}
	case codec.Query:
		if f.Type.Has(codec.JobID) {
			c.queries = append(c.queries, query{g.Hash(f.Get(codec.JobID)), g.at})
		}
	case codec.Register:
		c.registers(f)
	case codec.Unregister:
		c.unregisters(f)
	case codec.Sleep:
		c.sleep()
	case codec.Ask:
		c.ask(f)
	case codec.Data, codec.Warning, codec.Status, codec.Complete, codec.Fail, codec.Exception:
		c.reports(f)
	case codec.Cancel:
		// the specification does not say what happens to an assigned job, and messages about the job may be captured in
		// another order
		g.job(f.Get(codec.JobID)).canceled = true
	}
}

// received checks a packet of the server. Text replies to administrative commands are not checked here.
func (c *gearmanConn) received(f *codec.Frame) {
	if f.Type.Ordered { // a reply to a text command
		return
	}
	switch f.Type.Does {
	case codec.Accept:
		c.created(f)
	case codec.Refuse:
		c.refused()
	case codec.Answer:
		switch {
		case f.Type.Has(codec.OptionName):
			c.optionSet(f)
		case f.Type.Has(codec.JobID):
			c.status(f)
		case f.Type.Has(codec.Payload):
			sum, all := c.g.Hash(f.Get(codec.Payload)), len(c.echoes) // the server may reply in any order
			_, ok := take(&c.echoes, &all, func(s uint64) bool { return s == sum })
			c.Check("gearman.echo.same-data", ok, "Data",
				"the server sent ECHO_RES, but no ECHO_REQ with this data waits for a reply")
		}
	case codec.NoJob:
		c.answers(f)
	case codec.Wake:
		c.wakes()
	case codec.Assign:
		c.assigned(f)
	case codec.Data, codec.Warning, codec.Status, codec.Complete, codec.Fail, codec.Exception:
		c.reported(f)
	}
}

// rest returns a hash of all fields after the first one, which is the job handle.
func (g *gearmanChecker) rest(f *codec.Frame) uint64 {
	if len(f.Type.Fields) < 2 {
		return 0
	}
	return g.Hash(f.Raw[f.Spans[f.Head].Next:])
}

// function returns the name of a function.
func (g *gearmanChecker) function(v []byte) string {
	name, ok := g.names[string(v)]
	if !ok {
		if len(g.names) >= maxNames {
			clear(g.names)
		}
		name = g.Name(v)
		g.names[name] = name
	}
	return name
}

// job returns what is known about the job with a handle.
func (g *gearmanChecker) job(handle []byte) *gearmanJob {
	id := g.Hash(handle)
	job := g.jobs[id]
	if job == nil {
		if len(g.jobs) >= maxJobs {
			g.forget()
		}
		job = g.newJob()
		job.id, job.handle = id, g.AppendName(job.handle[:0], handle)
		g.jobs[id] = job
	}
	return job
}

// jobBlock is the number of jobs for which memory is allocated at once.
const jobBlock = 64

// newJob returns a job about which nothing is known. Memory is used again in the order of addresses, which processors
// read ahead.
func (g *gearmanChecker) newJob() *gearmanJob {
	if len(g.free) == 0 {
		block := make([]gearmanJob, jobBlock)
		for i := range block {
			g.all = append(g.all, &block[i])
		}
		for _, job := range slices.Backward(g.all[len(g.all)-jobBlock:]) {
			g.free = append(g.free, job)
		}
	}
	n := len(g.free) - 1
	job := g.free[n]
	g.free = g.free[:n]
	*job = gearmanJob{used: true, handle: job.handle, reports: job.reports[:0]}
	return job
}

// newListener returns a listener whose first submission has the time of the current message.
func (g *gearmanChecker) newListener() *listener {
	l := g.spare
	if g.spare = nil; l == nil {
		l = &listener{}
	}
	*l = listener{since: g.at}
	return l
}

// forget removes the jobs that have ended, and all jobs if the remaining ones are still too many.
func (g *gearmanChecker) forget() {
	left := 0
	for _, job := range g.all {
		job.used = job.used && job.results == 0 && job.endedAt == 0
		if job.used {
			left++
		}
	}
	g.free = g.free[:0]
	for _, job := range slices.Backward(g.all) {
		if job.used = job.used && left < maxJobs*3/4; !job.used {
			g.free = append(g.free, job)
		}
	}
	remove(g.unique, func(job *gearmanJob) bool { return !job.used })
	remove(g.jobs, func(job *gearmanJob) bool { return !job.used })
}

// remove removes entries from a map. If most entries are removed, this takes much less time than maps.DeleteFunc.
func remove(m map[uint64]*gearmanJob, which func(*gearmanJob) bool) {
	left := map[uint64]*gearmanJob{}
	for k, v := range m {
		if !which(v) {
			left[k] = v
		}
	}
	clear(m)
	maps.Copy(m, left)
}

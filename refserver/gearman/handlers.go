package gearman

import (
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// handler answers one message type.
type handler func(m *machine, p *peer, f *codec.Frame)

// handlers stand at the index of their row.
var handlers = func() []handler {
	h := make([]handler, len(gearman.Protocol.Types))
	for name, fn := range byName {
		h[row(name).Index] = fn
	}
	return h
}()

var byName = map[string]handler{
	"ECHO_REQ":   echo,
	"OPTION_REQ": setOption,

	"SUBMIT_JOB":                   submission{priority: normal}.submit,
	"SUBMIT_JOB_HIGH":              submission{priority: high}.submit,
	"SUBMIT_JOB_LOW":               submission{priority: low}.submit,
	"SUBMIT_JOB_BG":                submission{priority: normal, background: true}.submit,
	"SUBMIT_JOB_HIGH_BG":           submission{priority: high, background: true}.submit,
	"SUBMIT_JOB_LOW_BG":            submission{priority: low, background: true}.submit,
	"SUBMIT_JOB_SCHED":             submission{priority: normal, background: true, when: schedule}.submit,
	"SUBMIT_JOB_EPOCH":             submission{priority: normal, background: true, when: epoch}.submit,
	"SUBMIT_REDUCE_JOB":            submission{priority: normal, reduce: true}.submit,
	"SUBMIT_REDUCE_JOB_BACKGROUND": submission{priority: normal, reduce: true, background: true}.submit,
	"GET_STATUS":                   getStatus,
	"GET_STATUS_UNIQUE":            getStatusUnique,

	"CAN_DO":          canDo,
	"CAN_DO_TIMEOUT":  canDo,
	"CANT_DO":         cantDo,
	"RESET_ABILITIES": resetAbilities,
	"PRE_SLEEP":       preSleep,
	"SET_CLIENT_ID":   setClientID,
	"ALL_YOURS":       allYours,
	"GRAB_JOB":        grab(assign),
	"GRAB_JOB_UNIQ":   grab(assignUniq),
	"GRAB_JOB_ALL":    grab(assignAll),
	"WORK_DATA":       ofJob(forward),
	"WORK_WARNING":    ofJob(forward),
	"WORK_STATUS":     ofJob(workStatus),
	"WORK_COMPLETE":   ofJob(workEnd),
	"WORK_FAIL":       ofJob(workEnd),
	"WORK_EXCEPTION":  ofJob(workException),

	"workers":          showWorkers,
	"status":           showStatus,
	"prioritystatus":   showPriorities,
	"show-jobs":        showJobs,
	"show-unique-jobs": showUnique,
	"maxqueue":         maxQueue,
	"shutdown":         shutdown,
	"version":          showVersion,
	"getpid":           showPID,
	"verbose":          showVerbosity,
	"cancel-job":       cancelJob,
	"create-function":  createFunction,
	"drop-function":    dropFunction,
}

// Rows of what the server sends.
var (
	echoRes         = row("ECHO_RES")
	errorPacket     = row("ERROR")
	optionRes       = row("OPTION_RES")
	jobCreated      = row("JOB_CREATED")
	statusRes       = row("STATUS_RES")
	statusResUnique = row("STATUS_RES_UNIQUE")
	workFail        = row("WORK_FAIL")
	noop            = row("NOOP")
	noJob           = row("NO_JOB")
	jobAssign       = row("JOB_ASSIGN")
	jobAssignUniq   = row("JOB_ASSIGN_UNIQ")
	jobAssignAll    = row("JOB_ASSIGN_ALL")
)

func row(name string) *codec.Type {
	t := gearman.Protocol.TypeNamed(name)
	if t == nil {
		panic("no type " + name)
	}
	return t
}

func echo(_ *machine, p *peer, f *codec.Frame) { p.conn.Send(echoRes, f.Arg(0)) }

// setOption knows the one option there is ("Client Requests", OPTION_REQ).
func setOption(_ *machine, p *peer, f *codec.Frame) {
	if string(f.Arg(0)) != "exceptions" {
		refuse(p, "UNKNOWN_OPTION", "the only option is exceptions")
		return
	}
	p.exceptions = true
	p.conn.Send(optionRes, f.Arg(0))
}

func getStatus(m *machine, p *peer, f *codec.Frame) {
	handle := f.Arg(0)
	known, running, numer, denom, _ := progress(m.find(handle))
	p.conn.Send(statusRes, handle, known, running, numer, denom)
}

// getStatusUnique answers for the oldest job with the unique ID, whatever its
// function.
func getStatusUnique(m *machine, p *peer, f *codec.Frame) {
	var j *job
	if same := m.named[string(f.Arg(0))]; same != nil {
		j = same.first.item
	}
	known, running, numer, denom, clients := progress(j)
	if err := p.conn.Send(statusResUnique, f.Arg(0), known, running, numer, denom, clients); err != nil {
		refuse(p, "ARGUMENT_TOO_LARGE", "the answer would not fit a packet")
	}
}

// progress tells a job's state in the terms of STATUS_RES. There may be no job.
func progress(j *job) (known, running, numer, denom, clients []byte) {
	zero, one := []byte("0"), []byte("1")
	if j == nil {
		return zero, zero, zero, zero, zero
	}
	running = zero
	if j.worker != nil {
		running = one
	}
	return one, running, decimal(j.numerator), decimal(j.denom), decimal(uint64(j.waits.len))
}

func decimal(n uint64) []byte { return strconv.AppendUint(nil, n, 10) }

// canDo registers a function for a worker, or changes its timeout.
func canDo(m *machine, p *peer, f *codec.Frame) {
	fn := m.function(f.Arg(0))
	a := p.able[fn]
	if a == nil {
		a = p.newAbility(fn)
	}
	a.timeout = 0
	if n, bad := codec.ParseNumber(f.Arg(1)); bad < 0 && n < uint64(never/m.opts.TimeoutUnit) {
		a.timeout = time.Duration(n) * m.opts.TimeoutUnit
	}
	if p.sleeping {
		preSleep(m, p, f)
	}
}

func cantDo(m *machine, p *peer, f *codec.Frame) {
	if fn := m.functions[string(f.Arg(0))]; fn != nil && p.able[fn] != nil {
		m.unable(p.able[fn])
	}
}

func resetAbilities(m *machine, p *peer, _ *codec.Frame) { m.reset(p) }

// preSleep puts a worker to sleep, or wakes it at once if there is something to
// do: the job may have come between its last GRAB_JOB and this.
func preSleep(_ *machine, p *peer, _ *codec.Frame) {
	p.sleeping = true
	if _, j := p.pick(); j != nil {
		p.rouse()
	}
}

func setClientID(_ *machine, p *peer, f *codec.Frame) { p.clientID = append([]byte(nil), f.Arg(0)...) }

// allYours has no effect: the document says that it is not implemented, and
// grabbing works as well without.
func allYours(*machine, *peer, *codec.Frame) {}

// grab answers the GRAB_JOB types, which differ in what they tell of a job.
func grab(tell func(p *peer, j *job)) handler {
	return func(m *machine, p *peer, _ *codec.Frame) {
		p.sleeping = false
		a, j := p.pick()
		if j == nil {
			p.conn.Send(noJob)
			return
		}
		j.spot.remove()
		p.work.pushBack(&j.spot)
		j.worker = p
		j.fn.running++
		if a.timeout > 0 {
			j.due = time.Now().Add(a.timeout)
			m.timers.add(j)
		}
		tell(p, j)
	}
}

func assign(p *peer, j *job) { p.conn.Send(jobAssign, j.handle, j.fn.name, j.workload) }

func assignUniq(p *peer, j *job) {
	p.conn.Send(jobAssignUniq, j.handle, j.fn.name, j.unique, j.workload)
}

func assignAll(p *peer, j *job) {
	if !j.reduce {
		assignUniq(p, j)
		return
	}
	p.conn.Send(jobAssignAll, j.handle, j.fn.name, j.unique, j.reducer, j.workload)
}

// ofJob makes a handler for what a worker says of a job that it runs. Of other
// jobs it may say nothing.
func ofJob(do func(m *machine, j *job, f *codec.Frame)) handler {
	return func(m *machine, p *peer, f *codec.Frame) {
		if j := m.find(f.Arg(0)); j != nil && j.worker == p {
			do(m, j, f)
		} else {
			refuse(p, "JOB_NOT_FOUND", "this worker runs no job with that handle")
		}
	}
}

// forward sends what a worker said to all who wait for the job.
func forward(m *machine, j *job, f *codec.Frame) {
	f.Message(&m.msg)
	for w := range j.waits.all {
		w.peer.conn.Send(f.Type, m.msg.Args...)
	}
}

func workStatus(m *machine, j *job, f *codec.Frame) {
	j.numerator, _ = codec.ParseNumber(f.Arg(1))
	j.denom, _ = codec.ParseNumber(f.Arg(2))
	forward(m, j, f)
}

func workEnd(m *machine, j *job, f *codec.Frame) {
	forward(m, j, f)
	m.end(j)
}

// workException ends a job. Clients that have not asked for exceptions learn
// that it failed.
func workException(m *machine, j *job, f *codec.Frame) {
	for w := range j.waits.all {
		if w.peer.exceptions {
			w.peer.conn.Send(f.Type, j.handle, f.Arg(1))
		} else {
			w.peer.conn.Send(workFail, j.handle)
		}
	}
	m.end(j)
}

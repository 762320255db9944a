package gearman

import (
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// handler handles the messages of one type.
type handler func(m *machine, p *peer, f *codec.Frame)

// handlers has the handler of each message type at the type's index; nil for types that a server does not receive.
var handlers = codec.ByType(gearman.Protocol, byName)

var byName = map[string]handler{
	"ECHO_REQ":   echo,
	"OPTION_REQ": setOption,

	"SUBMIT_JOB":                   submission{priority: normal}.submit,
	"SUBMIT_JOB_HIGH":              submission{priority: high}.submit,
	"SUBMIT_JOB_LOW":               submission{priority: low}.submit,
	"SUBMIT_JOB_BG":                submission{priority: normal, background: true}.submit,
	"SUBMIT_JOB_HIGH_BG":           submission{priority: high, background: true}.submit,
	"SUBMIT_JOB_LOW_BG":            submission{priority: low, background: true}.submit,
	"SUBMIT_JOB_SCHED":             submission{priority: normal, background: true, scheduledTime: schedule}.submit,
	"SUBMIT_JOB_EPOCH":             submission{priority: normal, background: true, scheduledTime: epoch}.submit,
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
	"WORK_DATA":       about(forward),
	"WORK_WARNING":    about(forward),
	"WORK_STATUS":     about(workStatus),
	"WORK_COMPLETE":   about(workEnd),
	"WORK_FAIL":       about(workEnd),
	"WORK_EXCEPTION":  about(workException),

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

// Types of the packets that the server sends.
var (
	echoRes         = typeNamed("ECHO_RES")
	errorPacket     = typeNamed("ERROR")
	optionRes       = typeNamed("OPTION_RES")
	jobCreated      = typeNamed("JOB_CREATED")
	statusRes       = typeNamed("STATUS_RES")
	statusResUnique = typeNamed("STATUS_RES_UNIQUE")
	workFail        = typeNamed("WORK_FAIL")
	noop            = typeNamed("NOOP")
	noJob           = typeNamed("NO_JOB")
	jobAssign       = typeNamed("JOB_ASSIGN")
	jobAssignUniq   = typeNamed("JOB_ASSIGN_UNIQ")
	jobAssignAll    = typeNamed("JOB_ASSIGN_ALL")
)

var typeNamed = gearman.Protocol.MustTypeNamed

func echo(_ *machine, p *peer, f *codec.Frame) { p.conn.Send(echoRes, f.Arg(0)) }

// setOption handles OPTION_REQ. The specification defines one option (section "Client Requests").
func setOption(_ *machine, p *peer, f *codec.Frame) {
	if string(f.Arg(0)) != "exceptions" {
		refuse(p, "UNKNOWN_OPTION", "the only option is \"exceptions\"")
		return
	}
	p.exceptions = true
	p.conn.Send(optionRes, f.Arg(0))
}

func getStatus(m *machine, p *peer, f *codec.Frame) {
	handle := f.Arg(0)
	known, running, numer, denom, _ := m.progress(m.find(handle))
	p.conn.Send(statusRes, handle, known, running, numer, denom)
}

// getStatusUnique reports the status of the oldest job with the unique ID, of any function.
func getStatusUnique(m *machine, p *peer, f *codec.Frame) {
	known, running, numer, denom, clients := m.progress(m.oldest(f.Arg(0)))
	if err := p.conn.Send(statusResUnique, f.Arg(0), known, running, numer, denom, clients); err != nil {
		refuse(p, "ARGUMENT_TOO_LARGE", "the reply is too large for a packet")
	}
}

// progress returns the status of a job as the arguments of STATUS_RES_UNIQUE. j may be nil.
func (m *machine) progress(j *job) (known, running, numer, denom, clients []byte) {
	zero, one := []byte("0"), []byte("1")
	if j == nil {
		return zero, zero, zero, zero, zero
	}
	running, numer, denom = zero, zero, zero
	if j.worker != 0 {
		running = one
	}
	if j.extra != 0 {
		x := m.extra(j)
		numer, denom = decimal(x.numerator), decimal(x.denom)
	}
	return one, running, numer, denom, decimal(uint64(m.waiters(j)))
}

func decimal(n uint64) []byte { return strconv.AppendUint(nil, n, 10) }

// canDo handles CAN_DO and CAN_DO_TIMEOUT: it registers a function for a worker, or changes the timeout of a
// registration. A timeout of 0 means none, and so does one that is missing or longer than a century.
func canDo(m *machine, p *peer, f *codec.Frame) {
	fn := m.functionNamed(f.Arg(0))
	a := p.abilityOf[fn]
	if a == nil {
		a = p.addAbility(fn)
	}
	a.timeout = 0
	if n, ok := codec.ParseNumber(f.Arg(1)); ok && n < uint64(century/m.opts.TimeoutUnit) {
		a.timeout = time.Duration(n) * m.opts.TimeoutUnit
	}
	if p.sleeping {
		m.wakeIfWork(p) // jobs of the new function may be queued
	}
}

func cantDo(m *machine, p *peer, f *codec.Frame) {
	if fn := m.byName[string(f.Arg(0))]; fn != nil && p.abilityOf[fn] != nil {
		m.removeAbility(p.abilityOf[fn])
	}
}

func resetAbilities(m *machine, p *peer, _ *codec.Frame) { m.reset(p) }

// preSleep marks a worker as sleeping, and wakes it at once if there is a job for it: a job may have been queued after
// the worker's last GRAB_JOB.
func preSleep(m *machine, p *peer, _ *codec.Frame) {
	p.sleeping = true
	m.wakeIfWork(p)
}

// wakeIfWork wakes a worker if a job that it can do is queued.
func (m *machine) wakeIfWork(p *peer) {
	if _, j := m.pick(p); j != nil {
		p.wake()
	}
}

func setClientID(_ *machine, p *peer, f *codec.Frame) { p.clientID = append([]byte(nil), f.Arg(0)...) }

// allYours ignores ALL_YOURS. The specification says that it is not implemented, and workers can grab jobs without it.
func allYours(*machine, *peer, *codec.Frame) {}

// grab returns the handler of a GRAB_JOB type. Its argument sends the reply, which is different for each type.
func grab(reply func(m *machine, p *peer, fn *function, j *job)) handler {
	return func(m *machine, p *peer, _ *codec.Frame) {
		p.sleeping = false
		a, j := m.pick(p)
		if j == nil {
			p.conn.Send(noJob)
			return
		}
		m.assign(j, a.fn, p)
		if a.timeout > 0 {
			m.setTimer(j, time.Now().Add(a.timeout))
		}
		reply(m, p, a.fn, j)
	}
}

func assign(m *machine, p *peer, fn *function, j *job) {
	_, _, workload := m.parts(j)
	p.conn.Send(jobAssign, m.handle(j), fn.name, workload)
}

func assignUniq(m *machine, p *peer, fn *function, j *job) {
	unique, _, workload := m.parts(j)
	p.conn.Send(jobAssignUniq, m.handle(j), fn.name, unique, workload)
}

func assignAll(m *machine, p *peer, fn *function, j *job) {
	if !j.reduce {
		assignUniq(m, p, fn, j)
		return
	}
	unique, reducer, workload := m.parts(j)
	p.conn.Send(jobAssignAll, m.handle(j), fn.name, unique, reducer, workload)
}

// about returns a handler for a WORK type. It calls do if the worker is running the job, and otherwise replies with an
// error.
func about(do func(m *machine, j *job, f *codec.Frame)) handler {
	return func(m *machine, p *peer, f *codec.Frame) {
		if j := m.find(f.Arg(0)); j != nil && j.worker == p.id {
			do(m, j, f)
		} else {
			refuse(p, "JOB_NOT_FOUND", "this worker is not running a job with this handle")
		}
	}
}

// forward sends a worker's message to all clients that wait for the job.
func forward(m *machine, j *job, f *codec.Frame) {
	for p := range m.waiting(j) {
		p.conn.Forward(f)
	}
}

func workStatus(m *machine, j *job, f *codec.Frame) {
	x := m.extra(j)
	x.numerator, _ = codec.ParseNumber(f.Arg(1))
	x.denom, _ = codec.ParseNumber(f.Arg(2))
	forward(m, j, f)
}

func workEnd(m *machine, j *job, f *codec.Frame) {
	forward(m, j, f)
	m.end(j)
}

// workException ends a job. Clients that have not requested the option "exceptions" get a WORK_FAIL.
func workException(m *machine, j *job, f *codec.Frame) {
	for p := range m.waiting(j) {
		if p.exceptions {
			p.conn.Send(f.Type, f.Arg(0), f.Arg(1))
		} else {
			p.conn.Send(workFail, f.Arg(0))
		}
	}
	m.end(j)
}

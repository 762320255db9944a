package protocols

import (
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
	"jobwire/loadgen"
)

// GearMonkey is the adapter for Redis servers with the GearMonkey protocol. A job takes several commands, and the
// client needs the reply to the first command for the others.
var GearMonkey = &loadgen.Adapter{Protocol: gearmonkey.Protocol, Scenarios: []loadgen.Scenario{
	{Name: "cycle", About: "for each job, the client sends four commands and the worker eleven"},
	{Name: "background", About: "create jobs (only this part is measured), then process them"},
	{Name: "drain", About: "create all jobs, then process them (only this part is measured)"},
	{Name: "priorities"},
	{Name: "updates", About: "as in cycle, with two progress updates for each job"},
	{Name: "echo", About: "ECHO; no jobs and no workers"},
	{Name: "status", About: "HGETALL of a job that does not exist; no workers"},
	{Name: "chaos", About: "as in cycle, while bench kills workers that have jobs; GearMonkey loses these jobs"},
	{Name: "crash"},
}, Client: newMonkeyClient, Worker: newMonkeyWorker, Forgets: true}

var (
	mkUID       = monkeyType("INCR_UID")
	mkIdle      = monkeyType("HMSET_IDLE")
	mkCreate    = monkeyType("PUBLISH_CREATE")
	mkPush      = monkeyType("LPUSH_QUEUE")
	mkLoad      = monkeyType("SCRIPT_LOAD")
	mkCount     = monkeyType("INCR_COUNT")
	mkScheduled = monkeyType("EVALSHA_SCHEDULED")
	mkPop       = monkeyType("BRPOP_QUEUES")
	mkStart     = monkeyType("PUBLISH_START")
	mkBusy      = monkeyType("HMSET_BUSY")
	mkInput     = monkeyType("HGET_INPUT")
	mkProgress  = monkeyType("HMSET_PROGRESS")
	mkDone      = monkeyType("HMSET_DONE")
	mkExpire    = monkeyType("EXPIRE_JOB")
	mkFinish    = monkeyType("PUBLISH_FINISH")
	mkLock      = monkeyType("LPUSH_LOCK")
	mkUnlock    = monkeyType("EXPIRE_LOCK")
)

func monkeyType(name string) *codec.Type { return codec.Named(gearmonkey.Protocol.Types, name) }

var (
	mkPriorities = [loadgen.Priorities][]byte{[]byte(gearmonkey.High), []byte(gearmonkey.Normal), []byte(gearmonkey.Low)}
	mkSuccess    = []byte(gearmonkey.StatusSuccess)
	mkKeep       = []byte("90000") // seconds (25 hours) for which the job is kept after its end, as in the specification
	mkKeepLock   = []byte("10")    // seconds for which the lock is kept
	mkOK         = []byte("OK")
)

// monkeyClient is the client of the GearMonkey adapter. It submits jobs.
type monkeyClient struct {
	*loadgen.ClientConn
	functions [][]byte
	asked     codec.FIFO[monkeyAsked] // commands without a reply, in order
}

// monkeyAsked is a command without a reply.
type monkeyAsked struct {
	job  *loadgen.Job
	then func(*monkeyClient, *loadgen.Job, *codec.Frame) // handles the reply; nil: ignore it
}

func newMonkeyClient(c *loadgen.ClientConn, _ *loadgen.Scenario) loadgen.Client {
	return &monkeyClient{ClientConn: c, functions: c.Queues()}
}

// Submit implements [Client]. It asks the server for a job ID. It does not keep the payload, because create generates
// it again when the ID has arrived.
func (m *monkeyClient) Submit(j *loadgen.Job, _ []byte) {
	m.ask(j, (*monkeyClient).create, mkUID, m.functions[j.Queue])
}

// ask sends a command about a job. then handles the reply; nil: ignore it.
func (m *monkeyClient) ask(j *loadgen.Job, then func(*monkeyClient, *loadgen.Job, *codec.Frame), t *codec.Type, args ...[]byte) {
	m.asked.Push(monkeyAsked{j, then})
	m.Send(t, args...)
}

// create stores the job under its ID and adds it to the queue.
func (m *monkeyClient) create(j *loadgen.Job, f *codec.Frame) {
	fn, id := m.functions[j.Queue], f.Get(codec.JobID)
	m.ask(j, nil, mkIdle, fn, id, m.Payload(j))
	m.ask(j, nil, mkCreate, fn, id)
	m.ask(j, (*monkeyClient).queued, mkPush, fn, mkPriorities[j.Priority], id)
}

// queued handles the reply that the job is in the queue.
func (m *monkeyClient) queued(j *loadgen.Job, _ *codec.Frame) { m.Accepted(j) }

// Handle implements [Client]. Each message is the reply to the oldest command without a reply.
func (m *monkeyClient) Handle(f *codec.Frame) {
	a := loadgen.Pop(&m.asked)
	switch {
	case f.Type.Does == codec.Refuse && a.then == nil:
		m.CountRefused(f)
	case f.Type.Does == codec.Refuse:
		m.Refused(a.job, f)
	case a.then != nil:
		a.then(m, a.job, f)
	}
}

// monkeyWorker is the worker of the GearMonkey adapter. It processes a job in the steps of the specification. It
// sends several commands together if it does not need their replies: those that complete a job, and the request for
// the next job.
type monkeyWorker struct {
	*loadgen.WorkerConn
	functions [][]byte
	turn      int    // index of the function whose queue is asked next
	updates   int    // number of progress updates for each job
	sha       []byte // hash of the loaded script
	date      []byte // buffer for the current time
	// seconds for which the server waits for a job before it replies that there is none
	pause []byte
	// handle the replies to the commands without a reply, in order; nil: ignore the reply
	asked codec.FIFO[func(*monkeyWorker, *codec.Frame)]

	id      []byte       // ID of the current job
	payload []byte       // payload of the current job
	job     *loadgen.Job // current job; nil if its payload is not that of a job in flight
}

// newMonkeyWorker returns a worker that serves one function, or all functions if there are fewer workers than
// functions.
func newMonkeyWorker(c *loadgen.WorkerConn, s *loadgen.Scenario) loadgen.Worker {
	m := &monkeyWorker{WorkerConn: c, functions: c.Queues(), updates: s.Updates, pause: []byte("1")}
	if n := len(m.functions); c.Config().Workers >= n {
		// with several functions, a worker would wait up to 1 s at an empty queue while the other queues have jobs
		m.functions = m.functions[c.Place%n:][:1]
	}
	return m
}

// Begin implements [Worker]. It loads the script and registers the functions.
func (m *monkeyWorker) Begin() {
	m.ask((*monkeyWorker).loaded, mkLoad, []byte(gearmonkey.Script))
	for _, fn := range m.functions {
		m.ask(nil, mkCount, fn)
	}
}

// ask sends a command. then handles the reply; nil: ignore it.
func (m *monkeyWorker) ask(then func(*monkeyWorker, *codec.Frame), t *codec.Type, args ...[]byte) {
	m.asked.Push(then)
	m.Send(t, args...)
}

func (m *monkeyWorker) loaded(f *codec.Frame) {
	m.sha = append(m.sha, f.Arg(0)...)
	m.grab()
}

// grab asks for a scheduled job. If there is none, scheduled asks for a queued job.
func (m *monkeyWorker) grab() {
	m.date = strconv.AppendInt(m.date[:0], time.Now().Unix(), 10)
	m.ask((*monkeyWorker).scheduled, mkScheduled, m.sha, m.functions[m.turn], m.date)
}

// scheduled handles the reply to the request for a scheduled job.
func (m *monkeyWorker) scheduled(f *codec.Frame) {
	if m.Ask(); f.Type.Does == codec.Assign {
		m.take(f.Get(codec.JobID))
		return
	}
	m.ask((*monkeyWorker).popped, mkPop, m.functions[m.turn], m.pause)
}

// popped handles the reply to the request for a queued job.
func (m *monkeyWorker) popped(f *codec.Frame) {
	if f.Type.Does == codec.Assign {
		m.take(f.Get(codec.JobID))
		return
	}
	m.NoJob()
	m.turn = (m.turn + 1) % len(m.functions)
	m.grab()
}

// take starts the job with this ID and asks for its payload.
func (m *monkeyWorker) take(id []byte) {
	m.id = append(m.id[:0], id...)
	fn := m.functions[m.turn]
	m.ask(nil, mkStart, fn, m.id)
	m.ask(nil, mkBusy, fn, m.id)
	m.ask((*monkeyWorker).work, mkInput, fn, m.id)
}

// work handles the payload of the job and completes the job after Config.Work.
func (m *monkeyWorker) work(f *codec.Frame) {
	m.payload = append(m.payload[:0], f.Arg(0)...)
	m.job = m.Assigned(f, m.payload)
	if d := m.Config().Work; d > 0 {
		m.After(d, m.complete)
		return
	}
	m.complete()
}

// complete sends the updates and the result of the job, and asks for the next job.
func (m *monkeyWorker) complete() {
	fn := m.functions[m.turn]
	for range m.updates {
		m.ask(nil, mkProgress, fn, m.id, []byte("1"), []byte("2"))
	}
	m.ask(nil, mkDone, fn, m.id, mkSuccess, m.payload)
	m.ask(nil, mkExpire, fn, m.id, mkKeep)
	m.ask(nil, mkFinish, fn, m.id)
	m.ask(nil, mkLock, fn, m.id, mkOK)
	m.ask((*monkeyWorker).done, mkUnlock, fn, m.id, mkKeepLock)
	m.turn = (m.turn + 1) % len(m.functions)
	m.grab()
}

// done handles the reply to the last command about a job.
func (m *monkeyWorker) done(*codec.Frame) {
	if m.job != nil {
		m.EndSeen(m.job)
	}
}

// Handle implements [Worker]. Each message is the reply to the oldest command without a reply.
func (m *monkeyWorker) Handle(f *codec.Frame) {
	then := loadgen.Pop(&m.asked)
	if f.Type.Does == codec.Refuse {
		m.CountRefused(f)
	}
	if then != nil {
		then(m, f)
	}
}

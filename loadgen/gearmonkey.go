package loadgen

import (
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
)

// GearMonkey is the load of Redis servers that serve GearMonkey. A job takes several commands, and the
// client needs the reply to the first for the others.
var GearMonkey = &Adapter{Protocol: gearmonkey.Protocol, Scenarios: []Scenario{
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
	mkPriorities = [priorities][]byte{[]byte(gearmonkey.High), []byte(gearmonkey.Normal), []byte(gearmonkey.Low)}
	mkSuccess    = []byte(gearmonkey.StatusSuccess)
	mkKeep       = []byte("90000") // 25 hours, as in the specification
	mkKeepLock   = []byte("10")
	mkOK         = []byte("OK")
)

// monkeyClient creates jobs.
type monkeyClient struct {
	*ClientConn
	functions [][]byte
	asked     ring[monkeyAsked] // commands that wait for their reply
}

type monkeyAsked struct {
	job  *Job
	then func(*monkeyClient, *Job, *codec.Frame) // handles the reply; nil: there is nothing to do
}

func newMonkeyClient(c *ClientConn, _ *Scenario) Client {
	return &monkeyClient{ClientConn: c, functions: c.Queues()}
}

// Submit asks for an ID. The payload is generated again when the ID has arrived.
func (m *monkeyClient) Submit(j *Job, _ []byte) {
	m.ask(j, (*monkeyClient).create, mkUID, m.functions[j.Queue])
}

func (m *monkeyClient) ask(j *Job, then func(*monkeyClient, *Job, *codec.Frame), t *codec.Type, args ...[]byte) {
	m.asked.push(monkeyAsked{j, then})
	m.Send(t, args...)
}

func (m *monkeyClient) create(j *Job, f *codec.Frame) {
	fn, id := m.functions[j.Queue], f.Get(codec.JobID)
	m.ask(j, nil, mkIdle, fn, id, m.Payload(j))
	m.ask(j, nil, mkCreate, fn, id)
	m.ask(j, (*monkeyClient).queued, mkPush, fn, mkPriorities[j.Priority], id)
}

func (m *monkeyClient) queued(j *Job, _ *codec.Frame) { m.Accepted(j) }

func (m *monkeyClient) Handle(f *codec.Frame) {
	a := m.asked.pop()
	switch {
	case f.Type.Does == codec.Refuse && a.then == nil:
		m.noteRefused(f)
	case f.Type.Does == codec.Refuse:
		m.Refused(a.job, f)
	case a.then != nil:
		a.then(m, a.job, f)
	}
}

// monkeyWorker processes jobs in the steps of the specification. It sends commands together if it does not
// need the replies to the first for the others: those that end a job, and the request for the next job.
type monkeyWorker struct {
	*WorkerConn
	functions [][]byte
	turn      int // the function whose queue is next
	updates   int
	sha       []byte
	date      []byte
	pause     []byte
	asked     ring[func(*monkeyWorker, *codec.Frame)] // what handles the replies; nil: there is nothing to do

	id      []byte // of its job
	payload []byte
	job     *Job
}

func newMonkeyWorker(c *WorkerConn, s *Scenario) Worker {
	m := &monkeyWorker{WorkerConn: c, functions: c.Queues(), updates: s.Updates, pause: []byte("1")}
	if n := len(m.functions); c.run.cfg.Workers >= n {
		m.functions = m.functions[c.place%n:][:1] // a worker of several would wait a second at one while others have jobs
	}
	return m
}

func (m *monkeyWorker) Begin() {
	m.ask((*monkeyWorker).loaded, mkLoad, []byte(gearmonkey.Script))
	for _, fn := range m.functions {
		m.ask(nil, mkCount, fn)
	}
}

// ask sends a command whose reply is handled by then.
func (m *monkeyWorker) ask(then func(*monkeyWorker, *codec.Frame), t *codec.Type, args ...[]byte) {
	m.asked.push(then)
	m.Send(t, args...)
}

func (m *monkeyWorker) loaded(f *codec.Frame) {
	m.sha = append(m.sha, f.Arg(0)...)
	m.grab()
}

// grab asks for a scheduled job, and for a queued job if there is none.
func (m *monkeyWorker) grab() {
	m.date = strconv.AppendInt(m.date[:0], time.Now().Unix(), 10)
	m.ask((*monkeyWorker).scheduled, mkScheduled, m.sha, m.functions[m.turn], m.date)
}

func (m *monkeyWorker) scheduled(f *codec.Frame) {
	if m.Ask(); f.Type.Does == codec.Assign {
		m.take(f.Get(codec.JobID))
		return
	}
	m.ask((*monkeyWorker).popped, mkPop, m.functions[m.turn], m.pause)
}

func (m *monkeyWorker) popped(f *codec.Frame) {
	if f.Type.Does == codec.Assign {
		m.take(f.Get(codec.JobID))
		return
	}
	m.NoJob()
	m.turn = (m.turn + 1) % len(m.functions)
	m.grab()
}

func (m *monkeyWorker) take(id []byte) {
	m.id = append(m.id[:0], id...)
	fn := m.functions[m.turn]
	m.ask(nil, mkStart, fn, m.id)
	m.ask(nil, mkBusy, fn, m.id)
	m.ask((*monkeyWorker).work, mkInput, fn, m.id)
}

func (m *monkeyWorker) work(f *codec.Frame) {
	m.payload = append(m.payload[:0], f.Arg(0)...)
	m.job = m.Assigned(f, m.payload)
	if d := m.run.cfg.Work; d > 0 {
		m.After(d, m.complete)
		return
	}
	m.complete()
}

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

func (m *monkeyWorker) done(*codec.Frame) {
	if m.job != nil {
		m.EndSeen(m.job)
	}
}

func (m *monkeyWorker) Handle(f *codec.Frame) {
	then := m.asked.pop()
	if f.Type.Does == codec.Refuse {
		m.noteRefused(f)
	}
	if then != nil {
		then(m, f)
	}
}

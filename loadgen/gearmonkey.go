package loadgen

import (
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
)

func init() {
	systems[gearmonkey.Protocol.Name] = &dialect{
		protocol: gearmonkey.Protocol,
		scenarios: []Scenario{
			{Name: "cycle", About: "the client's four commands and the worker's eleven", Background: true, Until: atWorker},
			{Name: "background", About: "jobs are created; they are done, unmeasured, when all are", Standing: true, Filling: true, Background: true, Until: atWorker},
			{Name: "drain", About: "all jobs are created, then done", Standing: true, Background: true, Until: atWorker},
			{Name: "priorities", About: "as cycle, with jobs of all priorities", Background: true, Until: atWorker, Mixed: true},
			{Name: "updates", About: "as cycle, with two updates of the progress", Background: true, Until: atWorker, Updates: 2},
			{Name: "echo", About: "ECHO, without workers", Alone: true, Probe: "command"},
			{Name: "status", About: "HGETALL of a job that is not there, without workers", Alone: true, Probe: "HGETALL_JOB"},
			{Name: "chaos", About: "as cycle, but workers are killed while they have jobs, which GearMonkey loses", Background: true, Until: atWorker, Kills: true},
		},
		grabs: func(*Config) int { return 1 }, // a BRPOP that blocks keeps back what is behind it
		client: func(c *conn, s *Scenario) client {
			if s.Alone {
				return newProbe(c, s, monkeyProbes[s.Probe])
			}
			return newMonkeyClient(c)
		},
		worker: func(c *conn, s *Scenario) peer { return newMonkeyWorker(c, s) },
	}
}

// monkeyProbes are commands that need no job.
var monkeyProbes = map[string]question{
	"command":     {row: row(gearmonkey.Protocol, "command"), args: [][]byte{[]byte("ECHO")}, echoes: true},
	"HGETALL_JOB": {row: row(gearmonkey.Protocol, "HGETALL_JOB"), args: [][]byte{[]byte("jobwire"), []byte("0")}},
}

var (
	mkUID       = row(gearmonkey.Protocol, "INCR_UID")
	mkIdle      = row(gearmonkey.Protocol, "HMSET_IDLE")
	mkCreate    = row(gearmonkey.Protocol, "PUBLISH_CREATE")
	mkPush      = row(gearmonkey.Protocol, "LPUSH_QUEUE")
	mkLoad      = row(gearmonkey.Protocol, "SCRIPT_LOAD")
	mkCount     = row(gearmonkey.Protocol, "INCR_COUNT")
	mkScheduled = row(gearmonkey.Protocol, "EVALSHA_SCHEDULED")
	mkPop       = row(gearmonkey.Protocol, "BRPOP_QUEUES")
	mkStart     = row(gearmonkey.Protocol, "PUBLISH_START")
	mkBusy      = row(gearmonkey.Protocol, "HMSET_BUSY")
	mkInput     = row(gearmonkey.Protocol, "HGET_INPUT")
	mkProgress  = row(gearmonkey.Protocol, "HMSET_PROGRESS")
	mkDone      = row(gearmonkey.Protocol, "HMSET_DONE")
	mkExpire    = row(gearmonkey.Protocol, "EXPIRE_JOB")
	mkFinish    = row(gearmonkey.Protocol, "PUBLISH_FINISH")
	mkLock      = row(gearmonkey.Protocol, "LPUSH_LOCK")
	mkUnlock    = row(gearmonkey.Protocol, "EXPIRE_LOCK")

	mkError = row(gearmonkey.Protocol, "error")
)

var (
	mkPriorities = [priorities][]byte{[]byte(gearmonkey.High), []byte(gearmonkey.Normal), []byte(gearmonkey.Low)}
	mkSuccess    = []byte(gearmonkey.StatusSuccess)
	mkKeep       = []byte("90000") // 25 hours, as the document has it
	mkKeepLock   = []byte("10")
	mkOK         = []byte("OK")
)

// monkeyClient creates jobs. Replies come in the order of the commands.
type monkeyClient struct {
	*conn
	functions [][]byte
	asked     ring[monkeyAsked]
}

// monkeyAsked is a command that waits for its reply.
type monkeyAsked struct {
	slot *slot
	then func(*monkeyClient, *slot, *codec.Frame) // nil is nothing
}

func newMonkeyClient(c *conn) *monkeyClient {
	return &monkeyClient{conn: c, functions: c.run.functions()}
}

func (m *monkeyClient) begin() { m.fill() }

// submit asks for an ID, and writes the job once there is one. The payload is made anew then.
func (m *monkeyClient) submit(s *slot, _ []byte) {
	m.asked.push(monkeyAsked{s, (*monkeyClient).create})
	m.send(mkUID, m.functions[s.function])
}

func (m *monkeyClient) create(s *slot, f *codec.Frame) {
	fn, id := m.functions[s.function], m.arg(f, 0)
	m.payload = appendPayload(m.payload[:0], s.number.Load(), int(s.size))
	m.asked.push(monkeyAsked{s, nil})
	m.send(mkIdle, fn, id, m.payload)
	m.asked.push(monkeyAsked{s, nil})
	m.send(mkCreate, fn, id)
	m.asked.push(monkeyAsked{s, (*monkeyClient).queued})
	m.send(mkPush, fn, mkPriorities[s.priority], id)
}

func (m *monkeyClient) queued(s *slot, _ *codec.Frame) { m.acknowledge(s) }

func (m *monkeyClient) handle(f *codec.Frame) {
	a := m.asked.pop()
	if f.Type == mkError {
		m.note(&m.run.ledger.refused, f, "the server answered with an error")
		if a.then != nil {
			m.refuse(a.slot)
		}
		return
	}
	if a.then != nil {
		a.then(m, a.slot, f)
	}
}

// monkeyWorker does jobs as the document lists it. What needs no reply to go on is sent
// together: the end of a job and the question for the next.
type monkeyWorker struct {
	*conn
	functions [][]byte
	turn      int // the function that it asks for
	updates   int
	sha       []byte
	date      []byte
	pause     []byte
	asked     ring[func(*monkeyWorker, *codec.Frame)] // nil is nothing

	id      []byte // of the job that it has
	payload []byte
	slot    *slot
}

func newMonkeyWorker(c *conn, s *Scenario) *monkeyWorker {
	m := &monkeyWorker{conn: c, functions: c.run.functions(), updates: s.Updates, pause: []byte("1")}
	if n := len(m.functions); c.run.cfg.Workers >= n {
		m.functions = m.functions[c.place%n:][:1] // else it would wait a second for one while others have jobs
	}
	return m
}

func (m *monkeyWorker) begin() {
	m.ask((*monkeyWorker).loaded, mkLoad, []byte(gearmonkey.Script))
	for _, fn := range m.functions {
		m.ask(nil, mkCount, fn)
	}
}

// ask sends a command, and has something done with its reply.
func (m *monkeyWorker) ask(then func(*monkeyWorker, *codec.Frame), t *codec.Type, args ...[]byte) {
	m.asked.push(then)
	m.send(t, args...)
}

func (m *monkeyWorker) loaded(f *codec.Frame) {
	m.sha = append(m.sha, m.arg(f, 0)...)
	m.look()
}

// look asks for a scheduled job, and for a queued one if there is none.
func (m *monkeyWorker) look() {
	m.date = strconv.AppendInt(m.date[:0], time.Now().Unix(), 10)
	m.ask((*monkeyWorker).scheduled, mkScheduled, m.sha, m.functions[m.turn], m.date)
}

func (m *monkeyWorker) scheduled(f *codec.Frame) {
	m.asks = ring[int64]{}
	m.conn.ask()
	if f.Type.Name == "DUE" {
		m.take(m.arg(f, 1))
		return
	}
	m.ask((*monkeyWorker).popped, mkPop, m.functions[m.turn], m.pause)
}

func (m *monkeyWorker) popped(f *codec.Frame) {
	if f.Type.Name != "POPPED" {
		m.given(none)
		m.turn = (m.turn + 1) % len(m.functions)
		m.look()
		return
	}
	m.take(m.arg(f, 2))
}

func (m *monkeyWorker) take(id []byte) {
	m.id = append(m.id[:0], id...)
	fn := m.functions[m.turn]
	m.ask(nil, mkStart, fn, m.id)
	m.ask(nil, mkBusy, fn, m.id)
	m.ask((*monkeyWorker).work, mkInput, fn, m.id)
}

func (m *monkeyWorker) work(f *codec.Frame) {
	m.payload = append(m.payload[:0], m.arg(f, 0)...)
	m.slot = m.took(f, m.payload)
	if d := m.run.cfg.Work; d > 0 {
		m.later(d, m.complete)
		return
	}
	m.complete()
}

func (m *monkeyWorker) complete() {
	fn := m.functions[m.turn]
	for range m.updates {
		m.ask(nil, mkProgress, fn, m.id, one, two)
	}
	m.ask(nil, mkDone, fn, m.id, mkSuccess, m.payload)
	m.ask(nil, mkExpire, fn, m.id, mkKeep)
	m.ask(nil, mkFinish, fn, m.id)
	m.ask(nil, mkLock, fn, m.id, mkOK)
	m.ask((*monkeyWorker).done, mkUnlock, fn, m.id, mkKeepLock)
	m.turn = (m.turn + 1) % len(m.functions)
	m.look()
}

func (m *monkeyWorker) done(*codec.Frame) {
	if m.slot != nil {
		m.tell(m.slot)
	}
}

func (m *monkeyWorker) handle(f *codec.Frame) {
	then := m.asked.pop()
	if f.Type == mkError {
		m.note(&m.run.ledger.refused, f, "the server answered with an error")
	}
	if then != nil {
		then(m, f)
	}
}

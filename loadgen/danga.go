package loadgen

import (
	"jobwire/codec"
	"jobwire/codec/danga"
)

func init() {
	const why = "an application waits for one job of type sync+wait at a time"
	systems[danga.Protocol.Name] = &dialect{
		protocol: danga.Protocol,
		scenarios: []Scenario{
			{Name: "cycle", About: "create (sync+wait), assign, complete, result", MaxWindow: 1, WindowWhy: why},
			{Name: "background", About: "jobs to be thrown away are created; they are done, unmeasured, when all are", Standing: true, Filling: true, Background: true, Until: atWorker},
			{Name: "drain", About: "all jobs are created, then done", Standing: true, Background: true, Until: atWorker},
			{Name: "updates", About: "as cycle, with two announcements of progress", Updates: 2, MaxWindow: 1, WindowWhy: why},
			{Name: "status", About: "job_status_req of a job that is not there, without workers", Alone: true, Probe: "job_status_req"},
			{Name: "chaos", About: "as cycle, but workers are killed while they have jobs", Kills: true, MaxWindow: 1, WindowWhy: why},
		},
		grabs: func(*Config) int { return 1 }, // guarantee 3: one task at a time
		client: func(c *conn, s *Scenario) client {
			if s.Alone {
				return newProbe(c, s, question{row: row(danga.Protocol, s.Probe), args: [][]byte{[]byte("J:jobwire:0")}})
			}
			return newDangaClient(c, s)
		},
		worker: func(c *conn, s *Scenario) peer { return newDangaWorker(c, s) },
	}
}

var (
	dgConnect  = row(danga.Protocol, "worker_connect")
	dgSleep    = row(danga.Protocol, "worker_sleep")
	dgCreate   = row(danga.Protocol, "job_create_req")
	dgAssign   = row(danga.Protocol, "job_assign_req")
	dgStatus   = row(danga.Protocol, "job_status_announce")
	dgComplete = row(danga.Protocol, "job_complete_announce")
)

// Arguments: flags, job types, progress and a result code.
var (
	dgFlags   = []byte{0}
	dgSync    = []byte{danga.SyncWait}
	dgThrow   = []byte{danga.AsyncThrow}
	dgOne     = []byte{0, 0, 0, 1}
	dgTwo     = []byte{0, 0, 0, 2}
	dgUnknown = []byte{0xff, 0xff, 0xff, 0xff}
	dgSuccess = []byte{0}
)

// dangaClient is an application that creates jobs.
type dangaClient struct {
	*conn
	names   [][]byte
	kind    []byte
	waiting queue // jobs that are not acknowledged
}

func newDangaClient(c *conn, s *Scenario) *dangaClient {
	d := &dangaClient{conn: c, names: c.run.functions(), kind: dgSync}
	if s.Background {
		d.kind = dgThrow
	}
	return d
}

func (d *dangaClient) begin() { d.fill() }

func (d *dangaClient) submit(s *slot, payload []byte) {
	d.waiting.push(s)
	d.send(dgCreate, d.names[s.function], nil, dgFlags, d.kind, payload)
}

func (d *dangaClient) handle(f *codec.Frame) { dangaClientDoes.of(d.conn, f)(d, f) }

var dangaClientDoes = table(danga.Protocol, map[string]func(*dangaClient, *codec.Frame){
	"job_create_res": func(d *dangaClient, f *codec.Frame) {
		s := d.waiting.pop()
		if s == nil {
			d.note(&d.run.ledger.twice, f, "no submission waits for this")
			return
		}
		d.acknowledge(s)
	},
	"job_status_res": func(*dangaClient, *codec.Frame) {},
	"job_complete_res": func(d *dangaClient, f *codec.Frame) {
		if s := d.heard(f, f.Arg(2)); s != nil {
			d.over(s)
		}
	},
})

// dangaWorker does jobs, one at a time. A noop says that there is none, or wakes it: never
// both, since it sleeps only behind the first and asks only behind the second.
type dangaWorker struct {
	*conn
	names   [][]byte
	updates int
	atEnd   bool // it tells the client of the end of a job
	asleep  bool
}

func newDangaWorker(c *conn, s *Scenario) *dangaWorker {
	return &dangaWorker{conn: c, names: c.run.functions(), updates: s.Updates, atEnd: s.Until == atWorker}
}

func (d *dangaWorker) begin() {
	d.send(dgConnect, d.names...)
	d.ask()
	d.send(dgAssign)
}

func (d *dangaWorker) handle(f *codec.Frame) { dangaWorkerDoes.of(d.conn, f)(d, f) }

var dangaWorkerDoes = table(danga.Protocol, map[string]func(*dangaWorker, *codec.Frame){
	"noop": func(d *dangaWorker, _ *codec.Frame) {
		if d.asleep {
			d.ask()
			d.send(dgAssign)
		} else {
			d.given(none)
			d.send(dgSleep)
		}
		d.asleep = !d.asleep
	},
	"job_assign_res": (*dangaWorker).work,
})

func (d *dangaWorker) work(f *codec.Frame) {
	payload := f.Arg(1)
	s := d.took(f, payload)
	if pause := d.run.cfg.Work; pause > 0 {
		payload = append([]byte(nil), payload...)
		d.later(pause, func() { d.complete(s, payload) })
		return
	}
	d.complete(s, payload)
}

func (d *dangaWorker) complete(s *slot, payload []byte) {
	for range d.updates {
		d.send(dgStatus, dgOne, dgTwo, dgUnknown)
	}
	d.send(dgComplete, dgSuccess, payload)
	if d.atEnd && s != nil {
		d.tell(s)
	}
	d.ask()
	d.send(dgAssign)
}

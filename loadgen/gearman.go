package loadgen

import (
	"strconv"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

func init() {
	systems[gearman.Protocol.Name] = &dialect{
		protocol: gearman.Protocol,
		scenarios: []Scenario{
			{Name: "cycle", About: "submit, grab, complete, result"},
			{Name: "background", About: "jobs that nobody waits for are queued; they are done, unmeasured, when all are", Standing: true, Filling: true, Background: true, Until: atWorker},
			{Name: "unique", About: "as background, each job with a unique ID of its own", Standing: true, Filling: true, Background: true, Until: atWorker, Share: 1},
			{Name: "drain", About: "all jobs are queued, then done", Standing: true, Background: true, Until: atWorker},
			{Name: "priorities", About: "as cycle, with jobs of all priorities", Mixed: true},
			{Name: "updates", About: "as cycle, with two status and two data updates on the way", Updates: 2},
			{Name: "coalesce", About: "as cycle, with four submissions to a unique ID, which make one job", Share: 4},
			{Name: "chaos", About: "as cycle, but workers are killed while they have jobs", Kills: true},
			{Name: "echo", About: "ECHO_REQ and ECHO_RES, without workers", Alone: true, Probe: "ECHO_REQ"},
			{Name: "status", About: "GET_STATUS of a job that is not there, without workers", Alone: true, Probe: "GET_STATUS"},
		},
		grabs: func(c *Config) int { return max(1, min(c.Window*c.Clients/c.Workers, 1024)) },
		client: func(c *conn, s *Scenario) client {
			if s.Alone {
				return newProbe(c, s, gearmanProbes[s.Probe])
			}
			return newGearmanClient(c, s)
		},
		worker: func(c *conn, s *Scenario) peer { return newGearmanWorker(c, s) },
	}
}

// gearmanProbes are requests that the server answers itself.
var gearmanProbes = map[string]question{
	"ECHO_REQ":   {row: row(gearman.Protocol, "ECHO_REQ"), echoes: true},
	"GET_STATUS": {row: row(gearman.Protocol, "GET_STATUS"), args: [][]byte{[]byte("H:jobwire:0")}},
}

// Rows that the generator sends, by priority, for jobs that are waited for and for such that are not.
var (
	gmSubmit = [2][priorities]*codec.Type{
		{row(gearman.Protocol, "SUBMIT_JOB_HIGH"), row(gearman.Protocol, "SUBMIT_JOB"), row(gearman.Protocol, "SUBMIT_JOB_LOW")},
		{row(gearman.Protocol, "SUBMIT_JOB_HIGH_BG"), row(gearman.Protocol, "SUBMIT_JOB_BG"), row(gearman.Protocol, "SUBMIT_JOB_LOW_BG")},
	}
	gmComplete = row(gearman.Protocol, "WORK_COMPLETE")
	gmStatus   = row(gearman.Protocol, "WORK_STATUS")
	gmData     = row(gearman.Protocol, "WORK_DATA")
	gmCanDo    = row(gearman.Protocol, "CAN_DO")
	gmGrab     = row(gearman.Protocol, "GRAB_JOB")
	gmSleep    = row(gearman.Protocol, "PRE_SLEEP")
)

// gearmanClient submits jobs.
type gearmanClient struct {
	*conn
	functions [][]byte
	rows      *[priorities]*codec.Type
	waiting   queue // jobs whose JOB_CREATED has not come

	share  int                // submissions to each unique ID
	unique []byte             // the present one
	jobs   map[string][]*slot // submissions by the handle they got, where they share
}

func newGearmanClient(c *conn, s *Scenario) *gearmanClient {
	g := &gearmanClient{conn: c, functions: c.run.functions(), rows: &gmSubmit[0], share: s.Share}
	if s.Share > 1 {
		g.jobs = map[string][]*slot{}
	}
	if s.Background {
		g.rows = &gmSubmit[1]
	}
	return g
}

func (g *gearmanClient) begin() { g.fill() }

func (g *gearmanClient) submit(s *slot, payload []byte) {
	g.waiting.push(s)
	if g.share > 0 {
		g.unique = append(append(g.unique[:0], g.run.cfg.Prefix...), '-')
		g.unique = append(strconv.AppendInt(g.unique, int64(g.place), 10), '-')
		g.unique = strconv.AppendInt(g.unique, int64(s.seq)/int64(g.share), 10)
	}
	g.send(g.rows[s.priority], g.functions[s.function], g.unique, payload)
}

func (g *gearmanClient) handle(f *codec.Frame) { gearmanClientDoes.of(g.conn, f)(g, f) }

var gearmanClientDoes = table(gearman.Protocol, map[string]func(*gearmanClient, *codec.Frame){
	"JOB_CREATED": func(g *gearmanClient, f *codec.Frame) {
		s := g.waiting.pop()
		if s == nil {
			g.note(&g.run.ledger.twice, f, "no submission waits for this")
			return
		}
		if g.jobs != nil {
			handle := string(f.Arg(0))
			g.jobs[handle] = append(g.jobs[handle], s)
		}
		g.acknowledge(s)
	},
	"WORK_COMPLETE": func(g *gearmanClient, f *codec.Frame) {
		if g.jobs != nil {
			g.shared(f)
			return
		}
		if s := g.heard(f, f.Arg(1)); s != nil {
			g.over(s)
		}
	},
	"WORK_STATUS": func(*gearmanClient, *codec.Frame) {},
	"WORK_DATA":   func(g *gearmanClient, f *codec.Frame) { g.heard(f, f.Arg(1)) },
	"ERROR": func(g *gearmanClient, f *codec.Frame) {
		g.note(&g.run.ledger.refused, f, "the server answered with an error")
		if s := g.waiting.pop(); s != nil {
			g.refuse(s)
		}
	},
})

// shared ends one of the submissions that became the job of this result. Its payload is that
// of the first.
func (g *gearmanClient) shared(f *codec.Frame) {
	handle := f.Arg(0)
	waiting := g.jobs[string(handle)]
	if _, whole := numberOf(f.Arg(1)); !whole {
		g.note(&g.run.ledger.corrupted, f, "the result is not the payload that was sent")
	}
	switch len(waiting) {
	case 0:
		g.note(&g.run.ledger.twice, f, "every submission to this job had its result already")
		return
	case 1:
		delete(g.jobs, string(handle))
	default:
		g.jobs[string(handle)] = waiting[1:]
	}
	g.finish(waiting[0])
}

// gearmanWorker does jobs.
type gearmanWorker struct {
	*conn
	functions [][]byte
	updates   int
	atEnd     bool // it tells the client of the end of a job
	grabs     int  // outstanding at most
	idle      int  // not outstanding, since there was no job
}

func newGearmanWorker(c *conn, s *Scenario) *gearmanWorker {
	return &gearmanWorker{conn: c, functions: c.run.functions(), updates: s.Updates, atEnd: s.Until == atWorker, grabs: c.run.cfg.Grabs}
}

func (g *gearmanWorker) begin() {
	for _, fn := range g.functions {
		g.send(gmCanDo, fn)
	}
	g.idle = g.grabs
	g.grab()
}

// grab asks for as many jobs as may be asked for.
func (g *gearmanWorker) grab() {
	for ; g.idle > 0; g.idle-- {
		g.ask()
		g.send(gmGrab)
	}
}

func (g *gearmanWorker) handle(f *codec.Frame) { gearmanWorkerDoes.of(g.conn, f)(g, f) }

var gearmanWorkerDoes = table(gearman.Protocol, map[string]func(*gearmanWorker, *codec.Frame){
	"JOB_ASSIGN": (*gearmanWorker).work,
	"NO_JOB": func(g *gearmanWorker, _ *codec.Frame) {
		g.given(none)
		if g.idle++; g.idle == g.grabs {
			g.send(gmSleep)
		}
	},
	"NOOP": func(g *gearmanWorker, _ *codec.Frame) { g.grab() },
})

var one, two = []byte("1"), []byte("2")

func (g *gearmanWorker) work(f *codec.Frame) {
	handle, payload := f.Arg(0), f.Arg(2)
	s := g.took(f, payload)
	if d := g.run.cfg.Work; d > 0 {
		handle, payload = append([]byte(nil), handle...), append([]byte(nil), payload...)
		g.later(d, func() { g.complete(s, handle, payload) })
		return
	}
	g.complete(s, handle, payload)
}

func (g *gearmanWorker) complete(s *slot, handle, payload []byte) {
	for range g.updates {
		g.send(gmStatus, handle, one, two)
		g.send(gmData, handle, payload)
	}
	g.send(gmComplete, handle, payload)
	if g.atEnd && s != nil {
		g.tell(s)
	}
	g.ask()
	g.send(gmGrab)
}

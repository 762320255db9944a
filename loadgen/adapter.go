package loadgen

import (
	"cmp"
	"slices"
	"time"

	"jobwire/codec"
)

// Scenario is what clients and workers do.
type Scenario struct {
	Name, About string

	Backlog    bool         // all jobs are queued before the first worker starts
	Enqueue    bool         // with Backlog: only the queueing is measured; the rest shows that no job is lost
	Background bool         // the worker, not the client, sees the end of a job
	Mixed      bool         // jobs of all priorities
	Kinds      bool         // every other job of a slot is a background job, and two of four have a unique ID
	Updates    int          // how many times a worker reports the progress of a job, or touches it
	PerUnique  int          // consecutive submissions with the same unique ID; 0: jobs have no unique ID
	Kills      bool         // workers are killed while they have jobs
	Crash      bool         // the server is killed: see [Crash]
	Request    codec.Effect // Echo or Query: clients send such requests instead of jobs, and there are no workers

	MaxWindow int    // 0: no limit
	WindowWhy string // the reason for the limit
}

// background reports whether the worker, not the client, sees the end of a job.
func (s *Scenario) background(number uint64) bool {
	return s.Background || s.Kinds && number>>slotBits&1 == 1
}

// unique reports whether a job has a unique ID.
func (s *Scenario) unique(number uint64) bool {
	return s.PerUnique > 0 || s.Kinds && number>>slotBits&2 == 2
}

// NoWorkers reports whether the server answers the requests itself.
func (s *Scenario) NoWorkers() bool { return s.Request != codec.NoEffect }

// common are the scenarios that most protocols have. An adapter may change their descriptions.
var common = []Scenario{
	{Name: "cycle", About: "submit, assign, complete, result"},
	{Name: "background", About: "queue jobs (only this part is measured), then process them", Backlog: true, Enqueue: true, Background: true},
	{Name: "unique", About: "as in background, with a different unique ID for each job", Backlog: true, Enqueue: true, Background: true, PerUnique: 1},
	{Name: "drain", About: "queue all jobs, then process them (only this part is measured)", Backlog: true, Background: true},
	{Name: "priorities", About: "as in cycle, with jobs of all priorities", Mixed: true},
	{Name: "mixed", About: "as in cycle, with jobs of all priorities, in foreground and background, with and without unique IDs", Mixed: true, Kinds: true},
	{Name: "updates", About: "as in cycle, with two progress reports for each job", Updates: 2},
	{Name: "coalesce", About: "as in cycle, with four submissions of each unique ID, which the server combines into one job", PerUnique: 4},
	{Name: "chaos", About: "as in cycle, while bench kills workers that have jobs", Kills: true},
	{Name: "crash", About: "kill the server while jobs are queued, start it again, and count what it has kept", Backlog: true, Background: true, Crash: true},
	{Name: "crash-unique", About: "as in crash, with a different unique ID for each job", Backlog: true, Background: true, Crash: true, PerUnique: 1},
	{Name: "echo", About: "requests whose data the server returns; no jobs and no workers", Request: codec.Echo},
	{Name: "status", About: "the state of a job that does not exist; no workers", Request: codec.Query},
}

// Adapter makes the clients and workers that load the servers of a protocol. Only Protocol is required:
// what is missing is derived from the message types.
type Adapter struct {
	Protocol  *codec.Protocol
	Scenarios []Scenario // of those with a common name only the description counts; nil: all that the message types allow

	Client func(*ClientConn, *Scenario) Client
	Worker func(*WorkerConn, *Scenario) Worker

	OneGrab bool // a worker can only ask for one job at a time
	Forgets bool // the server does not assign a job again whose worker disconnects, even if the assignment did not arrive

	types *messageTypes
}

// Client submits jobs on one connection.
type Client interface {
	Submit(j *Job, payload []byte)
	Handle(f *codec.Frame) // handles a message of the server, which is valid during the call
}

// Worker processes jobs on one connection.
type Worker interface {
	Begin() // sends the first messages
	Handle(f *codec.Frame)
}

var adapters []*Adapter

// Register adds the load of a protocol. A protocol whose message types say too little, and whose adapter
// has no Client and Worker, has no scenarios.
func Register(a *Adapter) {
	a.types = messageTypesOf(a.Protocol)
	a.OneGrab = a.OneGrab || a.types.oneGrab()
	own := a.Scenarios
	if own == nil {
		own = slices.DeleteFunc(slices.Clone(common), func(s Scenario) bool { return !a.types.allow(&s) })
	}
	a.Scenarios = nil
	for _, s := range own {
		if i := slices.IndexFunc(common, func(c Scenario) bool { return c.Name == s.Name }); i >= 0 {
			about, why := s.About, s.WindowWhy
			s = common[i]
			s.About, s.WindowWhy = cmp.Or(about, s.About), why
			s.Background = s.Background || a.Client != nil || !a.types.result
		}
		if !s.Background && !s.NoWorkers() && a.types.submit(normal, false).Blocks == codec.Attached {
			s.MaxWindow = 1
		}
		a.Scenarios = append(a.Scenarios, s)
	}
	adapters = append(adapters, a)
}

// adapterOf returns the adapter of the protocol with that name, or nil.
func adapterOf(name string) *Adapter {
	if i := slices.IndexFunc(adapters, func(a *Adapter) bool { return a.Protocol.Name == name }); i >= 0 {
		return adapters[i]
	}
	return nil
}

// scenarioOf returns a scenario of a protocol by the names of both, or nil.
func scenarioOf(protocol, name string) *Scenario {
	if a := adapterOf(protocol); a != nil {
		if i := slices.IndexFunc(a.Scenarios, func(s Scenario) bool { return s.Name == name }); i >= 0 {
			return &a.Scenarios[i]
		}
	}
	return nil
}

// Scenarios lists the scenarios of a protocol; nil if there is no load for it.
func Scenarios(p *codec.Protocol) []Scenario {
	if a := adapterOf(p.Name); a != nil {
		return a.Scenarios
	}
	return nil
}

// grabs is how many requests for a job a worker has outstanding if the user does not say.
func (a *Adapter) grabs(c *Config) int {
	if a.OneGrab {
		return 1
	}
	flight := c.Window * c.Clients
	if c.Rate != nil { // as many jobs as are submitted while a request for a job takes its way, which takes longer on a busy server
		rate, takes := c.Rate.highest(), time.Millisecond
		if rate > 250_000 {
			takes *= 4
		}
		flight = max(flight, int(rate*takes.Seconds()))
	}
	return max(1, min(flight/c.Workers, 1024))
}

// confirmsEnds reports whether the server confirms to a worker that a job has ended.
func (a *Adapter) confirmsEnds() bool { return a.Worker != nil || len(a.types.finish.Answers) > 0 }

func (a *Adapter) client(c *ClientConn, s *Scenario) Client {
	switch {
	case s.NoWorkers():
		return newRequester(c, s)
	case a.Client != nil:
		return a.Client(c, s)
	}
	return newClient(c, s)
}

func (a *Adapter) worker(c *WorkerConn, s *Scenario) Worker {
	if a.Worker != nil {
		return a.Worker(c, s)
	}
	return newWorker(c, s)
}

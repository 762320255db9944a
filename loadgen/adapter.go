package loadgen

import (
	"cmp"
	"slices"
	"time"

	"jobwire/codec"
)

// Scenario describes what the clients and workers of a run do.
type Scenario struct {
	Name, About string

	Backlog bool // clients queue all jobs before the first worker starts
	// with Backlog: the measured part ends when all jobs are queued. The workers then process the jobs to show that none
	// is lost
	Enqueue bool
	// background jobs: the server sends no result to the client, so the job ends when its worker completes it
	Background bool
	Mixed      bool // jobs have random priorities instead of normal priority
	Kinds      bool // a mix: half of the jobs are background jobs, and half of each kind have a unique ID
	Updates    int  // number of progress reports (or touch commands) that a worker sends for each job
	PerUnique  int  // number of consecutive submissions with the same unique ID; 0: jobs have no unique ID
	Kills      bool // the run disconnects workers that have jobs, and connects new workers in their place
	Crash      bool // the run kills the server: see [Crash]
	// codec.Echo or codec.Query: clients send such requests instead of jobs, and there are no workers. codec.NoEffect:
	// clients submit jobs
	Request codec.Effect

	MaxWindow int    // highest Config.Window, in jobs; 0: no limit
	WindowWhy string // the reason for MaxWindow, for error messages
}

// background reports whether the job with this number is a background job, which ends when its worker completes it.
func (s *Scenario) background(number uint64) bool {
	return s.Background || s.Kinds && number>>slotBits&1 == 1
}

// unique reports whether the job with this number has a unique ID.
func (s *Scenario) unique(number uint64) bool {
	return s.PerUnique > 0 || s.Kinds && number>>slotBits&2 == 2
}

// NoWorkers reports whether the server answers the requests of the clients without a worker.
func (s *Scenario) NoWorkers() bool { return s.Request != codec.NoEffect }

// common are the scenarios that several protocols have. An adapter may replace their descriptions.
var common = []Scenario{
	{Name: "cycle", About: "submit, assign, complete, result"},
	{Name: "background", About: "queue jobs (only this part is measured), then process them", Backlog: true, Enqueue: true,
		Background: true},
	{Name: "unique", About: "as in background, with a different unique ID for each job", Backlog: true, Enqueue: true,
		Background: true, PerUnique: 1},
	{Name: "drain", About: "queue all jobs, then process them (only this part is measured)", Backlog: true,
		Background: true},
	{Name: "priorities", About: "as in cycle, with jobs of all priorities", Mixed: true},
	{Name: "mixed", About: "as in cycle, with jobs of all priorities, in foreground and background, with and without unique IDs", Mixed: true, Kinds: true},
	{Name: "updates", About: "as in cycle, with two progress reports for each job", Updates: 2},
	{Name: "coalesce", About: "as in cycle, with four submissions of each unique ID, which the server combines into one job", PerUnique: 4},
	{Name: "chaos", About: "as in cycle, while bench kills workers that have jobs", Kills: true},
	{Name: "crash", About: "kill the server while jobs are queued, start it again, and count what it has kept",
		Backlog: true, Background: true, Crash: true},
	{Name: "crash-unique", About: "as in crash, with a different unique ID for each job", Backlog: true, Background: true,
		Crash: true, PerUnique: 1},
	{Name: "echo", About: "requests whose data the server returns; no jobs and no workers", Request: codec.Echo},
	{Name: "status", About: "the state of a job that does not exist; no workers", Request: codec.Query},
}

// Adapter describes how to load the servers of one protocol. Only Protocol is required: scenarios, clients and
// workers that it does not set are derived from the message types.
type Adapter struct {
	Protocol *codec.Protocol
	// scenarios of the protocol. One with the name of a common scenario takes only About and WindowWhy from this entry.
	// nil: all common scenarios for which the protocol has message types
	Scenarios []Scenario

	Client func(*ClientConn, *Scenario) Client // creates a client; nil: derived from the message types
	Worker func(*WorkerConn, *Scenario) Worker // creates a worker; nil: derived from the message types

	// a worker can have only one request for a job outstanding; Register also sets it if the message types require it
	OneGrab bool
	// if a worker disconnects, the server does not assign its job again, even if the worker had not received the
	// assignment
	Forgets bool

	types *messageTypes
}

// Client submits the jobs of one connection and handles the messages that the connection receives. Its methods are
// called one at a time.
type Client interface {
	Submit(j *Job, payload []byte) // sends the messages that submit the job; the payload is valid during the call
	Handle(f *codec.Frame)         // handles a message of the server, which is valid during the call
}

// Worker processes jobs on one connection. Its methods are called one at a time.
type Worker interface {
	Begin()                // sends the first messages: registers the functions and asks for jobs
	Handle(f *codec.Frame) // handles a message of the server, which is valid during the call
}

// adapters are the registered adapters, by the name of their protocol.
var adapters = map[string]*Adapter{}

// Register adds the load of a protocol. If the adapter lists no scenarios, it gets the common scenarios for which the
// protocol has all message types: a protocol that lacks a step of a job (submit, ask, complete or delete) gets no
// scenario with jobs. Register is not safe for concurrent use.
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
		if !s.Background && !s.NoWorkers() && a.types.submit(normal, foreground).Blocks == codec.Attached {
			s.MaxWindow = 1
		}
		a.Scenarios = append(a.Scenarios, s)
	}
	adapters[a.Protocol.Name] = a
}

// scenarioOf returns the scenario of a protocol, given the names of both, or nil.
func ScenarioOf(protocol, name string) *Scenario {
	if a := adapters[protocol]; a != nil {
		if i := slices.IndexFunc(a.Scenarios, func(s Scenario) bool { return s.Name == name }); i >= 0 {
			return &a.Scenarios[i]
		}
	}
	return nil
}

// Scenarios returns the scenarios of a protocol, or nil if the protocol has no load.
func Scenarios(p *codec.Protocol) []Scenario {
	if a := adapters[p.Name]; a != nil {
		return a.Scenarios
	}
	return nil
}

// grabs returns the default of Config.Grabs: enough outstanding requests for the expected number of jobs in flight,
// from 1 to 1,024 for each worker.
func (a *Adapter) grabs(c *Config) int {
	if a.OneGrab {
		return 1
	}
	flight := c.Window * c.Clients
	if c.Rate != nil { // the number of jobs submitted during one round trip of a job request: 1 ms, or 4 ms on a busy server
		rate, takes := c.Rate.Highest(), time.Millisecond
		if rate > 250_000 {
			takes *= 4
		}
		flight = max(flight, int(rate*takes.Seconds()))
	}
	return max(1, min(flight/c.Workers, 1024))
}

// confirmsEnds reports whether the server replies to the message with which a worker completes or deletes a job.
func (a *Adapter) confirmsEnds() bool { return a.Worker != nil || len(a.types.finish.Answers) > 0 }

// client returns the client of a connection: one that sends requests without jobs if the scenario has no workers, that
// of the protocol, or the general one.
func (a *Adapter) client(c *ClientConn, s *Scenario) Client {
	switch {
	case s.NoWorkers():
		return newRequester(c, s)
	case a.Client != nil:
		return a.Client(c, s)
	}
	return newClient(c, s)
}

// worker returns the worker of a connection: that of the protocol, or the general one.
func (a *Adapter) worker(c *WorkerConn, s *Scenario) Worker {
	if a.Worker != nil {
		return a.Worker(c, s)
	}
	return newWorker(c, s)
}

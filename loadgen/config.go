package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/loadgen/schedule"
)

// Config is the configuration of a run. [Config.Complete] replaces zero values by the documented defaults and checks
// the limits.
//
// A run has up to four phases: Ramp, in which the clients start; Warmup; the measured part, whose jobs and latencies
// are reported; and the drain, in which the jobs that are still in flight finish. Rates are in events per second.
type Config struct {
	Protocol *codec.Protocol
	Scenario string // name of the scenario, see [Scenarios]; "": "cycle"
	// opens a connection to the server; called for each client and worker, and again for each reconnection and each
	// replaced worker
	Dial func(context.Context) (net.Conn, error)

	Clients   int // number of connections that submit jobs; 0: 16. Clients and workers together: at most 20,000
	Workers   int // number of connections that process jobs; 0: 4
	Functions int // number of functions (Gearman) or tubes (Beanstalk) over which the jobs are distributed; 0: 1
	// exponent of the Zipf distribution of jobs over functions, greater than 1 and at most 100; the first function gets
	// most jobs. 0: every function gets the same number of jobs
	Zipf   float64
	Prefix string // start of the function or tube names; "": "jobwire"
	Window int    // number of jobs that each client keeps in flight in a closed loop, at most 2^20; 0: 1
	// minimum number of jobs that a client of a closed loop submits together: it waits until the window has room for them;
	// at most Window; 0: 1
	Batch int
	// maximum number of jobs in flight for each client in an open loop, at most 2^20; 0: 2^26 divided by Clients, but at
	// least 1,024 and at most 65,536
	MaxFlight int
	// maximum number of job requests that a worker has outstanding; 0: 1 if the protocol allows only one request,
	// otherwise up to 1,024, depending on the expected number of jobs in flight
	Grabs int
	Size  Sizes // payload size of each job in bytes; zero value: MinPayload
	// bytes of the payloads after the first MinPayload bytes, repeated if they are too few; nil: random bytes
	Content []byte
	// pause of a client between the end of a job and its next submission, in a closed loop; 0: no pause
	Think time.Duration
	// time that a worker takes to process a job; 0: the worker completes the job at once, except in scenario chaos (1 ms)
	Work time.Duration

	// number of jobs to submit, warm-up included; 0: no limit, or 100,000 in a scenario with a backlog (crash: 1,000,000)
	Count int64
	// length of the measured part; 0: until Count jobs have ended; if Count and Duration are both 0: 10 s
	Duration time.Duration
	// time between Ramp and the measured part; its jobs are in Account and in the time series, but not in the rate and the
	// latencies
	Warmup time.Duration
	// jobs in flight at the end count as lost if no job ends for DrainTimeout plus Work; 0: 10 s
	DrainTimeout time.Duration

	Rate *schedule.Schedule // arrival schedule of an open loop; nil: closed loop
	Kill float64            // average number of workers that the run disconnects per second, in a scenario with Kills; 0: none

	// time over which the clients of a closed loop start, one after the other; it comes before Warmup. 0: all clients
	// start at once
	Ramp time.Duration
	// average number of clients of a closed loop that finish their jobs, disconnect and reconnect per second, in the
	// measured part; 0: none
	Reconnect float64
	Seed      uint64 // seed of all random choices

	// check that the server kept first-in, first-out order (linearizability). Needs one function, jobs of one priority,
	// and a Count of at most 5,000,000
	Check bool

	Interval    time.Duration   // length of an entry of the time series, at least 1 ms; 0: 1 s
	OnInterval  func(*Interval) // called after each interval; may be nil
	PhaseChange func()          // called at the start and at the end of the measured part; may be nil
}

// Default of Config.Count, in jobs, for scenarios that queue all jobs before the first worker starts.
const (
	backlogJobs = 100_000
	crashJobs   = 1_000_000 // in a scenario that kills the server
)

// DefaultDuration is the length of the measured part if both Config.Count and Config.Duration are 0.
const DefaultDuration = 10 * time.Second

// Limits of a Config.
const (
	maxConns  = 20000   // clients and workers
	maxWindow = 1 << 20 // jobs in flight for each client

	minInterval  = time.Millisecond // shortest Config.Interval
	maxIntervals = 100_000          // entries of the time series
	// jobs in flight whose number the configuration sets; they take 200 bytes of memory each
	maxInFlight = 1 << 24

	maxHistory = 5_000_000 // jobs of a run with Config.Check; the history takes about 200 bytes of memory for each job
)

// Complete returns the configuration with zero values replaced by the defaults of [Config]. It returns an error if
// the protocol has no load, the scenario does not exist, a value is outside its limits, or two settings exclude each
// other.
func (c Config) Complete() (Config, error) {
	c.Clients, c.Workers, c.Functions = cmp.Or(c.Clients, 16), cmp.Or(c.Workers, 4), cmp.Or(c.Functions, 1)
	c.Window, c.Batch = cmp.Or(c.Window, 1), cmp.Or(c.Batch, 1)
	c.Scenario, c.Prefix = cmp.Or(c.Scenario, "cycle"), cmp.Or(c.Prefix, "jobwire")
	c.DrainTimeout, c.Interval = cmp.Or(c.DrainTimeout, 10*time.Second), cmp.Or(c.Interval, time.Second)
	c.Size = cmp.Or(c.Size, Sizes{Lo: MinPayload, Hi: MinPayload})
	var names []string
	for _, s := range Scenarios(c.Protocol) {
		names = append(names, s.Name)
	}
	sc := ScenarioOf(c.Protocol.Name, c.Scenario)
	switch {
	case names == nil:
		return c, fmt.Errorf("bench does not support %s", c.Protocol.Title)
	case sc == nil:
		return c, fmt.Errorf("%s has no scenario %q: expected one of %s", c.Protocol.Title, c.Scenario,
			strings.Join(names, ", "))
	}
	if sc.Backlog && c.Count == 0 {
		c.Count = backlogJobs
		if sc.Crash {
			c.Count = crashJobs
		}
	}
	if sc.Kills && c.Work == 0 {
		c.Work = time.Millisecond // without this delay, workers would rarely have a job at the time of a kill
	}
	if c.Count == 0 && c.Duration == 0 {
		c.Duration = DefaultDuration
	}
	if err := c.checkValues(sc); err != nil {
		return c, err
	}
	return c, c.checkRun(sc)
}

// checkValues returns an error if a value is outside its limits, or two settings exclude each other.
func (c *Config) checkValues(sc *Scenario) error {
	switch {
	case min(c.Clients, c.Workers, c.Functions, c.Window, c.Batch) < 1 || min(c.MaxFlight, c.Grabs) < 0:
		return errors.New("clients, workers, functions, window and batch must be at least 1, and grabs and the jobs in flight not negative")
	case c.Zipf != 0 && !(c.Zipf > 1 && c.Zipf <= 100):
		return fmt.Errorf("exponent %v of a Zipf distribution: expected a number greater than 1 and at most 100", c.Zipf)
	case c.Zipf != 0 && c.Functions == 1:
		return errors.New("a Zipf distribution over functions needs several functions (--functions)")
	case c.Batch > c.Window:
		return fmt.Errorf("batch %d: expected at most the window, %d", c.Batch, c.Window)
	case c.Clients+c.Workers > maxConns:
		return fmt.Errorf("%d clients and workers: expected at most %d connections", c.Clients+c.Workers, maxConns)
	case max(c.Window, c.MaxFlight) > maxWindow:
		return fmt.Errorf("%d jobs in flight for each client: expected at most %d", max(c.Window, c.MaxFlight), maxWindow)
	case c.Size.Lo < MinPayload:
		return fmt.Errorf("payload of %d bytes: expected at least %d bytes, because the payload contains the number of the job and a checksum", c.Size.Lo, MinPayload)
	case sc.Backlog && (c.Rate != nil || c.Duration > 0):
		return fmt.Errorf("scenario %s cannot be used with --rate or --duration, because it ends with its last job; set the number of jobs (--count)", sc.Name)
	case c.Interval < minInterval:
		return fmt.Errorf("interval %v: expected at least %v", c.Interval, minInterval)
	case min(c.Duration, c.Warmup, c.DrainTimeout, c.Think, c.Work, c.Ramp) < 0 || c.Count < 0 || c.Reconnect < 0:
		return errors.New("counts and times must not be negative")
	case (c.Rate != nil || sc.Backlog) && (c.Ramp > 0 || c.Reconnect > 0):
		return errors.New("clients that begin one after the other or reconnect need a closed loop, and a scenario without a backlog")
	}
	return nil
}

// checkRun returns an error if the protocol or the scenario does not support the settings, or if the records of the run
// would take too much memory.
func (c *Config) checkRun(sc *Scenario) error {
	switch {
	case c.Check && (sc.Mixed || sc.Kills || sc.NoWorkers() || sc.PerUnique > 0 || c.Functions > 1):
		return errors.New("--linear needs one queue whose jobs have one priority: it cannot be used with several functions, or with scenario priorities, coalesce, unique, chaos, echo or status")
	case c.Check && (c.Count == 0 || c.Count > maxHistory):
		return fmt.Errorf("--linear needs a number of jobs (--count), at most %d", maxHistory)
	case c.Grabs > 1 && adapters[c.Protocol.Name].OneGrab:
		return fmt.Errorf("grabs %d: expected 1, because a %s worker asks for one job at a time", c.Grabs, c.Protocol.Title)
	case c.Duration/c.Interval > maxIntervals:
		return fmt.Errorf("the duration %v has %d intervals of %v: expected at most %d; use longer intervals (--interval)",
			c.Duration, c.Duration/c.Interval, c.Interval, maxIntervals)
	case (c.Rate == nil || c.MaxFlight > 0) && c.slots(sc) > maxInFlight:
		return fmt.Errorf("the clients may have %d jobs in flight: expected at most %d", c.slots(sc), maxInFlight)
	case sc.MaxWindow > 0 && c.Window > sc.MaxWindow:
		return fmt.Errorf("window %d with scenario %s: expected at most %d (%s); use more clients", c.Window, sc.Name,
			sc.MaxWindow, sc.WindowWhy)
	}
	return nil
}

// openSlots is the maximum number of jobs in flight for each client in an open loop without Config.MaxFlight.
const openSlots = 1 << 16

// slots returns the maximum number of jobs in flight in the whole run, which is the number of slots to allocate.
func (c *Config) slots(sc *Scenario) int {
	switch {
	case sc.Backlog:
		return int((c.Count + int64(c.Clients) - 1) / int64(c.Clients) * int64(c.Clients))
	case c.Rate != nil && sc.MaxWindow > 0:
		return c.Clients * sc.MaxWindow
	case c.Rate != nil && c.MaxFlight > 0:
		return c.Clients * c.MaxFlight
	case c.Rate != nil:
		return c.Clients * max(1024, min(openSlots, maxSlots/c.Clients/4))
	}
	return c.Clients * c.Window
}

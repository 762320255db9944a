package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"jobwire/codec"
)

// Config says what a run does. [Config.Complete] replaces zeros.
type Config struct {
	Protocol *codec.Protocol
	Scenario string // its name; "" is "cycle"
	Dial     func(context.Context) (net.Conn, error)

	Clients   int     // connections that submit; 0 is 16
	Workers   int     // connections that work; 0 is 4
	Functions int     // functions, or tubes, that jobs are spread over; 0 is 1
	Zipf      float64 // exponent of the Zipf distribution of jobs over the functions, greater than 1: the first function has most jobs; 0 is evenly
	Prefix    string  // of their names; "" is "jobwire"
	Window    int     // jobs that a client keeps in flight in a closed loop; 0 is 1
	Batch     int     // jobs that a client of a closed loop submits together, once so many of the window are free; 0 is 1
	MaxFlight int     // jobs that a client has in flight in an open loop at most; 0 is as many as the memory for 2^26 jobs allows, up to 65,536
	Grabs     int     // requests for a job that a worker has outstanding; 0 is the default of the adapter
	Size      Sizes
	Content   []byte        // of the payloads, after the first MinPayload bytes; none is random bytes
	Think     time.Duration // from a job's end to the client's next
	Work      time.Duration // from a worker's getting a job to its result

	Count        int64         // jobs; 0 is as many as Duration allows
	Duration     time.Duration // 0 is until Count; if both are 0 it is 10 s
	Warmup       time.Duration // at the beginning, that is not counted
	DrainTimeout time.Duration // how long what is still under way at the end may take without any progress; 0 is 10 s

	Rate *Schedule // of an open loop; nil is a closed one
	Kill float64   // workers killed a second, in a scenario that kills

	Ramp      time.Duration // in which the clients of a closed loop begin to submit, one after the other; before Warmup
	Reconnect float64       // clients of a closed loop that disconnect, without jobs in flight, and connect again a second
	Seed      uint64

	Check bool // whether the queue was linear: of a short run of one function, with jobs of one priority

	Interval    time.Duration // between two entries of the time series; 0 is 1 s
	OnInterval  func(*Interval)
	PhaseChange func() // called as the measured part begins, and as it ends; nil is nothing
}

// backlogJobs is how many jobs are queued where the user does not say.
const (
	backlogJobs = 100_000
	crashJobs   = 1_000_000 // until a kill
)

// DefaultDuration is how long a run takes without Count and Duration.
const DefaultDuration = 10 * time.Second

// Limits of a run.
const (
	maxConns  = 20000
	maxWindow = 1 << 20

	minInterval = time.Millisecond

	maxHistory = 5_000_000 // jobs whose history is kept, some 200 bytes each
)

// Complete returns the configuration with its zeros replaced, or an error that says what
// cannot be.
func (c Config) Complete() (Config, error) {
	for _, d := range []struct {
		v     *int
		value int
	}{{&c.Clients, 16}, {&c.Workers, 4}, {&c.Functions, 1}, {&c.Window, 1}, {&c.Batch, 1}} {
		if *d.v == 0 {
			*d.v = d.value
		}
	}
	if c.Scenario == "" {
		c.Scenario = "cycle"
	}
	if c.Prefix == "" {
		c.Prefix = "jobwire"
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 10 * time.Second
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Size == (Sizes{}) {
		c.Size = Sizes{Lo: MinPayload, Hi: MinPayload}
	}
	var names []string
	for _, s := range Scenarios(c.Protocol) {
		names = append(names, s.Name)
	}
	sc := scenarioOf(c.Protocol.Name, c.Scenario)
	switch {
	case names == nil:
		return c, fmt.Errorf("bench does not support %s", c.Protocol.Title)
	case sc == nil:
		return c, fmt.Errorf("%s has no scenario %q: expected one of %s", c.Protocol.Title, c.Scenario, strings.Join(names, ", "))
	}
	if sc.Backlog && c.Count == 0 {
		c.Count = backlogJobs
		if sc.Crash {
			c.Count = crashJobs
		}
	}
	if sc.Kills && c.Work == 0 {
		c.Work = time.Millisecond // else a worker hardly ever has a job when it is killed
	}
	if c.Count == 0 && c.Duration == 0 {
		c.Duration = DefaultDuration
	}
	switch {
	case c.Clients < 1 || c.Workers < 1 || c.Functions < 1 || c.Window < 1 || c.Batch < 1 || c.MaxFlight < 0 || c.Grabs < 0:
		return c, errors.New("clients, workers, functions, window and batch must be at least 1, and grabs and the jobs in flight not negative")
	case c.Zipf != 0 && !(c.Zipf > 1 && c.Zipf <= 100):
		return c, fmt.Errorf("exponent %v of a Zipf distribution: expected a number greater than 1 and at most 100", c.Zipf)
	case c.Zipf != 0 && c.Functions == 1:
		return c, errors.New("a Zipf distribution over functions needs several functions (--functions)")
	case c.Batch > c.Window:
		return c, fmt.Errorf("batch %d: expected at most the window, %d", c.Batch, c.Window)
	case c.Clients+c.Workers > maxConns:
		return c, fmt.Errorf("%d clients and workers: expected at most %d connections", c.Clients+c.Workers, maxConns)
	case max(c.Window, c.MaxFlight) > maxWindow:
		return c, fmt.Errorf("%d jobs in flight for each client: expected at most %d", max(c.Window, c.MaxFlight), maxWindow)
	case c.Size.Lo < MinPayload:
		return c, fmt.Errorf("payload of %d bytes: expected at least %d bytes, because the payload contains the number of the job and a checksum", c.Size.Lo, MinPayload)
	case sc.Backlog && (c.Rate != nil || c.Duration > 0):
		return c, fmt.Errorf("scenario %s cannot be used with --rate or --duration, because it ends with its last job; set the number of jobs (--count)", sc.Name)
	case c.Interval < minInterval:
		return c, fmt.Errorf("interval %v: expected at least %v", c.Interval, minInterval)
	case c.Count < 0 || c.Duration < 0 || c.Warmup < 0 || c.DrainTimeout < 0 || c.Think < 0 || c.Work < 0 || c.Ramp < 0 || c.Reconnect < 0:
		return c, errors.New("counts and times must not be negative")
	case (c.Rate != nil || sc.Backlog) && (c.Ramp > 0 || c.Reconnect > 0):
		return c, errors.New("clients that begin one after the other or reconnect need a closed loop, and a scenario without a backlog")
	case c.Check && (sc.Mixed || sc.Kills || sc.NoWorkers() || sc.PerUnique > 0 || c.Functions > 1):
		return c, fmt.Errorf("--linear needs one queue whose jobs have one priority: it cannot be used with several functions, or with scenario priorities, coalesce, unique, chaos, echo or status")
	case c.Check && (c.Count == 0 || c.Count > maxHistory):
		return c, fmt.Errorf("--linear needs a number of jobs (--count), at most %d", maxHistory)
	case c.Grabs > 1 && adapterOf(c.Protocol.Name).OneGrab:
		return c, fmt.Errorf("grabs %d: expected 1, because a %s worker asks for one job at a time", c.Grabs, c.Protocol.Title)
	case c.slots(sc) > maxSlots:
		return c, fmt.Errorf("clients and window allow %d jobs in flight: expected at most %d", c.slots(sc), maxSlots)
	case sc.MaxWindow > 0 && c.Window > sc.MaxWindow:
		return c, fmt.Errorf("window %d with scenario %s: expected at most %d (%s); use more clients", c.Window, sc.Name, sc.MaxWindow, sc.WindowWhy)
	}
	return c, nil
}

// openSlots is how many jobs an open loop may have under way for each client.
const openSlots = 1 << 16

// slots is how many jobs may be under way.
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

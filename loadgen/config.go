package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"jobwire/codec"
)

// Config says what a run does. Zeros are replaced as [Config.Complete] tells.
type Config struct {
	Protocol *codec.Protocol
	Scenario string // its name; "" is "cycle"
	Dial     func(context.Context) (net.Conn, error)

	Clients   int    // connections that submit; 0 is 16
	Workers   int    // connections that work; 0 is 4
	Functions int    // functions, or tubes, that jobs are spread over; 0 is 1
	Prefix    string // of their names; "" is "jobwire"
	Window    int    // jobs that a client has under way in a closed loop at most, filled up when half is free; 0 is 1
	Grabs     int    // requests for a job that a worker has outstanding; 0 is the best guess of the dialect
	Size      Sizes
	Think     time.Duration // from a job's end to the client's next
	Work      time.Duration // from a worker's getting a job to its result

	Count    int64         // jobs; 0 is as many as Duration allows
	Duration time.Duration // 0 is until Count; if both are 0 it is 10 s
	Warmup   time.Duration // at the beginning, that is not counted
	Settle   time.Duration // how long what is still under way at the end may take without any progress; 0 is 10 s

	Rate *Schedule // of an open loop; nil is a closed one
	Kill float64   // workers killed a second, in a scenario that kills
	Seed uint64

	Check bool // whether the queue was linear: of a short run of one function, with jobs of one priority

	Interval time.Duration // between two entries of the time series; 0 is 1 s
	Watch    func(*Interval)
	Edge     func() // called as the measured part begins, and as it ends; nil is nothing
}

// standingJobs is how many jobs are queued where the user does not say.
const standingJobs = 100_000

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
	}{{&c.Clients, 16}, {&c.Workers, 4}, {&c.Functions, 1}, {&c.Window, 1}} {
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
	if c.Settle == 0 {
		c.Settle = 10 * time.Second
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Size == (Sizes{}) {
		c.Size = Sizes{Lo: MinPayload, Hi: MinPayload}
	}
	sys := systems[c.Protocol.Name]
	if sys == nil {
		return c, fmt.Errorf("there is no load for %s", c.Protocol.Title)
	}
	sc := sys.scenario(c.Scenario)
	if sc == nil {
		return c, fmt.Errorf("%s has no scenario %q: there are %s", c.Protocol.Title, c.Scenario, sys.names())
	}
	if sc.Standing && c.Count == 0 {
		c.Count = standingJobs
	}
	if sc.Kills && c.Work == 0 {
		c.Work = time.Millisecond // else a worker hardly ever has a job when it is killed
	}
	if c.Count == 0 && c.Duration == 0 {
		c.Duration = 10 * time.Second
	}
	switch {
	case c.Clients < 1 || c.Workers < 1 || c.Functions < 1 || c.Window < 1 || c.Grabs < 0:
		return c, errors.New("clients, workers, functions, window and grabs must be above zero")
	case c.Clients+c.Workers > maxConns:
		return c, fmt.Errorf("at most %d connections", maxConns)
	case c.Window > maxWindow:
		return c, fmt.Errorf("a window is at most %d", maxWindow)
	case c.Size.Lo < MinPayload:
		return c, fmt.Errorf("a payload holds at least its job's number and a check, %d bytes", MinPayload)
	case sc.Standing && (c.Rate != nil || c.Duration > 0):
		return c, fmt.Errorf("%s ends with its last job and has no rate to keep; give it a count", sc.Name)
	case c.Interval < minInterval:
		return c, fmt.Errorf("an interval is at least %v", minInterval)
	case c.Count < 0 || c.Duration < 0 || c.Warmup < 0 || c.Settle < 0 || c.Think < 0 || c.Work < 0:
		return c, errors.New("counts and times must not be below zero")
	case c.Check && (sc.Mixed || sc.Kills || sc.Alone || sc.Share > 0 || c.Functions > 1):
		return c, fmt.Errorf("a history of %s, or of several functions, is not one of a single queue: it cannot be checked", sc.Name)
	case c.Check && (c.Count == 0 || c.Count > maxHistory):
		return c, fmt.Errorf("to check its history a run needs a count of jobs, at most %d", maxHistory)
	case c.slots(sc) > maxSlots:
		return c, fmt.Errorf("at most %d jobs can be under way", maxSlots)
	case sc.MaxWindow > 0 && c.Window > sc.MaxWindow:
		return c, fmt.Errorf("%s: %s, so the window is at most %d; use more clients", sc.Name, sc.WindowWhy, sc.MaxWindow)
	}
	return c, nil
}

// openSlots is how many jobs an open loop may have under way for each client.
const openSlots = 1 << 16

// slots is how many jobs may be under way.
func (c *Config) slots(sc *Scenario) int {
	switch {
	case sc.Standing:
		return int((c.Count + int64(c.Clients) - 1) / int64(c.Clients) * int64(c.Clients))
	case c.Rate != nil:
		return c.Clients * max(1024, min(openSlots, maxSlots/c.Clients/4))
	}
	return c.Clients * c.Window
}

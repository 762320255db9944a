package loadgen

import (
	"context"
	"errors"
	"runtime"
	"time"

	"jobwire/internal/version"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/schedule"
)

// Report is the result of a run in the form in which bench prints, saves and compares it. In JSON, times in
// microseconds are null if they are not known, or if too few samples support the percentile.
type Report struct {
	version.Head
	Environment *machine.Environment `json:"environment,omitempty"` // machine of the load generator; nil: not known
	Verdict     Verdict              `json:"verdict"`
	Reasons     []string             `json:"verdict_reasons"` // reasons for the verdict; empty if the run passed
	Protocol    string               `json:"protocol"`
	Scenario    string               `json:"scenario"`
	Target      string               `json:"target"` // name of the server: its address or its command line
	// the part of the load that this process generated; nil for a whole load
	Share *Share `json:"share,omitempty"`
	// the shares of which [Merge] made this report; nil for the report of one process
	Merged    *Merged   `json:"merged,omitempty"`
	Started   time.Time `json:"started"`        // start of the measured part, in UTC
	Clients   int       `json:"clients"`        // number of client connections
	Workers   int       `json:"workers"`        // number of worker connections; 0 if the scenario has no workers
	Functions int       `json:"functions"`      // number of functions or tubes
	Zipf      float64   `json:"zipf,omitempty"` // exponent of the distribution of jobs over functions; 0: uniform
	// number of jobs that each client keeps in flight; 0 in an open loop
	Window  int    `json:"window"`
	Grabs   int    `json:"grabs"`   // maximum number of job requests that each worker has outstanding
	Payload string `json:"payload"` // payload sizes in bytes, in the format of ParseSizes
	Seed    uint64 `json:"seed"`
	// schedule of an open loop, in the format of schedule.Parse; "" in a closed loop
	Requested string `json:"schedule,omitempty"`

	// jobs that ended in the measured part; in scenarios that measure only queuing: submissions that the server
	// acknowledged
	Jobs    int64   `json:"jobs"`
	Seconds float64 `json:"seconds"` // length of the measured part
	// jobs of an open loop that ended after the measured part: their latencies are included, but Jobs and Rate do not
	// count them
	AfterWindow int64   `json:"settled"`
	Rate        float64 `json:"rate"` // Jobs / Seconds; 0 if the measured part took no time

	// open loop only: average of the schedule over the measured part, in jobs per second
	RateRequested float64 `json:"rate_requested,omitempty"`
	// open loop only: the number of jobs in flight did not grow; see keepsUp. nil in a closed loop
	KeptUp     *bool `json:"kept_up,omitempty"`
	Backlog    int64 `json:"backlog"`              // jobs in flight at the end of the measured part
	Reconnects int64 `json:"reconnects,omitempty"` // reconnections of clients in the measured part

	Account
	Interrupted bool   `json:"interrupted"` // the user interrupted the run; the report covers the time until then
	Error       string `json:"error"`       // why the run ended early, other than by an interruption; "" if it did not

	Linear *Linearity `json:"linear,omitempty"` // result of Config.Check; nil if it was not set

	Latency map[string]latency.Quantiles `json:"latency_us"` // latencies by stage, see [Stages]

	CPU        PerJob `json:"cpu_us_per_job"` // CPU time per job, in microseconds
	Processors int    `json:"processors"`     // number of processors that the load generator may use (GOMAXPROCS)
	Cores

	Collections int64 `json:"gc_count"` // garbage collections of the load generator in the measured part
	// total time for which these collections stopped the load generator, in microseconds
	Pauses float64 `json:"gc_pauses_us"`
	// open loop only: delay between the scheduled time and the submission of a job, which the load generator causes
	Pacing *latency.Quantiles `json:"pacing_late_us"`
	// the load generator, or another program on its machine, was the bottleneck
	Saturated  bool   `json:"saturated"`
	Saturation string `json:"saturated_why"` // evidence for Saturated, and what to change; "" if not Saturated

	Objectives []SLOResult     `json:"slo,omitempty"`    // results of the objectives of --slo and --baseline
	Interval   float64         `json:"interval_seconds"` // length of an interval of Series, in seconds
	Series     []IntervalEntry `json:"intervals"`        // time series, one entry per interval, warm-up included
	// whether the rate or latency changed during the run; nil with fewer than eight complete intervals
	Stationary *Stationarity `json:"stationarity,omitempty"`
	// open loop with a random schedule only: whether the gaps between submissions were independent; nil if not checked
	Independence *schedule.Independence `json:"independence,omitempty"`
	Spectrum     []latency.Curve        `json:"spectrum,omitempty"` // latency by percentile, one curve per stage
	Heat         *latency.Heat          `json:"heatmap,omitempty"`  // number of jobs by latency and interval

	stages latency.Histograms // histograms of the whole run; not saved in JSON
}

// PerJob is the average CPU time per job.
type PerJob struct {
	Generator latency.Micros `json:"generator"`
	Target    latency.Micros `json:"target"`
}

// Cores is the average number of busy processors in the measured part: of the load generator, the target, and other
// programs (Foreign); Idle is the number of idle processors. Values are nil if they are not known. If the target's is
// not known, Foreign includes a target on the same machine.
type Cores struct {
	Generator *float64 `json:"generator_cpu"`
	Target    *float64 `json:"target_cpu"`
	Foreign   *float64 `json:"foreign_cpu"`
	Idle      *float64 `json:"idle_cpu"`
}

// IntervalEntry is one interval of the time series.
type IntervalEntry struct {
	// seconds since the start of the measured part; negative during the warm-up
	Start   float64 `json:"start"`
	Seconds float64 `json:"seconds"` // length of the interval
	// open loop only: average of the schedule over the interval, in jobs per second
	Requested float64 `json:"rate_requested,omitempty"`
	Jobs      int64   `json:"jobs"`  // jobs that ended in the interval
	Depth     int64   `json:"depth"` // jobs in flight at the end of the interval
	// CPU time of the target per job, in microseconds; 0: not known
	Target latency.Micros `json:"cpu_us_per_job_target,omitempty"`
	// CPU time of the load generator per job, in microseconds; 0: not known
	Generator latency.Micros               `json:"cpu_us_per_job_generator,omitempty"`
	Latency   map[string]latency.Quantiles `json:"latency_us"` // by stage
}

// Rate returns the jobs per second of the interval.
func (e *IntervalEntry) Rate() float64 { return perSecond(float64(e.Jobs), e.Seconds) }

// Recorder collects what a [Report] contains in addition to the [Result]: CPU times, the heat map, and the names of
// the target and the machine. Set its exported fields, call Attach before the run, and Report after it.
type Recorder struct {
	Target      string               // name of the server in the report
	Share       Share                // part of the load that this process generates; the zero value for a whole load
	Environment *machine.Environment // machine of the load generator; nil: not known
	Processor   machine.Processor    // reads the CPU time of the target
	Log         *latency.Log         // receives the latencies of every measured interval; may be nil

	// OnInterval is called after each interval. measured reports whether the interval is in the measured part.
	// OnInterval may be nil.
	OnInterval func(iv *Interval, measured bool)

	began, ended time.Time              // start and end of the measured part
	used         machine.Time           // during the measured part: values at its start; after it: the difference
	last         ends                   // CPU times at the end of the previous interval
	intervals    map[time.Duration]ends // CPU time used in each interval, by Interval.Start
	heatmap      latency.HeatMap
}

// ends is the CPU time of the target and of the load generator. Negative values are not known.
type ends struct{ target, generator time.Duration }

func (t *Recorder) now() ends { return ends{t.Processor.Now().Program, machine.ReadUsage().CPU} }

func (e ends) since(before ends) ends {
	return ends{machine.Elapsed(before.target, e.target), machine.Elapsed(before.generator, e.generator)}
}

// perJob returns the CPU time per job, or 0 if d is negative (not known) or there were no jobs.
func perJob(d time.Duration, jobs int64) latency.Micros {
	if d < 0 || jobs == 0 {
		return 0
	}
	return latency.Micros(float64(d) / 1e3 / float64(jobs))
}

// Attach connects the recorder to a run: it sets OnInterval and PhaseChange of the configuration. Call it before
// [Run].
func (t *Recorder) Attach(cfg *Config) {
	t.intervals = map[time.Duration]ends{}
	cfg.PhaseChange = func() {
		now := t.Processor.Now()
		t.last = t.now()
		if t.began.IsZero() {
			t.began, t.used = time.Now(), now
		} else {
			t.ended, t.used = time.Now(), now.Since(t.used)
		}
	}
	cfg.OnInterval = func(iv *Interval) {
		measured := !t.began.IsZero() && t.ended.IsZero()
		if measured {
			now := t.now()
			t.intervals[iv.Start], t.last = now.since(t.last), now
		}
		if measured || iv.AfterWindow {
			t.heatmap.Add(iv.Start, iv.Length, iv.Stages[latency.Total])
			if t.Log != nil {
				t.Log.Add(t.began.Add(iv.Start), iv.Length, iv.Stages)
			}
		}
		if t.OnInterval != nil && !iv.AfterWindow {
			t.OnInterval(iv, measured)
		}
	}
}

// planOf returns a report with the fields that are known before the run.
func planOf(cfg *Config) *Report {
	r := &Report{
		Head: version.NewHead(), Protocol: cfg.Protocol.Name, Scenario: cfg.Scenario, Clients: cfg.Clients,
		Workers: cfg.Workers, Functions: cfg.Functions, Zipf: cfg.Zipf,
		Window: cfg.Window, Grabs: cfg.Grabs, Payload: cfg.Size.String(), Seed: cfg.Seed, Interval: cfg.Interval.Seconds(),
		Series: []IntervalEntry{},
	}
	if cfg.Rate != nil {
		r.Window, r.Requested = 0, cfg.Rate.String()
	}
	if sc := scenarioOf(cfg.Protocol.Name, cfg.Scenario); sc.NoWorkers() {
		r.Workers, r.Grabs = 0, 0
	}
	return r
}

// Report returns the report of the run to which the recorder was attached.
func (t *Recorder) Report(res *Result) *Report {
	cfg := &res.Config
	r := planOf(cfg)
	r.Environment = t.Environment
	if t.Share.Shares > 0 {
		r.Share = &t.Share
	}
	r.Target, r.Started = t.Target, t.began.UTC().Round(time.Millisecond)
	r.Jobs, r.Seconds, r.Rate = res.Jobs, res.Took.Seconds(), res.Rate()
	r.Account, r.AfterWindow, r.Backlog, r.Reconnects = res.Account, res.AfterWindow, res.backlog, res.Reconnects
	r.Linear = res.Linear
	r.Latency = res.Latency.Quantiles()
	r.Processors, r.Collections, r.Pauses = runtime.GOMAXPROCS(0), res.GCs, float64(res.Pauses)/1e3
	switch {
	case errors.Is(res.Err, context.Canceled):
		r.Interrupted = true
	case res.Err != nil:
		r.Error = res.Err.Error()
	}
	if cfg.Rate != nil {
		r.Pacing = &res.Late
		r.Independence = res.Independence
		if res.Took > 0 { // a run that ended before the measurement has no rates
			r.RateRequested = cfg.Rate.Mean(cfg.Warmup, cfg.Warmup+res.Took)
			kept := r.keepsUp(res.steady)
			r.KeptUp = &kept
		}
	}
	r.distribute(&t.heatmap, res.Latency)
	r.processors(res.CPU, t.used)
	for i := range res.Series {
		iv := &res.Series[i]
		e := IntervalEntry{Start: iv.Start.Seconds(), Seconds: iv.Length.Seconds(), Jobs: iv.Done, Depth: iv.Depth,
			Latency: iv.Latency}
		if at := cfg.Warmup + iv.Start; cfg.Rate != nil && at >= 0 {
			e.Requested = cfg.Rate.Mean(at, at+iv.Length)
		}
		used := t.intervals[iv.Start]
		e.Target, e.Generator = perJob(used.target, e.Jobs), perJob(used.generator, e.Jobs)
		r.Series = append(r.Series, e)
	}
	r.Stationary = r.stationarity()
	r.Saturation = r.saturation(cfg, t.used.Threads)
	r.Saturated = r.Saturation != ""
	r.conclude()
	return r
}

// processors sets the CPU times and the numbers of busy processors. generator is the CPU time of the load generator,
// others the CPU times of the target and of the machine, all for the measured part.
func (r *Report) processors(generator time.Duration, others machine.Time) {
	cores := func(d time.Duration) *float64 {
		if d < 0 || r.Seconds == 0 {
			return nil
		}
		c := d.Seconds() / r.Seconds
		return &c
	}
	r.CPU = PerJob{perJob(generator, r.Jobs), perJob(others.Program, r.Jobs)}
	r.Cores = Cores{Generator: cores(generator), Target: cores(others.Program), Idle: cores(others.Idle)}
	if others.Machine >= 0 {
		r.Cores.Foreign = cores(max(0, others.Machine-generator-max(0, others.Program)))
	}
}

// distribute sets the latency distributions of the report.
func (r *Report) distribute(f *latency.HeatMap, stages latency.Histograms) {
	r.stages, r.Spectrum, r.Heat = stages, stages.Spectrum(), f.Heat()
}

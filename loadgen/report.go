package loadgen

import (
	"context"
	"errors"
	"runtime"
	"time"

	"jobwire/internal/version"
)

// Report is a run as it is shown, saved and compared. Its JSON is what bench writes; times in
// microseconds are null where they are not known, or too few samples carry them.
type Report struct {
	Jobwire     version.Info `json:"jobwire"` // the build that made the report
	Environment *Environment `json:"environment,omitempty"`
	Verdict     Verdict      `json:"verdict"`
	Reasons     []string     `json:"verdict_reasons"` // empty if the run passed
	Protocol    string       `json:"protocol"`
	Scenario    string       `json:"scenario"`
	Target      string       `json:"target"`
	Share       string       `json:"share,omitempty"` // as "2/3": this run is a part of one
	Started     time.Time    `json:"started"`         // the measured part
	Clients     int          `json:"clients"`
	Workers     int          `json:"workers"`
	Functions   int          `json:"functions"`
	Zipf        float64      `json:"zipf,omitempty"` // exponent of the distribution of jobs over functions; 0 is even
	Window      int          `json:"window"`         // jobs that each client has under way; 0 in an open loop
	Grabs       int          `json:"grabs"`          // requests for a job that each worker has outstanding
	Payload     string       `json:"payload"`
	Seed        uint64       `json:"seed"`
	Requested   string       `json:"schedule,omitempty"` // of an open loop, as ParseSchedule reads it

	Jobs        int64   `json:"jobs"`    // that came to their end in the measured part
	Seconds     float64 `json:"seconds"` // that it took
	AfterWindow int64   `json:"settled"` // jobs of an open loop that ended after it: of them only the latencies count
	Rate        float64 `json:"rate"`    // jobs a second

	RateRequested float64 `json:"rate_requested,omitempty"` // of an open loop: the schedule's average over the measured part
	KeptUp        *bool   `json:"kept_up,omitempty"`        // of an open loop: the backlog did not grow
	Backlog       int64   `json:"backlog"`                  // jobs in flight at the end of the measured part
	Reconnects    int64   `json:"reconnects,omitempty"`     // of clients, in the measured part

	Account
	Interrupted bool   `json:"interrupted"` // by its user; what it had shown until then is all here
	Error       string `json:"error"`       // why else the run ended early

	Linear *Linearity `json:"linear,omitempty"` // whether the server kept a first-in first-out queue, if that was checked

	Latency map[string]Quantiles `json:"latency_us"` // by stage

	CPU        PerJob `json:"cpu_us_per_job"`
	Processors int    `json:"processors"` // that the generator may use
	Cores

	Collections int64      `json:"gc_count"`
	Pauses      float64    `json:"gc_pauses_us"`   // in all
	Pacing      *Quantiles `json:"pacing_late_us"` // of an open loop: how late jobs were submitted, which is not the server's fault
	Saturated   bool       `json:"saturated"`      // the load generator, or what else ran on its machine, was the bottleneck
	Saturation  string     `json:"saturated_why"`  // how that shows, and what to change

	Objectives   []SLOResult     `json:"slo,omitempty"`
	Interval     float64         `json:"interval_seconds"`
	Series       []IntervalEntry `json:"intervals"`
	Stationary   *Stationarity   `json:"stationarity,omitempty"` // with at least eight intervals
	Independence *Independence   `json:"independence,omitempty"` // of the submissions of a random schedule
	Spectrum     []Curve         `json:"spectrum,omitempty"`     // latency of every stage by percentile
	Heat         *Heat           `json:"heatmap,omitempty"`      // how many jobs took how long, in each interval

	stages Histograms // of the whole run; a saved report does not have them
}

// PerJob is processor time per job.
type PerJob struct {
	Generator Micros `json:"generator"`
	Target    Micros `json:"target"`
}

// Cores is how many processors were busy on average. Foreign is what neither end used.
type Cores struct {
	Generator *float64 `json:"generator_cpu"`
	Target    *float64 `json:"target_cpu"`
	Foreign   *float64 `json:"foreign_cpu"`
	Idle      *float64 `json:"idle_cpu"`
}

// IntervalEntry is one entry of the time series.
type IntervalEntry struct {
	Start     float64              `json:"start"` // in seconds since the measured part began
	Seconds   float64              `json:"seconds"`
	Requested float64              `json:"rate_requested,omitempty"` // of an open loop: the schedule's average
	Jobs      int64                `json:"jobs"`
	Depth     int64                `json:"depth"`                              // jobs under way at its end
	Target    Micros               `json:"cpu_us_per_job_target,omitempty"`    // processor time; 0 is unknown
	Generator Micros               `json:"cpu_us_per_job_generator,omitempty"` // the same of the load generator
	Latency   map[string]Quantiles `json:"latency_us"`
}

// Rate is in jobs a second.
func (e *IntervalEntry) Rate() float64 { return float64(e.Jobs) / e.Seconds }

// Recorder records what the report of a run shows in addition to its result.
type Recorder struct {
	Target      string
	Share       string
	Environment *Environment // nil is unknown
	Processor   Processor
	Log         *Log // takes the latencies of every interval; may be nil

	// OnInterval is called after every interval, with whether it is in the measured part. It may be nil.
	OnInterval func(iv *Interval, measured bool)

	began, ended time.Time
	used         processorTime
	last         ends                   // at the end of the last interval
	intervals    map[time.Duration]ends // by the start of the interval
	heatmap      heatmap
}

// ends are the processor times of the target and the load generator. Below zero is unknown.
type ends struct{ target, generator time.Duration }

func (t *Recorder) now() ends { return ends{t.Processor.now().program, usageNow().cpu} }

func (e ends) since(before ends) ends {
	if before.target < 0 || e.target < 0 {
		e.target, before.target = -1, 0
	}
	if before.generator < 0 || e.generator < 0 {
		e.generator, before.generator = -1, 0
	}
	return ends{e.target - before.target, e.generator - before.generator}
}

// perJob returns the processor time per job, or 0 if it is unknown.
func perJob(d time.Duration, jobs int64) Micros {
	if d < 0 || jobs == 0 {
		return 0
	}
	return Micros(float64(d) / 1e3 / float64(jobs))
}

// Attach connects the recorder to a run: it sets Watch and PhaseChange of the configuration.
func (t *Recorder) Attach(cfg *Config) {
	t.intervals = map[time.Duration]ends{}
	cfg.PhaseChange = func() {
		now := t.Processor.now()
		t.last = t.now()
		if t.began.IsZero() {
			t.began, t.used = time.Now(), now
		} else {
			t.ended, t.used = time.Now(), now.since(t.used)
		}
	}
	cfg.OnInterval = func(iv *Interval) {
		measured := !t.began.IsZero() && t.ended.IsZero()
		if measured {
			now := t.now()
			t.intervals[iv.Start], t.last = now.since(t.last), now
		}
		if measured || iv.AfterWindow {
			t.heatmap.addInterval(iv)
			if t.Log != nil {
				t.Log.add(t.began.Add(iv.Start), iv)
			}
		}
		if t.OnInterval != nil && !iv.AfterWindow {
			t.OnInterval(iv, measured)
		}
	}
}

// planOf returns the part of a report that is known before the run.
func planOf(cfg *Config) *Report {
	r := &Report{
		Jobwire: version.Get(), Protocol: cfg.Protocol.Name, Scenario: cfg.Scenario, Clients: cfg.Clients, Workers: cfg.Workers, Functions: cfg.Functions, Zipf: cfg.Zipf,
		Window: cfg.Window, Grabs: cfg.Grabs, Payload: cfg.Size.String(), Seed: cfg.Seed, Interval: cfg.Interval.Seconds(),
	}
	if cfg.Rate != nil {
		r.Window, r.Requested = 0, cfg.Rate.String()
	}
	if sc := scenarioOf(cfg.Protocol.Name, cfg.Scenario); sc.NoWorkers() {
		r.Workers, r.Grabs = 0, 0
	}
	return r
}

// Report returns the report of the run that the recorder was attached to.
func (t *Recorder) Report(res *Result) *Report {
	cfg := &res.Config
	r := planOf(cfg)
	r.Environment = t.Environment
	r.Target, r.Share, r.Started = t.Target, t.Share, t.began.UTC().Round(time.Millisecond)
	r.Jobs, r.Seconds, r.Rate = res.Jobs, res.Took.Seconds(), res.Rate()
	r.Account, r.AfterWindow, r.Backlog, r.Reconnects = res.Account, res.AfterWindow, res.backlog, res.Reconnects
	r.Linear = res.Linear
	r.Latency = res.Latency.quantiles()
	r.Processors, r.Collections, r.Pauses = runtime.GOMAXPROCS(0), res.GCs, float64(micros(res.Pauses))
	switch {
	case errors.Is(res.Err, context.Canceled):
		r.Interrupted = true
	case res.Err != nil:
		r.Error = res.Err.Error()
	}
	if cfg.Rate != nil {
		r.Pacing = &res.Late
		if cfg.Rate.Poisson {
			r.Independence = res.gaps.independence()
		}
		r.RateRequested = cfg.Rate.mean(cfg.Warmup, cfg.Warmup+res.Took)
		kept := r.keepsUp(res.steady)
		r.KeptUp = &kept
	}
	r.distribute(&t.heatmap, res.Latency)
	r.processors(res.CPU, t.used)
	for i := range res.Series {
		iv := &res.Series[i]
		e := IntervalEntry{Start: iv.Start.Seconds(), Seconds: iv.Length.Seconds(), Jobs: iv.Done, Depth: iv.Depth, Latency: iv.Latency}
		if at := cfg.Warmup + iv.Start; cfg.Rate != nil && at >= 0 {
			e.Requested = cfg.Rate.mean(at, at+iv.Length)
		}
		used := t.intervals[iv.Start]
		e.Target, e.Generator = perJob(used.target, e.Jobs), perJob(used.generator, e.Jobs)
		r.Series = append(r.Series, e)
	}
	r.Stationary = r.stationarity()
	r.Saturation = r.saturation(cfg, t.used.threads)
	r.Saturated = r.Saturation != ""
	r.conclude()
	return r
}

// processors enters what each end used.
func (r *Report) processors(generator time.Duration, others processorTime) {
	cores := func(d time.Duration) *float64 {
		if d < 0 || r.Seconds == 0 {
			return nil
		}
		c := d.Seconds() / r.Seconds
		return &c
	}
	r.CPU = PerJob{perJob(generator, r.Jobs), perJob(others.program, r.Jobs)}
	r.Cores = Cores{Generator: cores(generator), Target: cores(others.program), Idle: cores(others.idle)}
	if others.machine >= 0 {
		r.Cores.Foreign = cores(max(0, others.machine-generator-max(0, others.program)))
	}
}

package report

import (
	"context"
	"errors"
	"runtime"
	"time"

	"jobwire/loadgen"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
)

// Recorder collects what a [Report] contains in addition to the [Result]: CPU times, the heat map, and the names of
// the target and the machine. Set its exported fields, call Attach before the run, and Report after it.
type Recorder struct {
	Target      string               // name of the server in the report
	Share       loadgen.Share        // part of the load that this process generates; the zero value for a whole load
	Environment *machine.Environment // machine of the load generator; nil: not known
	Processor   CPU                  // reads the CPU times, as [machine.Processor] does
	Log         *latency.Log         // receives the latencies of every measured interval; may be nil

	// OnInterval is called after each interval. measured reports whether the interval is in the measured part.
	// OnInterval may be nil.
	OnInterval func(iv *loadgen.Interval, measured bool)

	began, ended time.Time              // start and end of the measured part
	used         machine.Time           // during the measured part: values at its start; after it: the difference
	last         ends                   // CPU times at the end of the previous interval
	intervals    map[time.Duration]ends // CPU time used in each interval, by Interval.Start
	heatmap      latency.HeatMap
}

// CPU reads the CPU times of the target and of the machine.
type CPU interface{ Now() machine.Time }

// ends is the CPU time of the target and of the load generator. Negative values are not known.
type ends struct{ target, generator time.Duration }

func (rc *Recorder) now() ends { return ends{rc.Processor.Now().Program, machine.ReadUsage().CPU} }

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
func (rc *Recorder) Attach(cfg *loadgen.Config) {
	rc.intervals = map[time.Duration]ends{}
	cfg.PhaseChange = func() {
		now := rc.Processor.Now()
		rc.last = rc.now()
		if rc.began.IsZero() {
			rc.began, rc.used = time.Now(), now
		} else {
			rc.ended, rc.used = time.Now(), now.Since(rc.used)
		}
	}
	cfg.OnInterval = func(iv *loadgen.Interval) {
		measured := !rc.began.IsZero() && rc.ended.IsZero()
		if measured {
			now := rc.now()
			rc.intervals[iv.Start], rc.last = now.since(rc.last), now
		}
		if measured || iv.AfterWindow {
			rc.heatmap.Add(iv.Start, iv.Length, iv.Stages[latency.Total])
			if rc.Log != nil {
				rc.Log.Add(rc.began.Add(iv.Start), iv.Length, iv.Stages)
			}
		}
		if rc.OnInterval != nil && !iv.AfterWindow {
			rc.OnInterval(iv, measured)
		}
	}
}

// Report returns the report of the run to which the recorder was attached.
func (rc *Recorder) Report(res *loadgen.Result) *Report {
	cfg := &res.Config
	r := PlanOf(cfg)
	r.Environment = rc.Environment
	if rc.Share.Shares > 0 {
		r.Share = &rc.Share
	}
	r.Target, r.Started = rc.Target, rc.began.UTC().Round(time.Millisecond)
	r.Jobs, r.Seconds, r.Rate = res.Jobs, res.Took.Seconds(), res.Rate()
	r.Account, r.AfterWindow, r.Backlog, r.Reconnects = res.Account, res.AfterWindow, res.Backlog, res.Reconnects
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
			kept := r.keepsUp(res.Steady)
			r.KeptUp = &kept
		}
	}
	r.Stages, r.Spectrum, r.Heat = res.Latency, res.Latency.Spectrum(), rc.heatmap.Heat()
	r.processors(res.CPU, rc.used)
	for i := range res.Series {
		iv := &res.Series[i]
		e := IntervalEntry{Start: iv.Start.Seconds(), Seconds: iv.Length.Seconds(), Jobs: iv.Done, Depth: iv.Depth,
			Latency: iv.Latency}
		if at := cfg.Warmup + iv.Start; cfg.Rate != nil && at >= 0 {
			e.Requested = cfg.Rate.Mean(at, at+iv.Length)
		}
		used := rc.intervals[iv.Start]
		e.Target, e.Generator = perJob(used.target, e.Jobs), perJob(used.generator, e.Jobs)
		r.Series = append(r.Series, e)
	}
	r.Stationary = r.stationarity()
	r.Saturation = r.saturation(cfg, rc.used.Threads)
	r.Saturated = r.Saturation != ""
	r.Conclude()
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

// Package report has the report of a run: what bench prints, saves and compares, the verdict, and its objectives.
package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen"
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
	Share *loadgen.Share `json:"share,omitempty"`
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

	loadgen.Account
	Interrupted bool   `json:"interrupted"` // the user interrupted the run; the report covers the time until then
	Error       string `json:"error"`       // why the run ended early, other than by an interruption; "" if it did not

	Linear *loadgen.Linearity `json:"linear,omitempty"` // result of Config.Check; nil if it was not set

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

	// histograms of the whole run; empty in a report that was read
	Stages latency.Histograms `json:"-"`
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
func (e *IntervalEntry) Rate() float64 { return loadgen.PerSecond(float64(e.Jobs), e.Seconds) }

// PlanOf returns a report with the fields that are known before the run.
func PlanOf(cfg *loadgen.Config) *Report {
	r := &Report{
		Head: version.NewHead(), Protocol: cfg.Protocol.Name, Scenario: cfg.Scenario, Clients: cfg.Clients,
		Workers: cfg.Workers, Functions: cfg.Functions, Zipf: cfg.Zipf,
		Window: cfg.Window, Grabs: cfg.Grabs, Payload: cfg.Size.String(), Seed: cfg.Seed, Interval: cfg.Interval.Seconds(),
		Series: []IntervalEntry{},
	}
	if cfg.Rate != nil {
		r.Window, r.Requested = 0, cfg.Rate.String()
	}
	if sc := loadgen.ScenarioOf(cfg.Protocol.Name, cfg.Scenario); sc.NoWorkers() {
		r.Workers, r.Grabs = 0, 0
	}
	return r
}

// Intervals returns a figure of the intervals of the measured part that have at least 90 % of their full length, without
// those in which it is 0 (not known).
func (r *Report) Intervals(of func(*IntervalEntry) float64) (all []float64) {
	for i := range r.Series {
		e := &r.Series[i]
		if e.Start < 0 || e.Seconds < 0.9*r.Interval || e.Start+e.Seconds > r.Seconds+r.Interval/2 {
			continue
		}
		if v := of(e); v > 0 {
			all = append(all, v)
		}
	}
	return all
}

// Notes returns warnings and advice about the use of the figures.
func (r *Report) Notes() (all []string) {
	if r.KeptUp != nil && !*r.KeptUp && r.Result() == Failed {
		all = append(all, "too few workers, or workers that ask for too few jobs at a time, can also limit the rate; to exclude this cause, run bench again with higher --workers or --grabs")
	}
	if r.Saturated && r.Merged == nil && r.Result() != Invalid { // the notes of the shares are in Merged
		all = append(all, "the target may be faster: "+r.Saturation)
	}
	if r.MachineShared() && !r.Saturated {
		all = append(all, fmt.Sprintf("other programs used %.2f of this machine's %s, so the target may be faster",
			*r.Cores.Foreign, prose.Count(r.machineProcessors(), "processor")))
	}
	if r.Share != nil && r.Share.Late > 0 {
		all = append(all, fmt.Sprintf("this share started %.1f s after the start time of the run", r.Share.Late))
	}
	if r.Merged != nil {
		all = append(all, r.Merged.notes()...)
	}
	if sc := loadgen.ScenarioOf(r.Protocol, r.Scenario); sc != nil && !sc.Backlog && r.Requested == "" && r.Window == 1 {
		more := "--window 128"
		if sc.MaxWindow > 0 {
			more = "--clients 500"
		}
		all = append(all, "with one job at a time per client, bench measures round trips, not capacity. To measure the capacity, add "+more+"; to find the highest rate within a latency limit, use bench search --slo 'p99<5ms'")
	}
	return all
}

// FormatJobs formats a number of jobs per second, with a decimal only below 10.
func FormatJobs(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	}
	return prose.Grouped(int64(math.Round(v)))
}

// Package loadtest has results and reports of runs for tests.
package loadtest

import (
	"testing"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/version"
	"jobwire/loadgen"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/protocols"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
)

func init() { loadgen.Register(protocols.Gearman) }

// Began is the start of the measured part of the runs.
var Began = time.Date(2026, 5, 1, 12, 0, 0, 250e6, time.UTC)

// Result returns the result of a run of 3,000 jobs in two intervals of 1.5 s. The latencies of the four stages start at
// 1, 2, 3 and 4 ms and increase by 1 us with each job.
func Result() *loadgen.Result {
	res := &loadgen.Result{
		Config: loadgen.Config{Protocol: gearman.Protocol, Scenario: "cycle", Clients: 16, Workers: 4, Functions: 1,
			Window: 128, Grabs: 512, Size: loadgen.Sizes{Lo: 16, Hi: 16}, Seed: 7, Interval: 1500 * time.Millisecond},
		Took: 3 * time.Second, Jobs: 3000, Latency: latency.New(),
		CPU: 30 * time.Millisecond, Pauses: 1500 * time.Microsecond, GCs: 2,
		Account: loadgen.Account{Submitted: 3100},
	}
	for half := range 2 {
		now := latency.New()
		for i := range 1500 {
			for st := range now {
				latency.Record(now[st], int64(st+1)*int64(time.Millisecond)+int64(half*1500+i)*1000)
			}
		}
		res.Latency.Merge(now)
		res.Series = append(res.Series, loadgen.Interval{Start: time.Duration(half) * 1500 * time.Millisecond,
			Length: 1500 * time.Millisecond, Done: 1500, Depth: 2048, Stages: now, Latency: now.Quantiles()})
	}
	return res
}

// Overloaded returns Result as the result of an open loop of 10,000 jobs/s, of which the server completed 1,000
// jobs/s; the other jobs are in the backlog.
func Overloaded() *loadgen.Result {
	res := Result()
	res.Config.Window, res.Config.Grabs = 1, 4
	res.Config.Rate = &schedule.Schedule{Steps: []schedule.Step{{From: 10000, To: 10000}}}
	res.Late = latency.Quantiles{Count: 30000, Mean: 80, P99: 300, Max: 900}
	res.Backlog, res.AfterWindow = 27000, 27000
	res.Steady = 5500 * time.Microsecond
	res.Account.Submitted = 30000
	return res
}

// cpu has the CPU times that were used in the measured part of a run.
type cpu struct {
	used  machine.Time
	calls int
}

// Now implements [report.CPU]. The recorder calls it twice at the start of the measured part.
func (c *cpu) Now() machine.Time {
	if c.calls++; c.calls <= 2 {
		return machine.Time{}
	}
	return c.used
}

// Record returns the report of a run that began at a time, and during which these CPU times were used.
func Record(recorder *report.Recorder, res *loadgen.Result, began time.Time, used machine.Time) *report.Report {
	recorder.Target, recorder.Processor = "a server", &cpu{used: used}
	cfg := res.Config
	recorder.Attach(&cfg)
	cfg.PhaseChange()
	cfg.PhaseChange()
	r := recorder.Report(res)
	r.Started = began
	return r
}

// Report returns the report of a run on a machine on which no other programs run.
func Report(res *loadgen.Result) *report.Report {
	r := Record(&report.Recorder{}, res, Began,
		machine.Time{Program: 45 * time.Millisecond, Machine: 90 * time.Millisecond, Idle: -1, Threads: 1})
	r.Processors = 2
	r.Head = version.Head{SchemaVersion: version.Schema, ToolVersion: "1.2.3",
		Jobwire: version.Info{Version: "1.2.3", Go: "go1.26", Platform: "linux/amd64"}}
	return r
}

// Rates returns reports with these rates in jobs per second.
func Rates(rates ...float64) (all []*report.Report) {
	for _, v := range rates {
		r := Report(Result())
		r.Rate = v
		all = append(all, r)
	}
	return all
}

// Objectives parses objectives.
func Objectives(t testing.TB, texts ...string) (all []*report.Objective) {
	t.Helper()
	for _, text := range texts {
		o, err := report.ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

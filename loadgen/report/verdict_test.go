package report_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"jobwire/loadgen"
	"jobwire/loadgen/internal/loadtest"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
)

// TestVerdictWithoutMeasurement tests that the verdict of a run that failed before its measurement names only the failure.
func TestVerdictWithoutMeasurement(t *testing.T) {
	res := loadtest.Overloaded()
	res.Took, res.Jobs, res.Err = 0, 0, errors.New("Worker 2: connection closed")
	r := loadtest.Report(res)
	r.Conclude()
	if why := strings.Join(r.Reasons, "; "); r.Verdict != report.Failed || why != "the run ended early: Worker 2: connection closed" {
		t.Errorf("got %s, %q", r.Verdict, why)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestVerdictOfOverload tests that the run fails if the server does not keep up with the requested rate, and that it
// is invalid if the load generator or its machine was the bottleneck.
func TestVerdictOfOverload(t *testing.T) {
	all := float64(runtime.NumCPU())
	cores := func(generator, target, foreign, idle float64) report.Cores {
		return report.Cores{&generator, &target, &foreign, &idle}
	}
	for _, tt := range []struct {
		name    string
		res     func(*loadgen.Result)
		report  func(*report.Report)
		threads int
		want    report.Verdict
		why     string
	}{
		{"a slow server", nil, nil, 1, report.Failed, "the server did not keep up: 1,000 jobs/s achieved of 10,000 requested; its backlog grew to 27,000 jobs, latency rose to 7.00 ms"},
		{"a server that follows", func(res *loadgen.Result) { res.Backlog = 55 }, nil, 1, report.Passed, ""},
		{"jobs that take long", func(res *loadgen.Result) { res.Jobs, res.Backlog, res.Steady = 20000, 10000, time.Second }, nil, 1, report.Passed, ""},
		{"a pause at the end", func(res *loadgen.Result) { res.Backlog = 900 }, nil, 1, report.Passed, ""},
		{"jobs that were not submitted", func(res *loadgen.Result) { res.Backlog, res.Account.Skipped = 0, 5 }, nil, 1, report.Failed, "5 scheduled jobs not submitted"},
		{"a late load generator", func(res *loadgen.Result) { res.Late.Mean = 3000 }, nil, 1, report.Invalid, "submitted jobs late by 3.00 ms on average"},
		{"a late load generator whose rate is reached", func(res *loadgen.Result) { res.Backlog, res.Late.Mean = 0, 3000 }, nil, 1, report.Invalid, "late by 3.00 ms on average"},
		{"a load generator that was late for some jobs", func(res *loadgen.Result) { res.Backlog, res.Late.P99 = 0, 5000 },
			func(r *report.Report) {
				r.Latency["total"] = latency.Quantiles{Count: 3000, Mean: 900, P99: 6000, Max: 8000}
			}, 1, report.Invalid, "p99 5.00 ms"},
		{"late by little of the latency", func(res *loadgen.Result) { res.Late.Mean = 3000 },
			func(r *report.Report) { r.Latency["total"] = latency.Quantiles{Count: 3000, Mean: 2e6, Max: 4e6} }, 1, report.Failed, "latency rose to 4.00 s"},
		{"late, and half of the jobs were not submitted", func(res *loadgen.Result) { res.Late.Mean, res.Backlog = 3000, 12000 },
			func(r *report.Report) { r.Latency["total"] = latency.Quantiles{Count: 3000, Mean: 2e6, Max: 4e6} }, 1, report.Invalid, "late by 3.00 ms on average"},
		{"fewer jobs than requested, of which each waits longer", func(res *loadgen.Result) { res.Backlog, res.Steady = 12000, 2*time.Second }, nil, 1, report.Failed, "did not keep up"},
		{"all processors of the load generator", nil, func(r *report.Report) { r.Processors, r.Cores = 1, cores(0.95, 0.01, 0, all-1) }, 8, report.Invalid, "used 0.95 of its 1 processor;"},
		{"other programs", nil, func(r *report.Report) { r.Cores = cores(0.1*all, 0.01*all, 0.85*all, 0) }, 8, report.Invalid, "other programs used"},
		{"other programs, and a server with much to do", nil, func(r *report.Report) { r.Cores = cores(0.1*all, 0.4*all, 0.5*all, 0) }, 1, report.Invalid, "other programs used"},
		{"other programs, and the rate is reached", func(res *loadgen.Result) { res.Backlog = 0 }, func(r *report.Report) { r.Cores = cores(0.1*all, 0.01*all, 0.85*all, 0) }, 8, report.Passed, ""},
		{"both ends on a full machine", nil, func(r *report.Report) { r.Cores = cores(0.8*all, 0.05*all, 0, 0) }, 99, report.Invalid, "used all of this machine"},
		{"a full machine, and a server that needs more than that", nil, func(r *report.Report) { r.Cores = cores(0.5*all, 0.45*all, 0, 0) }, 99, report.Failed, "did not keep up"},
		{"a full machine, and a server whose one thread is busy", nil, func(r *report.Report) { r.Cores = cores(all-1, 0.9, 0, 0) }, 1, report.Failed, "did not keep up"},
		{"an unknown server on a full machine", nil, func(r *report.Report) { r.Cores = cores(0.4*all, 0, 0.6*all, 0); r.Cores.Target = nil }, 0, report.Invalid, "--pid"},
		{"slow workers", func(res *loadgen.Result) { res.Config.Work = 5 * time.Millisecond }, nil, 1, report.Invalid, "4 workers with 4 requests each and 5ms of work per job finish at most 3,200 jobs/s"},
		{"a lost job", func(res *loadgen.Result) { res.Late.Mean, res.Account.Lost = 3000, 1 }, nil, 1, report.Failed, "1 lost"},
	} {
		res := loadtest.Overloaded()
		if tt.res != nil {
			tt.res(res)
		}
		r := loadtest.Report(res)
		if tt.report != nil {
			tt.report(r)
		}
		r.Saturation = report.Bottleneck(r, &res.Config, tt.threads)
		r.Saturated = r.Saturation != ""
		r.Conclude()
		if why := strings.Join(r.Reasons, "; "); r.Verdict != tt.want || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, r.Verdict, why, tt.want, tt.why)
		}
	}
}

// TestVerdictOfSaturatedClosedLoop tests that a closed loop in which the load generator was the bottleneck reports
// this and passes.
func TestVerdictOfSaturatedClosedLoop(t *testing.T) {
	r := loadtest.Report(loadtest.Result())
	busy, zero := 0.95, 0.0
	r.Processors, r.Cores = 1, report.Cores{&busy, &zero, &zero, nil}
	r.Saturation = report.Bottleneck(r, &loadtest.Result().Config, 1)
	if r.Saturated = true; r.Saturation == "" || r.Result() != report.Passed {
		t.Errorf("%s, %q", r.Result(), r.Saturation)
	}
}

// TestVerdictsNearTheRate tests the verdicts on which a search for the highest rate depends.
func TestVerdictsNearTheRate(t *testing.T) {
	at := func(rate float64, change func(*loadgen.Result)) report.Verdict {
		res := loadtest.Overloaded()
		res.Config.Rate.Steps[0] = schedule.Step{From: rate, To: rate}
		res.Backlog = int64((rate - 1000) * 3)
		change(res)
		return loadtest.Report(res).Result()
	}
	if v := at(1500, func(*loadgen.Result) {}); v != report.Failed {
		t.Errorf("1,000 of 1,500 jobs/s were done: %s", v)
	}
	if v := at(1000, func(*loadgen.Result) {}); v != report.Passed {
		t.Errorf("the requested rate was reached: %s", v)
	}
	// Jobs that take 10 s each leave a third of the jobs of a run of 30 s in flight.
	long := func(res *loadgen.Result) {
		res.Jobs, res.Took, res.Steady, res.Backlog = 20000, 30*time.Second, 10*time.Second, 10000
	}
	if v := at(1000, long); v != report.Passed {
		t.Errorf("jobs took 10 s: %s", v)
	}
	if v := at(1000, func(res *loadgen.Result) { res.Late.Mean = 3000 }); v != report.Invalid {
		t.Errorf("the load generator was late: %s", v)
	}
	// Late submissions only raise latencies.
	for _, tt := range []struct {
		objective string
		submitted int64 // of 3,000 jobs
		want      report.Verdict
	}{
		{"p99<20ms", 3000, report.Passed},
		{"p99<1ms", 3000, report.Invalid},
		{"queued.mean<1ns", 3000, report.Invalid},
		{"p99<20ms", 2000, report.Invalid},
	} {
		res := loadtest.Overloaded()
		res.Config.Rate.Steps[0] = schedule.Step{From: 1000, To: 1000}
		res.Backlog, res.Late.Mean, res.Late.P99, res.Jobs = 0, 3000, 4000, tt.submitted
		r := loadtest.Report(res)
		r.Check(loadtest.Objectives(t, tt.objective))
		if v := r.Result(); v != tt.want {
			t.Errorf("%s with a late load generator: %s, want %s: %q", tt.objective, v, tt.want, r.Reasons)
		}
	}
}

package loadgen

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/schedule"
)

// overloadedResult returns sampleResult as the result of an open loop of 10,000 jobs/s, of which the server completed
// 1,000 jobs/s; the other jobs are in the backlog.
func overloadedResult() *Result {
	res := sampleResult()
	res.Config.Window, res.Config.Grabs = 1, 4
	res.Config.Rate = &schedule.Schedule{Steps: []schedule.Step{{From: 10000, To: 10000}}}
	res.Late = latency.Quantiles{Count: 30000, Mean: 80, P99: 300, Max: 900}
	res.backlog, res.AfterWindow = 27000, 27000
	res.steady = 5500 * time.Microsecond
	res.Account.Submitted = 30000
	return res
}

// TestVerdictWithoutMeasurement tests that the verdict of a run that failed before its measurement names only the failure.
func TestVerdictWithoutMeasurement(t *testing.T) {
	res := overloadedResult()
	res.Took, res.Jobs, res.Err = 0, 0, errors.New("Worker 2: connection closed")
	r := sampleReport(res)
	r.conclude()
	if why := strings.Join(r.Reasons, "; "); r.Verdict != Failed || why != "the run ended early: Worker 2: connection closed" {
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
	cores := func(generator, target, foreign, idle float64) Cores {
		return Cores{&generator, &target, &foreign, &idle}
	}
	for _, tt := range []struct {
		name    string
		res     func(*Result)
		report  func(*Report)
		threads int
		want    Verdict
		why     string
	}{
		{"a slow server", nil, nil, 1, Failed, "the server did not keep up: 1,000 jobs/s achieved of 10,000 requested; its backlog grew to 27,000 jobs, latency rose to 7.00 ms"},
		{"a server that follows", func(res *Result) { res.backlog = 55 }, nil, 1, Passed, ""},
		{"jobs that take long", func(res *Result) { res.Jobs, res.backlog, res.steady = 20000, 10000, time.Second }, nil, 1, Passed, ""},
		{"a pause at the end", func(res *Result) { res.backlog = 900 }, nil, 1, Passed, ""},
		{"jobs that were not submitted", func(res *Result) { res.backlog, res.Account.Skipped = 0, 5 }, nil, 1, Failed, "5 scheduled jobs not submitted"},
		{"a late load generator", func(res *Result) { res.Late.Mean = 3000 }, nil, 1, Invalid, "submitted jobs late by 3.00 ms on average"},
		{"a late load generator whose rate is reached", func(res *Result) { res.backlog, res.Late.Mean = 0, 3000 }, nil, 1, Invalid, "late by 3.00 ms on average"},
		{"a load generator that was late for some jobs", func(res *Result) { res.backlog, res.Late.P99 = 0, 5000 },
			func(r *Report) { r.Latency["total"] = latency.Quantiles{Count: 3000, Mean: 900, P99: 6000, Max: 8000} }, 1, Invalid, "p99 5.00 ms"},
		{"late by little of the latency", func(res *Result) { res.Late.Mean = 3000 },
			func(r *Report) { r.Latency["total"] = latency.Quantiles{Count: 3000, Mean: 2e6, Max: 4e6} }, 1, Failed, "latency rose to 4.00 s"},
		{"late, and half of the jobs were not submitted", func(res *Result) { res.Late.Mean, res.backlog = 3000, 12000 },
			func(r *Report) { r.Latency["total"] = latency.Quantiles{Count: 3000, Mean: 2e6, Max: 4e6} }, 1, Invalid, "late by 3.00 ms on average"},
		{"fewer jobs than requested, of which each waits longer", func(res *Result) { res.backlog, res.steady = 12000, 2*time.Second }, nil, 1, Failed, "did not keep up"},
		{"all processors of the load generator", nil, func(r *Report) { r.Processors, r.Cores = 1, cores(0.95, 0.01, 0, all-1) }, 8, Invalid, "used 0.95 of its 1 processor;"},
		{"other programs", nil, func(r *Report) { r.Cores = cores(0.1*all, 0.01*all, 0.85*all, 0) }, 8, Invalid, "other programs used"},
		{"other programs, and a server with much to do", nil, func(r *Report) { r.Cores = cores(0.1*all, 0.4*all, 0.5*all, 0) }, 1, Invalid, "other programs used"},
		{"other programs, and the rate is reached", func(res *Result) { res.backlog = 0 }, func(r *Report) { r.Cores = cores(0.1*all, 0.01*all, 0.85*all, 0) }, 8, Passed, ""},
		{"both ends on a full machine", nil, func(r *Report) { r.Cores = cores(0.8*all, 0.05*all, 0, 0) }, 99, Invalid, "used all of this machine"},
		{"a full machine, and a server that needs more than that", nil, func(r *Report) { r.Cores = cores(0.5*all, 0.45*all, 0, 0) }, 99, Failed, "did not keep up"},
		{"a full machine, and a server whose one thread is busy", nil, func(r *Report) { r.Cores = cores(all-1, 0.9, 0, 0) }, 1, Failed, "did not keep up"},
		{"an unknown server on a full machine", nil, func(r *Report) { r.Cores = cores(0.4*all, 0, 0.6*all, 0); r.Cores.Target = nil }, 0, Invalid, "--pid"},
		{"slow workers", func(res *Result) { res.Config.Work = 5 * time.Millisecond }, nil, 1, Invalid, "4 workers with 4 requests each and 5ms of work per job finish at most 3,200 jobs/s"},
		{"a lost job", func(res *Result) { res.Late.Mean, res.Account.Lost = 3000, 1 }, nil, 1, Failed, "1 lost"},
	} {
		res := overloadedResult()
		if tt.res != nil {
			tt.res(res)
		}
		r := sampleReport(res)
		if tt.report != nil {
			tt.report(r)
		}
		r.Saturation = r.saturation(&res.Config, tt.threads)
		r.Saturated = r.Saturation != ""
		r.conclude()
		if why := strings.Join(r.Reasons, "; "); r.Verdict != tt.want || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, r.Verdict, why, tt.want, tt.why)
		}
	}
}

// TestVerdictOfSaturatedClosedLoop tests that a closed loop in which the load generator was the bottleneck reports
// this and passes.
func TestVerdictOfSaturatedClosedLoop(t *testing.T) {
	r := sampleReport(sampleResult())
	busy, zero := 0.95, 0.0
	r.Processors, r.Cores = 1, Cores{&busy, &zero, &zero, nil}
	r.Saturation = r.saturation(&sampleResult().Config, 1)
	if r.Saturated = true; r.Saturation == "" || r.Result() != Passed {
		t.Errorf("%s, %q", r.Result(), r.Saturation)
	}
}

func TestScheduleMean(t *testing.T) {
	for _, tt := range []struct {
		text     string
		from, to time.Duration
		want     float64
	}{
		{"5000", 0, 4 * time.Second, 5000},
		{"1000-3000/10s", 0, 10 * time.Second, 2000},
		{"1000-3000/10s", 5 * time.Second, 10 * time.Second, 2500},
		{"1000-3000/10s", 0, 20 * time.Second, 2500},
		{"1000-3000/10s", 10 * time.Second, 20 * time.Second, 3000},
		{"1000/10s,2000/10s,4000", 0, 40 * time.Second, 2750},
		{"poisson:1000/10s,2000/10s,4000", 5 * time.Second, 15 * time.Second, 1500},
	} {
		s, err := schedule.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Mean(tt.from, tt.to); got < tt.want-0.01 || got > tt.want+0.01 {
			t.Errorf("%s from %v to %v: %v, want %v", tt.text, tt.from, tt.to, got, tt.want)
		}
	}
}

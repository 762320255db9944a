package experiment

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jobwire/loadgen/internal/loadtest"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// intervalsOf returns the report of a run with one interval of 1 s for each rate in jobs per second. At 1,000 jobs
// per second, the CPU time per job is 1 ms and the median latency 5 ms; both are inversely proportional to the rate.
func intervalsOf(rates ...float64) *report.Report {
	r := loadtest.Report(loadtest.Result())
	r.Interval, r.Seconds, r.Jobs, r.Series = 1, float64(len(rates)), 0, nil
	latencies := func(rate float64) map[string]latency.Quantiles {
		ms := latency.Micros(1e6 / rate)
		return map[string]latency.Quantiles{"total": {Count: int64(rate), P50: 5 * ms, P99: 9 * ms}}
	}
	for i, v := range rates {
		r.Series = append(r.Series, report.IntervalEntry{Start: float64(i), Seconds: 1, Jobs: int64(v), Target: latency.Micros(1e6 / v), Generator: 500, Latency: latencies(v)})
		r.Jobs += int64(v)
	}
	r.Rate = float64(r.Jobs) / r.Seconds
	r.CPU.Target, r.Latency = latency.Micros(1e6/r.Rate), latencies(r.Rate)
	return r
}

// around returns eight rates whose mean is rate, within 1 %.
func around(rate float64) (all []float64) {
	for _, part := range []float64{0.99, 1.01, 0.995, 1.005, 1, 1.008, 0.992, 1} {
		all = append(all, rate*part)
	}
	return all
}

// slowedReport changes a report to that of the same run on a machine where everything takes times as long, and
// returns it.
func slowedReport(r *report.Report, times float64) *report.Report {
	m := latency.Micros(times)
	for i := range r.Series {
		e := &r.Series[i]
		q := e.Latency["total"]
		e.Jobs, e.Target, e.Generator = int64(float64(e.Jobs)/times), e.Target*m, e.Generator*m
		e.Latency["total"] = latency.Quantiles{Count: q.Count, P50: q.P50 * m, P99: q.P99 * m}
	}
	r.Rate, r.CPU.Target = r.Rate/times, r.CPU.Target*m
	q := r.Latency["total"]
	r.Latency["total"] = latency.Quantiles{Count: q.Count, P50: q.P50 * m, P99: q.P99 * m}
	return r
}

// TestBaseline tests that a run fails if a figure is worse than in earlier runs by more than the tolerance, and that
// runs with other settings cannot be compared.
func TestBaseline(t *testing.T) {
	for _, tt := range []struct {
		rate   float64
		passed bool
	}{{950, true}, {1000, true}, {3000, true}, {880, false}} {
		r := intervalsOf(around(tt.rate)...)
		if err := Baseline(r, []*report.Report{intervalsOf(around(1010)...), intervalsOf(around(990)...), intervalsOf(around(1000)...)}, 0.1); err != nil {
			t.Fatal(err)
		}
		compared := 0
		for _, o := range r.Objectives {
			if compared++; o.Result != report.VerdictOf(tt.passed) {
				t.Errorf("%v against 1000: %+v", tt.rate, o)
			}
		}
		if r.Passed() != tt.passed || compared != 4 {
			t.Errorf("%v against 1000: %s, %d figures", tt.rate, r.Result(), compared)
		}
	}
	other := loadtest.Rates(100)[0]
	other.Clients = 1
	if err := Baseline(other, loadtest.Rates(100), 0.1); err == nil || !strings.Contains(err.Error(), "clients is 1 in one run and 16 in the other") {
		t.Errorf("a run with other settings was accepted as a baseline: %v", err)
	}
	cfg := loadtest.Result().Config
	if err := CheckBaseline(cfg, loadtest.Rates(100)); err != nil {
		t.Errorf("the same run is refused as a baseline: %v", err)
	}
	if cfg.Window = 1; CheckBaseline(cfg, loadtest.Rates(100)) == nil {
		t.Error("another window is accepted")
	}
}

// TestBaselineNeedsSamples tests that a figure is skipped, and that the run does not fail, if the runs do not show whether the figure is worse.
func TestBaselineNeedsSamples(t *testing.T) {
	steady := func() *report.Report { return intervalsOf(around(1000)...) }
	for _, tt := range []struct {
		name        string
		now, before *report.Report
		change      func(now, before *report.Report)
		objective   string
		want        report.Verdict
		why         string
	}{
		{"four intervals", intervalsOf(500, 500, 500, 500), steady(), nil, "jobs/s", report.Skipped, "4 complete intervals"},
		{"four intervals before", intervalsOf(around(500)...), intervalsOf(1000, 1000, 1000, 1000), nil, "jobs/s", report.Skipped, "4 complete intervals"},
		{"few CPU ticks", steady(), steady(), func(now, _ *report.Report) { now.CPU.Target = 50 }, "CPU per job, target", report.Skipped, "40 CPU ticks of 10ms in one of the runs (at least 80 needed"},
		{"few CPU ticks before", steady(), steady(), func(_, before *report.Report) { before.CPU.Target = 50 }, "CPU per job, target", report.Skipped, "40 CPU ticks"},
		{"intervals without the percentile", steady(), steady(), func(now, _ *report.Report) {
			for i := range now.Series {
				now.Series[i].Latency = nil
			}
		}, "total p99", report.Skipped, "0 complete intervals"},
		{"rates that vary more than they differ", intervalsOf(980, 500, 1250, 700, 1010, 850), intervalsOf(1000, 700, 1300, 950, 1050, 1000), nil, "jobs/s", report.Skipped,
			"the runs are consistent with a change of"},
		{"equal rates that vary", intervalsOf(980, 700, 1250, 950, 1110, 1000), intervalsOf(1000, 700, 1300, 950, 1050, 1000), nil, "jobs/s", report.Skipped, "consistent with a change of"},
		{"a slower machine", slowedReport(steady(), 1.25), steady(), nil, "jobs/s", report.Skipped, "consistent with a change of -21 % to +1 %"},
		{"a faster machine, but a slower server", slowedReport(intervalsOf(around(800)...), 0.8), steady(), nil, "total p50", report.Skipped, "consistent with a change of -1 % to +27 %"},
		{"a slower machine and worse tails", steady(), steady(), func(now, _ *report.Report) {
			slowedReport(now, 1.3)
			for i := range now.Series {
				q := now.Series[i].Latency["total"]
				now.Series[i].Latency["total"] = latency.Quantiles{Count: q.Count, P50: q.P50, P99: q.P99 * 5}
			}
			now.CPU.Generator *= 1.3
		}, "total p99", report.Skipped, "but the load generator took 30 % more CPU time per job too"},
		{"other programs", intervalsOf(around(500)...), steady(), func(now, _ *report.Report) {
			used := 0.6 * float64(runtime.NumCPU())
			now.Cores.Foreign = &used
		}, "total p50", report.Skipped, "but other programs used"},
		{"other programs do not explain a tenth of the rate", intervalsOf(around(100)...), steady(), func(now, _ *report.Report) {
			used := 0.4 * float64(runtime.NumCPU())
			now.Cores.Foreign = &used
		}, "jobs/s", report.Failed, "1,000 in the baseline, 100 in this run"},
		{"lower rates", intervalsOf(690, 650, 600, 680, 640, 660), intervalsOf(1000, 900, 1100, 950, 1050, 1000), nil, "jobs/s", report.Failed, "1,000 in the baseline, 653 in this run"},
	} {
		if tt.change != nil {
			tt.change(tt.now, tt.before)
		}
		if err := Baseline(tt.now, []*report.Report{tt.before}, 0.1); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(tt.now.Objectives, func(j report.SLOResult) bool { return j.Objective == "baseline, "+tt.objective })
		if i < 0 {
			t.Errorf("%s: %s is not compared: %+v", tt.name, tt.objective, tt.now.Objectives)
			continue
		}
		if j := tt.now.Objectives[i]; j.Result != tt.want || !strings.Contains(j.Why, tt.why) {
			t.Errorf("%s: %+v, want %s, %q", tt.name, j, tt.want, tt.why)
		}
	}
}

// TestRatioInterval tests by simulation how often the interval does not contain the ratio of the distributions, which is expected in 1 % of the samples.
func TestRatioInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{minIntervals, 10, 30} {
		trials := 4000
		if testing.Short() {
			trials = 1000
		}
		missed := 0
		for range trials {
			var old, now []float64
			for range n {
				old = append(old, math.Exp(0.3*r.NormFloat64()))
				now = append(now, 1.2*math.Exp(0.3*r.NormFloat64()))
			}
			if low, high := ratioInterval(old, now); low > 1.2 || high < 1.2 {
				missed++
			}
		}
		if missed > trials*15/1000 || missed < trials*3/1000 {
			t.Errorf("%d values: %d of %d intervals miss the ratio", n, missed, trials)
		}
	}
}

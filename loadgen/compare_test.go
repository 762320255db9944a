package loadgen

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"jobwire/internal/schemacheck"
)

// runsAt are reports with these rates.
func runsAt(rates ...float64) []*Report {
	var all []*Report
	for _, v := range rates {
		r := sampleReport(sampleResult())
		r.Rate = v
		all = append(all, r)
	}
	return all
}

func TestCompareRatios(t *testing.T) {
	c := Compare([]Group{{"old", runsAt(100, 110, 90, 105, 95, 100)}, {"new", runsAt(210, 220, 190, 200, 205, 195)}})
	got := c.Targets[1].Ratios["rate"]
	if got.Ratio < 1.9 || got.Ratio > 2.2 || got.Low == nil || *got.Low > got.Ratio || *got.High < got.Ratio || *got.Low < 1.7 || *got.High > 2.4 {
		t.Errorf("%+v", got)
	}
	if same := c.Targets[1].Ratios["total_p50_us"]; same.Ratio != 1 || *same.Low != 1 || *same.High != 1 {
		t.Errorf("what is the same differs: %+v", same)
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", b.Bytes())

	b.Reset()
	if err := c.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	schemacheck.Check(t, "../docs/schema/bench.json", b.Bytes())
	if back, err := ReadReports(&b); err != nil || len(back) != 12 {
		t.Errorf("%d runs were read back, %v", len(back), err)
	}
}

// Paired runs that a busy machine slowed together are a steady ratio.
func TestComparePairsTurns(t *testing.T) {
	c := Compare([]Group{{"a", runsAt(100, 50, 80, 20, 90, 60)}, {"b", runsAt(200, 100, 160, 40, 180, 120)}})
	if r := c.Targets[1].Ratios["rate"]; *r.Low < 1.99 || *r.High > 2.01 {
		t.Errorf("every turn was twice as fast, and the ratio is from %v to %v", *r.Low, *r.High)
	}
}

func TestCompareOfFewOrUnlikeRuns(t *testing.T) {
	odd := runsAt(50)
	odd[0].Window = 1
	c := Compare([]Group{{"a", runsAt(100)}, {"b", odd}})
	if r := c.Targets[1].Ratios["rate"]; r.Ratio != 0.5 || r.Low != nil {
		t.Errorf("%+v", r)
	}
	if notes := strings.Join(c.notes(), "\n"); !strings.Contains(notes, "window is 1 in one run and 128 in the other") {
		t.Errorf("notes %q", notes)
	}
}

func TestBaseline(t *testing.T) {
	for _, tt := range []struct {
		rate   float64
		passed bool
	}{{95, true}, {300, true}, {89, false}} {
		r := runsAt(tt.rate)[0]
		if err := r.Baseline(runsAt(100, 101, 99), 0.1); err != nil {
			t.Fatal(err)
		}
		if r.Passed() != tt.passed {
			t.Errorf("%v against 100: %+v", tt.rate, r.Objectives)
		}
	}
	other := runsAt(100)[0]
	other.Clients = 1
	if err := other.Baseline(runsAt(100), 0.1); err == nil || !strings.Contains(err.Error(), "clients is 1 in one run and 16 in the other") {
		t.Errorf("another run was taken for a baseline: %v", err)
	}
	cfg := sampleResult().Config
	if err := CheckBaseline(cfg, runsAt(100)); err != nil {
		t.Errorf("the same run is refused as a baseline: %v", err)
	}
	if cfg.Window = 1; CheckBaseline(cfg, runsAt(100)) == nil {
		t.Error("another window is taken")
	}
}

// Two equal runs are equal, however short they are. A figure with too few samples is not compared, and the report
// states that; a figure with enough samples is compared.
func TestBaselineOfShortRuns(t *testing.T) {
	for _, tt := range []struct {
		name      string
		change    func(now, before *Report)
		tolerance float64
		objective string
		want      Verdict
		why       string
	}{
		{"4 and 5 ticks", func(now, before *Report) { before.CPU.Target, now.CPU.Target = 13.3, 16.7 }, 0.1, "CPU per job, target", Skipped, "too short to compare: 5 CPU ticks"},
		{"4 ticks before", func(now, before *Report) { before.CPU.Target, now.CPU.Target = 13.3, 1670 }, 0.1, "CPU per job, target", Skipped, "the baseline has 4 CPU ticks"},
		{"400 and 500 ticks", func(now, before *Report) { before.CPU.Target, now.CPU.Target = 1330, 1670 }, 0.1, "CPU per job, target", Failed, "1.33 ms in the baseline, 1.67 ms in this run"},
		{"20 and 25 ticks", func(now, before *Report) { before.CPU.Target, now.CPU.Target = 67, 83 }, 0.5, "CPU per job, target", Passed, ""},
		{"a part of a second", func(now, before *Report) { now.Seconds, now.Rate = 0.3, 10 }, 0.1, "jobs/s", Skipped, "a run of 0.30 s"},
		{"a slower run", func(now, before *Report) { now.Rate = 800 }, 0.1, "jobs/s", Failed, "1,000 in the baseline, 800 in this run"},
		{"30 samples", func(now, before *Report) { now.Latency["total"] = Quantiles{Count: 3000, P50: 5500, P99: 9000} }, 0.1, "total p99", Skipped, "30 samples beyond the percentile"},
		{"500 samples", func(now, before *Report) {
			now.Latency["total"] = Quantiles{Count: 50000, P50: 5500, P99: 9000}
			before.Latency["total"] = Quantiles{Count: 50000, P50: 5500, P99: 7000}
		}, 0.1, "total p99", Failed, "7.00 ms in the baseline, 9.00 ms in this run"},
	} {
		now, before := runsAt(1000)[0], runsAt(1000)[0]
		tt.change(now, before)
		if err := now.Baseline([]*Report{before}, tt.tolerance); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(now.Objectives, func(j SLOResult) bool { return j.Objective == "baseline, "+tt.objective })
		if i < 0 {
			t.Errorf("%s: %s is not compared: %+v", tt.name, tt.objective, now.Objectives)
			continue
		}
		if j := now.Objectives[i]; j.Result != tt.want || !strings.Contains(j.Why, tt.why) {
			t.Errorf("%s: %+v, want %s, %q", tt.name, j, tt.want, tt.why)
		}
		if got := now.Result(); got != map[Verdict]Verdict{Passed: Passed, Skipped: Passed, Failed: Failed}[tt.want] {
			t.Errorf("%s: the verdict is %s: %+v", tt.name, got, now.Objectives)
		}
	}
}

// A figure that varies from interval to interval as much as it differs from the baseline does not fail the run; a steady one does.
func TestBaselineOfIntervals(t *testing.T) {
	series := func(rates ...int64) *Report {
		r := sampleReport(sampleResult())
		r.Interval, r.Seconds, r.Series = 1, float64(len(rates)), nil
		sum := int64(0)
		for i, n := range rates {
			r.Series = append(r.Series, IntervalEntry{Start: float64(i), Seconds: 1, Jobs: n})
			sum += n
		}
		r.Rate = float64(sum) / float64(len(rates))
		return r
	}
	before := series(1000, 700, 1300, 950, 1050, 1000)
	for _, tt := range []struct {
		now  *Report
		want Verdict
	}{
		{series(980, 500, 1250, 700, 1010, 850), Passed},
		{series(690, 650, 600, 680, 640, 660), Failed},
	} {
		if err := tt.now.Baseline([]*Report{before}, 0.1); err != nil {
			t.Fatal(err)
		}
		for _, o := range tt.now.Objectives {
			if o.Objective == "baseline, jobs/s" && o.Result != tt.want {
				t.Errorf("%s: %s, want %s", o.Why, o.Result, tt.want)
			}
		}
	}
}

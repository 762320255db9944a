package report_test

import (
	"strings"
	"testing"

	"jobwire/loadgen/internal/loadtest"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
)

// TestSaturation tests that a report says that the load generator was the bottleneck if it used its processor time or
// was late, and not if other processes used the time.
func TestSaturation(t *testing.T) {
	cores := func(generator, target, foreign float64) report.Cores {
		return report.Cores{&generator, &target, &foreign, nil}
	}
	for _, tt := range []struct {
		why       string
		cores     report.Cores
		late      latency.Micros
		saturated bool
	}{
		{"there was time left", cores(0.5, 0.6, 0.1), 10, false},
		{"the generator used all that it may", cores(2.95, 0.1, 0), 0, true},
		{"it was late", cores(0.1, 0.1, 0), 2500, true},
		{"others took the time", cores(0.05, 0.05, 1000), 0, false},
	} {
		r := &report.Report{Seconds: 1, Processors: 3, Cores: tt.cores}
		if tt.late > 0 {
			r.Pacing = &latency.Quantiles{Mean: tt.late}
		}
		cfg := loadtest.Result().Config
		if tt.late > 0 {
			cfg.Rate = &schedule.Schedule{Steps: []schedule.Step{{From: 1000, To: 1000}}}
		}
		if why := report.Bottleneck(r, &cfg, 1); (why != "") != tt.saturated {
			t.Errorf("%s: saturated %q", tt.why, why)
		}
	}
}

// TestObjectives tests that an objective such as p99<8ms passes or fails by the figures of the report, and that an
// invalid objective is an error.
func TestObjectives(t *testing.T) {
	r := loadtest.Report(loadtest.Result())
	for text, want := range map[string]report.Verdict{
		"p99<8ms": report.Passed, "p99<6ms": report.Failed, "queued.p50<4ms": report.Passed, "created.max<3ms": report.Failed, "rate>999": report.Passed, "rate>1k": report.Failed, "mean<6s": report.Passed,
	} {
		r.Check(loadtest.Objectives(t, text))
		if got := r.Objectives[0]; got.Result != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, text := range []string{"", "p99", "p99<", "p99<5", "p99<-5ms", "p98<5ms", "wait.p99<5ms", "rate<5", "rate>0"} {
		if _, err := report.ParseObjective(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestObjectiveFailsWithoutPercentile tests that an objective is invalid if the run has too few samples for its
// percentile.
func TestObjectiveFailsWithoutPercentile(t *testing.T) {
	r := loadtest.Report(loadtest.Result())
	r.Check(loadtest.Objectives(t, "p99.9<1h"))
	if j := r.Objectives[0]; j.Result != report.Invalid || !strings.Contains(j.Why, "too few samples") {
		t.Errorf("%+v", j)
	}
}

package report_test

import (
	"strings"
	"testing"

	"jobwire/loadgen/report"
)

// TestStationarity tests that a report says that the rate changed during a run if it rises or falls, and ignores a
// small trend, a single slow interval and the warm-up.
func TestStationarity(t *testing.T) {
	noise := func(i int) float64 { return float64(i*7%5) - 2 }
	for _, tt := range []struct {
		what   string
		rate   func(i int) float64
		n      int
		want   string // part of the text; "" if the run is too short for the check
		steady bool
	}{
		{"a constant rate", func(i int) float64 { return 1000 + noise(i) }, 10, "the rate did not change", true},
		{"a small trend", func(i int) float64 { return 1000 + 4*float64(i) }, 10, "the rate did not change", true},
		{"a rate that falls", func(i int) float64 { return 1000 - 40*float64(i) + noise(i) }, 10, "the rate changed during the run: 922 jobs/s in the first half, 722 jobs/s in the second", false},
		{"one slow interval", func(i int) float64 {
			if i == 7 {
				return 100
			}
			return 1000 + noise(i)
		}, 10, "the rate did not change", true},
		{"a short run", func(i int) float64 { return 1000 - 100*float64(i) }, 7, "", false},
	} {
		r := &report.Report{Interval: 1, Seconds: float64(tt.n)}
		r.Series = append(r.Series, report.IntervalEntry{Start: -1, Seconds: 1, Jobs: 1}) // the warm-up
		for i := range tt.n {
			r.Series = append(r.Series, report.IntervalEntry{Start: float64(i), Seconds: 1, Jobs: int64(tt.rate(i))})
		}
		s := report.Trend(r)
		if s == nil {
			if tt.want != "" {
				t.Errorf("%s was not checked", tt.what)
			}
			continue
		}
		if s.Steady != tt.steady || tt.want == "" || !strings.Contains(s.String(), tt.want) {
			t.Errorf("%s: %v %s", tt.what, s.Steady, s)
		}
	}
}

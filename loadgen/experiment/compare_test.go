package experiment

import (
	"strings"
	"testing"

	"jobwire/loadgen/internal/loadtest"
)

// TestCompareRatios tests that the comparison of two targets has the ratio of each figure with its confidence interval.
func TestCompareRatios(t *testing.T) {
	c := Compare([]Group{{"old", loadtest.Rates(100, 110, 90, 105, 95, 100)}, {"new", loadtest.Rates(210, 220, 190, 200, 205, 195)}})
	got := c.Targets[1].Ratios["rate"]
	if got.Ratio < 1.9 || got.Ratio > 2.2 || got.Low == nil || *got.Low > got.Ratio || *got.High < got.Ratio || *got.Low < 1.7 || *got.High > 2.4 {
		t.Errorf("%+v", got)
	}
	if same := c.Targets[1].Ratios["total_p50_us"]; same.Ratio != 1 || *same.Low != 1 || *same.High != 1 {
		t.Errorf("what is the same differs: %+v", same)
	}
}

// TestComparePairsTurns tests that the confidence interval of the ratio is narrow if the paired runs of both groups
// were slowed by the same factor.
func TestComparePairsTurns(t *testing.T) {
	c := Compare([]Group{{"a", loadtest.Rates(100, 50, 80, 20, 90, 60)}, {"b", loadtest.Rates(200, 100, 160, 40, 180, 120)}})
	if r := c.Targets[1].Ratios["rate"]; *r.Low < 1.99 || *r.High > 2.01 {
		t.Errorf("every turn was twice as fast, and the ratio is from %v to %v", *r.Low, *r.High)
	}
}

// TestCompareOfFewOrUnlikeRuns tests that a comparison of too few runs has no confidence interval, and that one of runs
// with other settings says which setting differs.
func TestCompareOfFewOrUnlikeRuns(t *testing.T) {
	odd := loadtest.Rates(50)
	odd[0].Window = 1
	c := Compare([]Group{{"a", loadtest.Rates(100)}, {"b", odd}})
	if r := c.Targets[1].Ratios["rate"]; r.Ratio != 0.5 || r.Low != nil {
		t.Errorf("%+v", r)
	}
	if notes := strings.Join(c.Notes(), "\n"); !strings.Contains(notes, "window is 1 in one run and 128 in the other") {
		t.Errorf("notes %q", notes)
	}
}

// TestDifferences tests that a difference is shown as better or worse only if it is larger than the tolerance and
// significant.
func TestDifferences(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	for _, tt := range []struct {
		figure string
		ratio  Ratio
		want   string
	}{
		{"rate", Ratio{Ratio: 1.2, Low: number(1.1), High: number(1.3)}, "better"},
		{"total_p99_us", Ratio{Ratio: 1.2, Low: number(1.1), High: number(1.3)}, "worse"},
		{"total_p99_us", Ratio{Ratio: 0.8, Low: number(0.7), High: number(0.9)}, "better"},
		{"total_p99_us", Ratio{Ratio: 0.8, Low: number(0.7), High: number(1.1)}, "not significant"},
		{"rate", Ratio{Ratio: 0.95, Low: number(0.94), High: number(0.96)}, "within 10 %"},
		{"rate", Ratio{Ratio: 1, Low: number(0.95), High: number(1.05)}, "within 10 %"},
		{"rate", Ratio{Ratio: 1, Low: number(0.7), High: number(1.05)}, "not significant"},
		{"rate", Ratio{Ratio: 1}, "too few runs"},
		{"rate", Ratio{Ratio: 0.5}, "too few runs"},
		{"rate", Ratio{Ratio: 0.5, P: number(0.01)}, "worse"},
		{"rate", Ratio{Ratio: 0.5, P: number(0.2)}, "not significant"},
		{"cpu_us_per_job_generator", Ratio{Ratio: 2, P: number(0.01)}, "significant"},
	} {
		if _, got := figureOf(tt.figure).Difference(tt.ratio, 0.1); got != tt.want {
			t.Errorf("%s %+v: %s, want %s", tt.figure, tt.ratio, got, tt.want)
		}
	}
}

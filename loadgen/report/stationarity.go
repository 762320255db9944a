package report

import (
	"fmt"
	"slices"

	"golang.org/x/perf/benchmath"

	"jobwire/loadgen/latency"
)

// Stationarity is the result of a check whether a figure stayed the same during the measured part of a run. The check
// compares the intervals of the first half with those of the second half, with the Mann-Whitney U test.
type Stationarity struct {
	// "rate" for a closed loop, in jobs per second; "total_p50_us" for an open loop, in microseconds
	Figure string  `json:"figure"`
	First  float64 `json:"first"`  // median of the intervals of the first half
	Second float64 `json:"second"` // median of the intervals of the second half
	P      float64 `json:"p"`      // probability of a difference at least as large if there was no trend
	Steady bool    `json:"steady"` // the difference is not significant (p >= 0.05), or small
}

// Limits of the check.
const (
	minTrendIntervals = 8    // complete intervals: the test needs four in each half
	trendShare        = 0.05 // a smaller difference, as a share of the first median, is ignored even if it is significant
)

// stationarity checks the complete intervals of the measured part. It returns nil if there are fewer than
// minTrendIntervals.
func (r *Report) stationarity() *Stationarity {
	s, of := &Stationarity{Figure: "rate"}, (*IntervalEntry).Rate
	if r.Requested != "" {
		s.Figure = "total_p50_us"
		of = func(e *IntervalEntry) float64 { return float64(e.Latency[latency.Stages[latency.Total]].P50) }
	}
	all := r.Intervals(of)
	if len(all) < minTrendIntervals {
		return nil
	}
	first, second := all[:len(all)/2], all[len(all)/2:]
	s.First, s.Second = Median(first), Median(second)
	s.P = benchmath.AssumeNothing.Compare(Sample(first), Sample(second)).P
	change := s.Second/s.First - 1
	s.Steady = s.P >= benchmath.DefaultThresholds.CompareAlpha || max(change, -change) <= trendShare
	return s
}

// String returns the result in one line.
func (s *Stationarity) String() string {
	what, format := "the rate", func(v float64) string { return FormatJobs(v) + " jobs/s" }
	if s.Figure != "rate" {
		what, format = "the median latency", func(v float64) string { return latency.Micros(v).String() }
	}
	if s.Steady {
		return fmt.Sprintf("%s did not change: %s in the first half, %s in the second (p=%.3f)", what, format(s.First),
			format(s.Second), s.P)
	}
	return fmt.Sprintf("%s changed during the run: %s in the first half, %s in the second (p=%.3f); use a longer --warmup or a longer run", what, format(s.First), format(s.Second), s.P)
}

// Median returns the median of at least one value.
func Median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Sample returns the values as a sample for tests of significance.
func Sample(v []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(v), &benchmath.DefaultThresholds)
}

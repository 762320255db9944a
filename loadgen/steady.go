package loadgen

import (
	"fmt"

	"golang.org/x/perf/benchmath"
)

// Stationarity reports whether a figure stayed the same over the measured part of a run: it compares the intervals of the first half with
// those of the second half by the Mann-Whitney U test.
type Stationarity struct {
	Figure string  `json:"figure"` // "rate" of a closed loop, in jobs per second; "total_p50_us" of an open loop, in microseconds
	First  float64 `json:"first"`  // median of the intervals of the first half
	Second float64 `json:"second"`
	P      float64 `json:"p"` // probability of a difference at least as large without a trend
	Steady bool    `json:"steady"`
}

// Limits of the check. A difference that is significant, but small, does not make the figures of a run useless.
const (
	minTrendIntervals = 8    // so that each half has the four that the test needs
	trendShare        = 0.05 // of the first median
)

// stationarity checks the complete intervals of the measured part. It returns nil if there are fewer than minTrendIntervals.
func (r *Report) stationarity() *Stationarity {
	s := &Stationarity{Figure: "rate"}
	if r.Requested != "" {
		s.Figure = "total_p50_us"
	}
	all := figureOf(s.Figure).ofIntervals([]*Report{r})
	if len(all) < minTrendIntervals {
		return nil
	}
	first, second := all[:len(all)/2], all[len(all)/2:]
	s.First, s.Second = median(first), median(second)
	s.P = benchmath.AssumeNothing.Compare(sample(first), sample(second)).P
	change := s.Second/s.First - 1
	s.Steady = s.P >= benchmath.DefaultThresholds.CompareAlpha || max(change, -change) <= trendShare
	return s
}

// complete returns the intervals of the measured part that are not cut short.
func (r *Report) complete() (all []*IntervalEntry) {
	for i := range r.Series {
		if e := &r.Series[i]; e.Start >= 0 && e.Seconds >= 0.9*r.Interval && e.Start+e.Seconds <= r.Seconds+r.Interval/2 {
			all = append(all, e)
		}
	}
	return all
}

// String returns the result in one line.
func (s *Stationarity) String() string {
	what, format := "the rate", func(v float64) string { return formatJobs(v) + " jobs/s" }
	if s.Figure != "rate" {
		what, format = "the median latency", formatMicros
	}
	if s.Steady {
		return fmt.Sprintf("%s did not change: %s in the first half, %s in the second (p=%.3f)", what, format(s.First), format(s.Second), s.P)
	}
	return fmt.Sprintf("%s changed during the run: %s in the first half, %s in the second (p=%.3f); use a longer --warmup or a longer run", what, format(s.First), format(s.Second), s.P)
}

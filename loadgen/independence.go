package loadgen

import (
	"fmt"
	"math"
	"time"
)

// Independence reports whether the gaps between the submissions of a random schedule were independent of each other, as those of a
// Poisson process are. A load generator that is late and then catches up makes them dependent.
type Independence struct {
	Correlation float64 `json:"correlation"` // of each gap with the next, from -1 to 1
	Independent bool    `json:"independent"`
}

// Limits of the check.
const (
	minGaps        = 100
	minGap         = 4 * minBatchInterval // mean gap: jobs that are closer together are submitted in batches
	maxCorrelation = 0.05                 // or three standard deviations of the estimate
)

// gaps measures the gaps between submissions, in seconds.
type gaps struct {
	n                      int64 // submissions
	last                   time.Duration
	gap                    float64
	sum, squares, products float64
}

// add notes a submission at a time since the beginning.
func (g *gaps) add(at time.Duration) {
	gap := (at - g.last).Seconds()
	if g.n++; g.n > 1 {
		g.sum += gap
		g.squares += gap * gap
		g.products += gap * g.gap
	}
	g.last, g.gap = at, gap
	if g.n == 1 {
		g.gap = 0
	}
}

// independence returns nil if the gaps were too few, or too short.
func (g *gaps) independence() *Independence {
	n := float64(g.n - 1)
	mean := g.sum / n
	if g.n <= minGaps || mean < minGap.Seconds() {
		return nil
	}
	variance := g.squares/n - mean*mean
	if variance <= 0 {
		return nil
	}
	r := (g.products/(n-1) - mean*mean) / variance
	return &Independence{Correlation: math.Round(r*1e4) / 1e4, Independent: math.Abs(r) <= max(maxCorrelation, 3/math.Sqrt(n))}
}

// String returns the result in one line.
func (i *Independence) String() string {
	what := "independent"
	if !i.Independent {
		what = "not independent: the load generator was late and caught up"
	}
	return fmt.Sprintf("gaps between submissions were %s (correlation %.3f)", what, i.Correlation)
}

package schedule

import (
	"fmt"
	"math"
	"time"
)

// Independence is the result of a check whether the gaps between the submissions of a random schedule were
// independent of each other, as in a Poisson process. A load generator that is late and then catches up makes them
// dependent.
type Independence struct {
	Correlation float64 `json:"correlation"` // correlation of each gap with the next, from -1 to 1
	Independent bool    `json:"independent"`
}

// Limits of the check.
const (
	minGaps = 100 // the check needs more than this number of submissions
	// limit of the correlation, unless three standard deviations of the estimate are larger
	maxCorrelation = 0.05
)

// Gaps accumulates the sums for the correlation of the gaps between submissions, in seconds.
type Gaps struct {
	n                      int64         // number of submissions
	last                   time.Duration // time of the last submission
	gap                    float64       // gap before the last submission
	sum, squares, products float64
}

// Add adds a submission. at is the time since the start of the schedule.
func (g *Gaps) Add(at time.Duration) {
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

// Independence returns the result, or nil if there are too few gaps or the mean gap is shorter than shortest.
func (g *Gaps) Independence(shortest time.Duration) *Independence {
	n := float64(g.n - 1)
	mean := g.sum / n
	if g.n <= minGaps || mean < shortest.Seconds() {
		return nil
	}
	variance := g.squares/n - mean*mean
	if variance <= 0 {
		return nil
	}
	r := (g.products/(n-1) - mean*mean) / variance
	return &Independence{Correlation: math.Round(r*1e4) / 1e4,
		Independent: math.Abs(r) <= max(maxCorrelation, 3/math.Sqrt(n))}
}

// String returns the result in one line.
func (i *Independence) String() string {
	what := "independent"
	if !i.Independent {
		what = "not independent: the load generator was late and caught up"
	}
	return fmt.Sprintf("gaps between submissions were %s (correlation %.3f)", what, i.Correlation)
}

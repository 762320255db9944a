package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestIndependence tests that gaps between jobs that depend on the gap before are found, and that too few, too short
// and constant gaps are not checked.
func TestIndependence(t *testing.T) {
	const mean = time.Millisecond
	r := rand.New(rand.NewPCG(1, 2))
	random := func() time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
	previous := time.Duration(0)
	for _, tt := range []struct {
		what        string
		n           int
		gap         func(i int) time.Duration
		checked     bool
		independent bool
	}{
		{"a Poisson process", 20000, func(int) time.Duration { return random() }, true, true},
		{"short after long", 20000, func(i int) time.Duration {
			if i%2 == 0 {
				previous = random()
				return previous
			}
			return max(0, 2*mean-previous)
		}, true, false},
		{"few", 100, func(int) time.Duration { return random() }, false, false},
		{"short gaps", 20000, func(int) time.Duration { return random() / 100 }, false, false},
		{"even gaps", 20000, func(int) time.Duration { return mean }, false, false},
	} {
		g, at := Gaps{}, time.Hour
		for i := range tt.n {
			g.Add(at)
			at += tt.gap(i)
		}
		got := g.Independence(mean / 5)
		if (got != nil) != tt.checked {
			t.Errorf("%s: got %v", tt.what, got)
		} else if got != nil && (got.Independent != tt.independent || math.Abs(got.Correlation) > 1) {
			t.Errorf("%s: %s", tt.what, got)
		}
	}
}

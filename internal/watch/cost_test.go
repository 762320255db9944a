package watch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestCosts: only samples that all cost much more at the largest size, and more than the resolution, show growth.
func TestCosts(t *testing.T) {
	const ms, us = time.Millisecond, time.Microsecond
	for _, row := range []struct {
		name       string
		few, large []time.Duration
		grows      bool
		err        error
	}{
		{"constant", []time.Duration{4 * ms, 5 * ms, 4 * ms, 4 * ms}, []time.Duration{5 * ms, 4 * ms, 5 * ms, 4 * ms}, false, nil},
		{"logarithmic", []time.Duration{2 * ms, 2 * ms, 2 * ms, 2 * ms}, []time.Duration{5 * ms, 5 * ms, 6 * ms, 5 * ms}, false, nil},
		{"linear", []time.Duration{9 * ms, 2 * ms, 2 * ms, 2 * ms}, []time.Duration{40 * ms, 41 * ms, 39 * ms, 60 * ms}, true, nil},
		{"slow for a while", []time.Duration{2 * ms, 2 * ms, 2 * ms, 2 * ms}, []time.Duration{40 * ms, 41 * ms, 39 * ms, 2 * ms},
			false, nil},
		{"too small to compare", []time.Duration{9 * us, 9 * us, 9 * us, 9 * us}, []time.Duration{900 * us, 900 * us, 900 * us, 900 * us},
			false, nil},
		{"another process", []time.Duration{0, 0, 0, 0}, []time.Duration{us, 0, us, 0}, false, ErrNoCost},
	} {
		var c costs
		for _, d := range row.few {
			c.all = append(c.all, sample{"put", 0, d})
		}
		for _, d := range row.large {
			c.all = append(c.all, sample{"put", 1000, d}, sample{"other", 1000, ms})
		}
		amiss, err := c.check()
		if strings.Contains(amiss, `"put" grows`) != row.grows || !errors.Is(err, row.err) {
			t.Errorf("%s: %q, %v, want growth: %v, error: %v", row.name, amiss, err, row.grows, row.err)
		}
	}
}

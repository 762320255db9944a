package schedule

import (
	"testing"
	"time"
)

// TestScheduleRoundTrip tests that a schedule of rates is the same after it has been parsed and printed, and that an
// invalid schedule is an error.
func TestScheduleRoundTrip(t *testing.T) {
	for _, text := range []string{"5000", "0.5", "1000-9000/30s", "poisson:5000", "1000/10s,2000/10s,4000", "poisson:100-200/1m0s,50/2s"} {
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if s.String() != text {
			t.Errorf("%s became %s", text, s)
		}
	}
	for _, text := range []string{"", "0", "-5", "x", "1-2", "5/", "5/x", "5/0s", "100,200", "poisson:", "1e99", "5/10s,"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q is taken, as %s", text, s)
		}
	}
}

// TestScheduleLengthAndUnits tests that the length of a schedule is the sum of its steps, and that k and M in rates
// stand for thousands and millions.
func TestScheduleLengthAndUnits(t *testing.T) {
	s, err := Parse("1k-2M/30s,5/500ms")
	if err != nil {
		t.Fatal(err)
	}
	if s.Length() != 30500*time.Millisecond || s.Steps[0].From != 1000 || s.Steps[0].To != 2e6 {
		t.Errorf("%v takes %v", s, s.Length())
	}
}

// TestScheduleMean tests that Mean returns the mean rate of a schedule between two times, also within a ramp and after
// the end of the schedule.
func TestScheduleMean(t *testing.T) {
	for _, tt := range []struct {
		text     string
		from, to time.Duration
		want     float64
	}{
		{"5000", 0, 4 * time.Second, 5000},
		{"1000-3000/10s", 0, 10 * time.Second, 2000},
		{"1000-3000/10s", 5 * time.Second, 10 * time.Second, 2500},
		{"1000-3000/10s", 0, 20 * time.Second, 2500},
		{"1000-3000/10s", 10 * time.Second, 20 * time.Second, 3000},
		{"1000/10s,2000/10s,4000", 0, 40 * time.Second, 2750},
		{"poisson:1000/10s,2000/10s,4000", 5 * time.Second, 15 * time.Second, 1500},
	} {
		s, err := Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Mean(tt.from, tt.to); got < tt.want-0.01 || got > tt.want+0.01 {
			t.Errorf("%s from %v to %v: %v, want %v", tt.text, tt.from, tt.to, got, tt.want)
		}
	}
}

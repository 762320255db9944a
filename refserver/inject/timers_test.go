package inject

import (
	"slices"
	"testing"
	"time"
)

// TestTimers checks that each function is called once and not early, and that next returns the earliest time.
func TestTimers(t *testing.T) {
	var a timers
	if !a.next(time.Time{}).IsZero() {
		t.Error("next returns a time without a timer")
	}
	var called []string
	a.After(time.Hour, func() { called = append(called, "late") })
	a.After(time.Minute, func() { called = append(called, "soon") })
	first := a.next(time.Time{})
	if left := time.Until(first); left > time.Minute || left < 50*time.Second {
		t.Errorf("the first timer expires in %v", left)
	}
	if sooner := first.Add(-time.Second); !a.next(sooner).Equal(sooner) {
		t.Error("next returns a timer before an earlier time")
	}
	a.run(first.Add(-time.Second))
	if called != nil {
		t.Errorf("%v were called early", called)
	}
	a.run(first)
	a.run(first.Add(2 * time.Hour))
	a.run(first.Add(3 * time.Hour))
	if want := []string{"soon", "late"}; !slices.Equal(called, want) {
		t.Errorf("%v were called, want %v", called, want)
	}
}

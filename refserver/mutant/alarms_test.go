package mutant

import (
	"slices"
	"testing"
	"time"
)

// What is due is done once each, and not early; the first of all times is the next.
func TestAlarms(t *testing.T) {
	var a Alarms
	if !a.Next(time.Time{}).IsZero() {
		t.Error("something is due without an alarm")
	}
	var rung []string
	a.After(time.Hour, func() { rung = append(rung, "late") })
	a.After(time.Minute, func() { rung = append(rung, "soon") })
	due := a.Next(time.Time{})
	if left := time.Until(due); left > time.Minute || left < 50*time.Second {
		t.Errorf("the first alarm is due in %v", left)
	}
	if sooner := due.Add(-time.Second); !a.Next(sooner).Equal(sooner) {
		t.Error("an alarm hides what is due sooner")
	}
	a.Ring(due.Add(-time.Second))
	if rung != nil {
		t.Errorf("%v rang early", rung)
	}
	a.Ring(due)
	a.Ring(due.Add(2 * time.Hour))
	a.Ring(due.Add(3 * time.Hour))
	if want := []string{"soon", "late"}; !slices.Equal(rung, want) {
		t.Errorf("%v rang, want %v", rung, want)
	}
}

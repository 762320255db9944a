package lateness

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestLongestDelayIsRemembered tests that a Meter returns the longest delay of the machine since a time and the sum of
// all delays, and none for a machine that was never late.
func TestLongestDelayIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		m := Measure(ctx)
		time.Sleep(time.Second)
		before := time.Now()
		if late := m.Since(before.Add(-time.Hour)); late != 0 || m.Lost() != 0 {
			t.Errorf("a machine that is never late is %v late and has lost %v", late, m.Lost())
		}
		m.Note(before.Add(time.Second), Acceptable)
		m.Note(before.Add(2*time.Second), Acceptable+1)
		if late := m.Since(before); late != Acceptable+1 {
			t.Errorf("%v late, want %v", late, Acceptable+1)
		}
		if late := m.Since(before.Add(3 * time.Second)); late != 0 {
			t.Errorf("%v late since then, want 0", late)
		}
		if lost := m.Lost(); lost != 2*Acceptable+1 {
			t.Errorf("lost %v, want %v", lost, 2*Acceptable+1)
		}
	})
}

// TestHistoryIsBounded tests that a Meter uses little memory if the machine is late for hours, and still returns the
// longest delay since any time.
func TestHistoryIsBounded(t *testing.T) {
	m := &Meter{}
	start := time.Now()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	for i := range 100_000 {
		m.Note(at(i), Acceptable+time.Duration(1+i%10)*time.Millisecond)
	}
	m.Note(at(100_000), Acceptable+time.Millisecond)
	if n := len(m.long); n > 10 {
		t.Errorf("%d entries are kept, expected at most 10", n)
	}
	for from, want := range map[int]time.Duration{0: 10, 99_999: 10, 100_000: 1} {
		if late := m.Since(at(from)); late != Acceptable+want*time.Millisecond {
			t.Errorf("since %d: %v late, expected %v more than %v", from, late, want*time.Millisecond, Acceptable)
		}
	}
}

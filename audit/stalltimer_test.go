package audit

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStallTimer: a time limit does not expire because the machine was busy for that long.
func TestStallTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(busy time.Duration) (took time.Duration) {
			begun := time.Now()
			p := newStallTimer(100 * time.Millisecond)
			defer p.Stop()
			time.Sleep(busy)
			for over := false; !over; over = p.over() {
				<-p.C
			}
			return time.Since(begun)
		}
		if took := wait(0); took != 100*time.Millisecond {
			t.Errorf("100 ms took %v", took)
		}
		if took := wait(time.Second); took < 1090*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("after a second in which nothing ran it took %v", took)
		}
	})
}

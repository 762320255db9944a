package exec

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClock tests that durations and Unix times for a server whose clock runs faster than the machine's are converted
// correctly, also for a server without such a clock.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		fast, machine := clock{begun, 10}, clock{}
		time.Sleep(fast.real(20 * time.Second))
		if got := time.Since(begun); got != 2*time.Second {
			t.Errorf("20 s of the fast clock took %v", got)
		}
		if got := fast.now().Sub(begun); got != 20*time.Second {
			t.Errorf("the fast clock has advanced by %v", got)
		}
		if got := machine.now().Sub(begun); got != 2*time.Second || machine.real(time.Second) != time.Second {
			t.Errorf("the clock of the machine has advanced by %v", got)
		}
		if got := string(fast.at([]byte("-7"))); got != string(machine.at([]byte("11"))) {
			t.Errorf("7 s before the time of the fast clock: %s", got)
		}
	})
}

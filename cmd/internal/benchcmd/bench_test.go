package benchcmd

import (
	"testing"
	"time"

	"jobwire/loadgen"
	"jobwire/loadgen/schedule"
)

// TestDefaultWarmup tests that a tenth of the duration, and at most a second, is not measured by default, and that runs
// that measure all jobs or have a changing rate have no warm-up.
func TestDefaultWarmup(t *testing.T) {
	changing, err := schedule.Parse("100-200/10s")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cfg  loadgen.Config
		sc   loadgen.Scenario
		want time.Duration
	}{
		{loadgen.Config{Duration: 300 * time.Millisecond}, loadgen.Scenario{}, 30 * time.Millisecond},
		{loadgen.Config{Duration: time.Minute}, loadgen.Scenario{}, time.Second},
		{loadgen.Config{}, loadgen.Scenario{}, min(time.Second, loadgen.DefaultDuration/10)},
		{loadgen.Config{Count: 10}, loadgen.Scenario{}, 0},
		{loadgen.Config{Duration: time.Second}, loadgen.Scenario{Backlog: true}, 0},
		{loadgen.Config{Duration: time.Second}, loadgen.Scenario{Crash: true}, 0},
		{loadgen.Config{Duration: time.Second, Rate: changing}, loadgen.Scenario{}, 0},
	} {
		if got := defaultWarmup(&tt.cfg, tt.sc); got != tt.want {
			t.Errorf("%+v, %+v: %v, expected %v", tt.cfg, tt.sc, got, tt.want)
		}
	}
}

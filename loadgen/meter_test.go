package loadgen

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/schedule"
)

// TestSteadyLatency tests that the lowest mean latency of an interval counts, because the latency of later intervals
// includes the growth of the backlog.
func TestSteadyLatency(t *testing.T) {
	for _, tt := range []struct {
		name string
		jobs int // jobs in each interval
		want time.Duration
	}{
		{"a growing backlog", 200, 100 * time.Millisecond},
		{"few jobs", 20, 200 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, err := Config{Protocol: gearman.Protocol, Rate: &schedule.Schedule{Steps: []schedule.Step{{From: 100, To: 100}}}, Duration: 3 * time.Second,
					Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("unused") }}.Complete()
				if err != nil {
					t.Fatal(err)
				}
				r := newRun(cfg)
				m := newMeter(r)
				m.begin()
				for i := range 3 {
					time.Sleep(time.Second)
					shard := &r.histogramShards[0]
					shard.hist[latency.Total].RecordValues(int64(i+1)*int64(100*time.Millisecond), int64(tt.jobs))
					shard.done += int64(tt.jobs)
					m.interval()
				}
				m.end()
				if got := m.result(nil).Steady.Round(time.Millisecond); got != tt.want {
					t.Errorf("%v, expected %v", got, tt.want)
				}
			})
		})
	}
}

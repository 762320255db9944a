package loadgen_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/loadgen"
)

// TestReconnect tests that clients reconnect while jobs are submitted, and that no job is lost.
func TestReconnect(t *testing.T) {
	for _, scenario := range []string{"cycle", "mixed", "chaos", "echo"} {
		bubble(t, scenario, func(t *testing.T) {
			var dials atomic.Int64
			dial := serving(t, gearman.Protocol)
			res := load(t, loadgen.Config{Protocol: gearman.Protocol, Scenario: scenario,
				Clients: 4, Workers: 2, Window: 8, Batch: 4, Reconnect: 200, Duration: 200 * time.Millisecond,
				Think: 5 * time.Millisecond, Dial: func(ctx context.Context) (net.Conn, error) { dials.Add(1); return dial(ctx) }})
			workers := int64(2)
			if scenario == "echo" {
				workers = 0
			}
			// The end of the run interrupts reconnections in progress. In scenario chaos, workers reconnect too.
			got := dials.Load() - 4 - workers
			if res.Reconnects == 0 || got < res.Reconnects || got > res.Reconnects+4 && scenario != "chaos" {
				t.Errorf("%d connections after the first ones, %d reconnections", got, res.Reconnects)
			}
			if !res.Account.NoFaults() || res.Jobs == 0 {
				t.Errorf("%d jobs: %+v", res.Jobs, res.Account)
			}
		})
	}
}

// firstWrite is a connection that calls wrote before its first write.
type firstWrite struct {
	net.Conn
	once  sync.Once
	wrote func()
}

func (c *firstWrite) Write(b []byte) (int, error) {
	c.once.Do(c.wrote)
	return c.Conn.Write(b)
}

// TestRamp tests that clients start one after the other, before the measured part.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, ramp = 5, 500 * time.Millisecond
		var mu sync.Mutex
		var begun []time.Duration
		var measured time.Duration
		start, dial := time.Now(), serving(t, gearman.Protocol)
		res := load(t, loadgen.Config{Protocol: gearman.Protocol, Scenario: "echo", Clients: clients,
			Ramp: ramp, Duration: 100 * time.Millisecond, Think: time.Millisecond,
			PhaseChange: func() {
				if measured == 0 {
					measured = time.Since(start)
				}
			},
			Dial: func(ctx context.Context) (net.Conn, error) {
				c, err := dial(ctx)
				return &firstWrite{Conn: c, wrote: func() {
					mu.Lock()
					defer mu.Unlock()
					begun = append(begun, time.Since(start))
				}}, err
			}})
		if !res.Account.NoFaults() {
			t.Errorf("%+v", res.Account)
		}
		const step = ramp / clients
		if want := []time.Duration{0, step, 2 * step, 3 * step, 4 * step}; !slices.Equal(begun, want) || measured != ramp {
			t.Errorf("clients began after %v, the measured part after %v; expected %v, %v", begun, measured, want, ramp)
		}
	})
}

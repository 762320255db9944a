package loadgen_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobwire/codec/gearman"
	"jobwire/loadgen"
	gearmanserver "jobwire/refserver/gearman"
)

// TestReconnect tests that clients reconnect while jobs are submitted, and that no job is lost.
func TestReconnect(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"cycle", "mixed", "chaos", "echo"} {
		t.Run(scenario, func(t *testing.T) {
			var dials atomic.Int64
			dial := serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{}))
			res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Scenario: scenario, Clients: 4, Workers: 2, Window: 8, Batch: 4, Reconnect: 200, Duration: time.Second,
				Dial: func(ctx context.Context) (net.Conn, error) { dials.Add(1); return dial(ctx) }})
			if err != nil {
				t.Fatal(err)
			}
			workers := int64(2)
			if scenario == "echo" {
				workers = 0
			}
			// The end of the run interrupts reconnections in progress. In scenario chaos, workers reconnect too.
			if got := dials.Load() - 4 - workers; res.Reconnects == 0 || got < res.Reconnects || got > res.Reconnects+4 && scenario != "chaos" {
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
	const clients, ramp = 5, 500 * time.Millisecond
	var mu sync.Mutex
	var begun []time.Time
	var measured time.Time
	dial := serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{}))
	res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Scenario: "echo", Clients: clients, Ramp: ramp, Duration: 100 * time.Millisecond,
		PhaseChange: func() {
			if measured.IsZero() {
				measured = time.Now()
			}
		},
		Dial: func(ctx context.Context) (net.Conn, error) {
			c, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return &firstWrite{Conn: c, wrote: func() {
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, time.Now())
			}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if len(begun) != clients || !res.Account.NoFaults() {
		t.Fatalf("%d clients have submitted, %+v", len(begun), res.Account)
	}
	if first, last := begun[0], begun[clients-1]; last.Sub(first) < ramp/2 {
		t.Errorf("the last client began %v after the first, want %v", last.Sub(first), ramp*(clients-1)/clients)
	}
	if at := measured.Sub(begun[0]); at < ramp/2 {
		t.Errorf("the measurement began %v after the first client", at)
	}
}

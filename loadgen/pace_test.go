package loadgen_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/loadgen"
)

// openLoop performs a run in which one write has several jobs. It tests that each job is submitted and its submission
// delay measured.
func openLoop(t *testing.T, dial func(context.Context) (net.Conn, error)) *loadgen.Result {
	const jobs = 2000
	res := load(t, loadgen.Config{Protocol: gearman.Protocol, Dial: dial, Rate: rate(t, "100k"), Count: jobs,
		MaxFlight: jobs})
	if res.Account.Submitted != jobs || !res.Account.NoFaults() || res.Late.Count != jobs {
		t.Errorf("%+v, lateness of %d jobs", res.Account, res.Late.Count)
	}
	return res
}

// TestOpenLoop tests when jobs are submitted: in virtual time, the submission is as late as the jobs of a batch wait.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if res := openLoop(t, nil); res.Took.Round(time.Millisecond) != 20*time.Millisecond || res.Late.Max > 250 {
			t.Errorf("took %v, jobs were up to %v late", res.Took, res.Late.Max)
		}
	})
}

// TestOpenLoopOverTCP tests an open loop over sockets and with the timer for them.
func TestOpenLoopOverTCP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go newServer(t, gearman.Protocol).Serve(context.Background(), ln)
	res := openLoop(t, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	})
	if res.Took < 19*time.Millisecond {
		t.Errorf("took %v, expected 20ms", res.Took)
	}
}

// TestMaxInFlight tests that an open-loop run never has more jobs in flight than the limit per client, and counts the
// jobs that it skips.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := int64(0)
		res := load(t, loadgen.Config{Protocol: gearman.Protocol, Rate: rate(t, "2k"),
			Duration: 300 * time.Millisecond, Interval: 20 * time.Millisecond,
			Clients: 2, Workers: 1, Grabs: 1, Work: 20 * time.Millisecond, MaxFlight: 5,
			OnInterval: func(iv *loadgen.Interval) { most = max(most, iv.Depth) }})
		if most != 10 || res.Account.Skipped == 0 || !res.Account.NoFaults() {
			t.Errorf("%d jobs in flight, %d skipped; %+v", most, res.Account.Skipped, res.Account)
		}
	})
}

package loadgen_test

import (
	"bytes"
	"context"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/loadgen"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	dangaserver "jobwire/refserver/danga"
	gearmanserver "jobwire/refserver/gearman"
	gearmonkeyserver "jobwire/refserver/gearmonkey"
	"jobwire/refserver/inject"
)

// protocols are the protocols with a load, with their reference servers.
var protocols = []struct {
	protocol *codec.Protocol
	machine  func() refserver.Machine
	jobs     int64 // number of jobs for a short run
}{
	{gearman.Protocol, func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }, 5000},
	{beanstalk.Protocol, func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) }, 5000},
	{gearmonkey.Protocol, func() refserver.Machine { return gearmonkeyserver.New(gearmonkeyserver.Options{}) }, 500},
	{danga.Protocol, func() refserver.Machine { return dangaserver.New(dangaserver.Options{}) }, 3000},
}

// serving starts a reference server, with injected faults if there are any, and returns a function that connects to
// it.
func serving(t *testing.T, p *codec.Protocol, m refserver.Machine, faults ...string) func(context.Context) (net.Conn, error) {
	t.Helper()
	o := refserver.Options{Protocol: p}
	if len(faults) > 0 {
		faulty, err := (&inject.Protocol{Protocol: p}).Wrap(m, &o, strings.Join(faults, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		m = faulty
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := refserver.New(m, o)
	go srv.Serve(context.Background(), ln)
	t.Cleanup(srv.Close)
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", ln.Addr().String())
	}
}

func TestScenariosLoseNothing(t *testing.T) {
	for _, p := range protocols {
		for _, sc := range loadgen.Scenarios(p.protocol) {
			for _, window := range []int{1, 64} {
				if sc.MaxWindow > 0 && window > sc.MaxWindow {
					continue
				}
				t.Run(p.protocol.Name+"/"+sc.Name, func(t *testing.T) {
					cfg := loadgen.Config{Protocol: p.protocol, Scenario: sc.Name, Dial: serving(t, p.protocol, p.machine()), Count: p.jobs, Window: window,
						DrainTimeout: 5 * time.Second, Functions: 3, Size: loadgen.Sizes{Lo: 16, Hi: 300}}
					if sc.Kills {
						cfg.Kill, cfg.Count, cfg.DrainTimeout = 50, p.jobs/3, time.Second
					}
					res, err := loadgen.Run(t.Context(), cfg)
					if err != nil {
						t.Fatal(err)
					}
					if sc.Kills && p.protocol == gearmonkey.Protocol {
						res.Account.Lost = 0 // GearMonkey loses the jobs of killed workers
						res.Jobs = cfg.Count
					}
					if !res.Account.NoFaults() || res.Jobs != cfg.Count || res.Account.OutOfOrder > 0 && !sc.Kills {
						t.Errorf("%d jobs of %d; %+v", res.Jobs, cfg.Count, res.Account)
					}
					t.Logf("%.0f/s %+v", res.Rate(), res.Account)
				})
			}
		}
	}
}

// countingConn is a connection that counts how often each name is written.
type countingConn struct {
	net.Conn
	names  []string
	counts []atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	for i, name := range c.names {
		c.counts[i].Add(int64(bytes.Count(b, []byte(name))))
	}
	return c.Conn.Write(b)
}

func TestZipf(t *testing.T) {
	const jobs = 2000
	dial, names, counts := serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{})), []string{"jobwire-1\x00", "jobwire-2\x00", "jobwire-3\x00"}, make([]atomic.Int64, 3)
	res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Count: jobs, Functions: 3, Zipf: 2, Dial: func(ctx context.Context) (net.Conn, error) {
		c, err := dial(ctx)
		return countingConn{c, names, counts}, err
	}})
	if err != nil || !res.Account.NoFaults() {
		t.Fatal(err, res.Account)
	}
	// The weights of the functions are 1, 1/4 and 1/9, so they get 73, 18 and 8 % of the jobs.
	for i, want := range []int64{1469, 367, 163} {
		if n := counts[i].Load(); n < want*8/10 || n > want*12/10 {
			t.Errorf("%d of %d jobs have function %d, expected about %d", n, jobs, i, want)
		}
	}
	for _, cfg := range []loadgen.Config{{Zipf: 1, Functions: 3}, {Zipf: 2}, {Zipf: math.Inf(1), Functions: 3}} {
		cfg.Protocol = gearman.Protocol
		if _, err := cfg.Complete(); err == nil {
			t.Errorf("exponent %v with %d functions is accepted", cfg.Zipf, cfg.Functions)
		}
	}
}

func TestHistoriesOfReferenceServersAreLinearizable(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.protocol.Name, func(t *testing.T) {
			res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: p.protocol, Dial: serving(t, p.protocol, p.machine()), Count: p.jobs, Check: true})
			if err != nil {
				t.Fatal(err)
			}
			if !res.Linear.Holds {
				t.Error(res.Linear.Why)
			}
		})
	}
}

// TestDrainingIntervals tests that jobs queued in the measured part are processed after it, and that the intervals
// report how many are left.
func TestDrainingIntervals(t *testing.T) {
	const count = 40
	done, left := int64(0), int64(count)
	res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Scenario: "background", Dial: serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{})),
		Count: count, Clients: 2, Workers: 2, Grabs: 1, Work: 20 * time.Millisecond, Interval: 50 * time.Millisecond,
		OnInterval: func(iv *loadgen.Interval) {
			if iv.Draining {
				if done += iv.Done; iv.Depth > left {
					t.Errorf("%d are left, %d before", iv.Depth, left)
				}
				left = iv.Depth
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if done == 0 || done+left < count/2 || res.Jobs != count {
		t.Errorf("%d done and %d left after the measured part, of %d jobs", done, left, res.Jobs)
	}
}

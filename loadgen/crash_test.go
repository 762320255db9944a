package loadgen_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/loadgen"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	gearmanserver "jobwire/refserver/gearman"
)

// restartableServer forwards connections to a server. Kill closes all connections, as the end of a process does, but
// the server keeps its jobs.
type restartableServer struct {
	ln   net.Listener
	dial func(context.Context) (net.Conn, error)

	mu     sync.Mutex
	conns  []net.Conn
	killed bool
}

func newFront(t *testing.T, dial func(context.Context) (net.Conn, error)) *restartableServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &restartableServer{ln: ln, dial: dial}
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := dial(context.Background())
			if err != nil {
				near.Close()
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, near, far)
			killed := f.killed
			f.mu.Unlock()
			if killed { // while this connection was opened
				f.Kill()
				return
			}
			go io.Copy(far, near)
			go io.Copy(near, far)
		}
	}()
	return f
}

func (f *restartableServer) Dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", f.ln.Addr().String())
}

func (f *restartableServer) Kill() {
	f.ln.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killed = true
	for _, c := range f.conns {
		c.Close()
	}
}

func TestCrash(t *testing.T) {
	machines := map[*codec.Protocol]func() refserver.Machine{
		gearman.Protocol:   func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) },
		beanstalk.Protocol: func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) },
	}
	for _, tt := range []struct {
		name    string
		p       *codec.Protocol
		keeps   bool
		allow   time.Duration
		verdict loadgen.Verdict
	}{
		{"gearman keeps", gearman.Protocol, true, 0, loadgen.Passed},
		{"gearman loses", gearman.Protocol, false, 0, loadgen.Failed},
		{"gearman may lose", gearman.Protocol, false, time.Hour, loadgen.Passed},
		{"beanstalk keeps", beanstalk.Protocol, true, 0, loadgen.Passed},
		{"beanstalk loses", beanstalk.Protocol, false, 0, loadgen.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dial := serving(t, tt.p, machines[tt.p]())
			k := &loadgen.Crash{Kills: 2, After: 50 * time.Millisecond, AllowLoss: tt.allow,
				Config: loadgen.Config{Protocol: tt.p, Scenario: "crash", Clients: 4, Workers: 1, Window: 4, DrainTimeout: 300 * time.Millisecond},
				Start: func(context.Context) (loadgen.Server, error) {
					if !tt.keeps {
						dial = serving(t, tt.p, machines[tt.p]())
					}
					return newFront(t, dial), nil
				}}
			r, err := k.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := r.Total
			if r.Verdict != tt.verdict || len(r.Rounds) != 2 || c.Repeated+c.OutOfOrder+c.Corrupted+c.Refused > 0 {
				t.Errorf("%s %v: %+v", r.Verdict, r.Reasons, c)
			}
			left := c.Acknowledged - c.Completed - c.InProgress
			switch {
			case left == 0:
				t.Errorf("nothing was queued: %+v", c)
			case tt.keeps && (c.Lost > 0 || c.Kept != left || c.Window > 0):
				t.Errorf("expected that all jobs are kept: %+v", c)
			case !tt.keeps && (c.Lost != left || c.Kept != 0 || c.Window <= 0):
				t.Errorf("expected that all jobs are lost: %+v", c)
			}
		})
	}
}

func TestCrashOfServerThatDoesNotStartAgain(t *testing.T) {
	starts := 0
	dial := serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{}))
	gone := errors.New("the file is broken")
	k := &loadgen.Crash{Kills: 3, After: 20 * time.Millisecond, Config: loadgen.Config{Protocol: gearman.Protocol, Scenario: "crash", Clients: 1, Workers: 1},
		Start: func(context.Context) (loadgen.Server, error) {
			if starts++; starts > 1 {
				return nil, gone
			}
			return newFront(t, dial), nil
		}}
	r, err := k.Run(t.Context())
	if !errors.Is(err, gone) || r == nil || r.Verdict != loadgen.Failed || len(r.Rounds) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestOpenLoop tests that each job is submitted and its submission delay measured at a rate at which one write has
// several jobs.
func TestOpenLoop(t *testing.T) {
	const rate, jobs = 100_000, 20_000
	schedule, err := loadgen.ParseSchedule("100k")
	if err != nil {
		t.Fatal(err)
	}
	res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Dial: serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{})), Rate: schedule, Count: jobs})
	if err != nil {
		t.Fatal(err)
	}
	if res.Account.Submitted != jobs || !res.Account.NoFaults() || res.Late.Count != jobs {
		t.Errorf("%+v, lateness of %d jobs", res.Account, res.Late.Count)
	}
	if least := jobs * time.Second / rate; res.Took < least*9/10 {
		t.Errorf("took %v, expected at least %v", res.Took, least)
	}
}

func TestMaxInFlight(t *testing.T) {
	schedule, err := loadgen.ParseSchedule("2k")
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Dial: serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{})),
		Rate: schedule, Duration: 300 * time.Millisecond, Interval: 20 * time.Millisecond, Clients: 2, Workers: 1, Grabs: 1, Work: 20 * time.Millisecond, MaxFlight: 5,
		OnInterval: func(iv *loadgen.Interval) { most = max(most, iv.Depth) }})
	if err != nil {
		t.Fatal(err)
	}
	if most > 10 || res.Account.Skipped == 0 || !res.Account.NoFaults() {
		t.Errorf("%d jobs in flight, %d skipped; %+v", most, res.Account.Skipped, res.Account)
	}
}

package loadgen_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/internal/memnet"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/report"
	"jobwire/refserver"
)

// instance is a process of a server in memory. Kill closes its connections, as the end of a process does, but srv keeps
// its jobs.
type instance struct {
	srv    *refserver.Server
	mu     sync.Mutex
	conns  []net.Conn // the ends of the server
	killed bool
}

func (i *instance) Dial(context.Context) (net.Conn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.killed {
		return nil, syscall.ECONNREFUSED
	}
	near, far := memnet.Pipe()
	i.conns = append(i.conns, far)
	go i.srv.ServeConn(context.Background(), far)
	return near, nil
}

func (i *instance) Kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.killed = true
	for _, c := range i.conns {
		c.Close()
	}
}

// TestCrash tests that the crash test passes if the killed server keeps all jobs or may lose them, and fails if it
// loses them, and that it counts lost and kept jobs correctly.
func TestCrash(t *testing.T) {
	created := map[*codec.Protocol]string{gearman.Protocol: "JOB_CREATED", beanstalk.Protocol: "INSERTED"}
	for _, tt := range []struct {
		name    string
		p       *codec.Protocol
		keeps   bool
		allow   time.Duration
		verdict report.Verdict
	}{
		{"gearman keeps", gearman.Protocol, true, 0, report.Passed},
		{"gearman loses", gearman.Protocol, false, 0, report.Failed},
		{"gearman may lose", gearman.Protocol, false, time.Hour, report.Passed},
		{"beanstalk keeps", beanstalk.Protocol, true, 0, report.Passed},
		{"beanstalk loses", beanstalk.Protocol, false, 0, report.Failed},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			late := "delay " + created[tt.p] + " 1ms" // so that time passes
			srv := newServer(t, tt.p, late)
			waits := 0
			k := &experiment.CrashTest{Kills: 2, After: 50 * time.Millisecond, Crash: loadgen.Crash{AllowLoss: tt.allow,
				Waiting: func(int64, time.Duration) { waits++ },
				Config:  loadgen.Config{Protocol: tt.p, Scenario: "crash", Clients: 4, Workers: 1, Window: 4, Count: 10_000},
				Start: func(context.Context) (loadgen.Server, error) {
					if !tt.keeps {
						srv = newServer(t, tt.p, late)
					}
					return &instance{srv: srv}, nil
				}}}
			begin := time.Now()
			r, err := k.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The second kill that loses jobs does not wait for as long as the first, unless jobs may be lost.
			if took := time.Since(begin); waits > 0 == tt.keeps || tt.verdict == report.Failed && took > 13*time.Second {
				t.Errorf("%d waits, %v", waits, took)
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

// TestKillAfterFirstJob tests that a server that takes longer than the time to the kill for its first job is not killed
// before it has acknowledged the job, so that the kill shows what it keeps.
func TestKillAfterFirstJob(t *testing.T) {
	bubble(t, "slow", func(t *testing.T) {
		srv := newServer(t, gearman.Protocol, "delay JOB_CREATED 3s")
		k := &experiment.CrashTest{Kills: 1, After: 50 * time.Millisecond, Crash: loadgen.Crash{
			Start:  func(context.Context) (loadgen.Server, error) { return &instance{srv: srv}, nil },
			Config: loadgen.Config{Protocol: gearman.Protocol, Scenario: "crash", Clients: 2, Workers: 1, Window: 4, Count: 10_000}}}
		r, err := k.Run(t.Context())
		if err != nil || r.Total.Acknowledged == 0 || r.Verdict != report.Passed {
			t.Errorf("verdict %s %q, %d jobs acknowledged, %v", r.Verdict, r.Reasons, r.Total.Acknowledged, err)
		}
	})
}

// TestInterruptedCrash interrupts a test before a kill, and while it waits for missing jobs: it has failed because of
// that alone.
func TestInterruptedCrash(t *testing.T) {
	for _, after := range []time.Duration{time.Hour, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, stop)
			k := &experiment.CrashTest{Kills: 3, After: after, Crash: loadgen.Crash{
				Config: loadgen.Config{Protocol: gearman.Protocol, Scenario: "crash", Clients: 1, Workers: 1, Count: 10_000},
				Start: func(context.Context) (loadgen.Server, error) {
					return &instance{srv: newServer(t, gearman.Protocol, "delay JOB_CREATED 1ms")}, nil
				}}}
			r, err := k.Run(ctx)
			if !errors.Is(err, context.Canceled) || r.Verdict != report.Failed || len(r.Reasons) != 1 ||
				r.Reasons[0] != "interrupted after 0 of 3 kills" {
				t.Errorf("%v: %+v", err, r)
			}
		})
	}
}

// TestCrashOfServerThatDoesNotStartAgain tests that the crash test fails, with the results so far, if the server does
// not start again after it was killed.
func TestCrashOfServerThatDoesNotStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts, srv := 0, newServer(t, gearman.Protocol, "delay JOB_CREATED 1ms")
		gone := errors.New("the file is broken")
		k := &experiment.CrashTest{Kills: 3, After: 20 * time.Millisecond, Crash: loadgen.Crash{
			Config: loadgen.Config{Protocol: gearman.Protocol, Scenario: "crash", Clients: 1, Workers: 1, Count: 10_000},
			Start: func(context.Context) (loadgen.Server, error) {
				if starts++; starts > 1 {
					return nil, gone
				}
				return &instance{srv: srv}, nil
			}}}
		r, err := k.Run(t.Context())
		if !errors.Is(err, gone) || r == nil || r.Verdict != report.Failed || len(r.Rounds) != 1 {
			t.Errorf("%v: %+v", err, r)
		}
	})
}

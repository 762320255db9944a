package fuzz

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// TestFixedAddress tests that a run at a fixed address, where the server is never restarted, executes all its inputs.
func TestFixedAddress(t *testing.T) {
	t.Parallel()
	for _, p := range []*codec.Protocol{danga.Protocol, gearmonkey.Protocol} {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, err := fuzztest.Serve(faults.Faultless(p.Name))(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Stop()
				const count = 2000
				stats, err := Run(t.Context(), Config{Protocol: p, Seed: 1, Count: count, Server: triage.Server{Fixed: true, Start: func(context.Context) (target.Target, error) { return target.Address(srv.Addr()) }}, Reports: triage.Reports{Found: func(fd *triage.Finding) { t.Logf("found: %v", fd.Fault) }}})
				if err != nil || stats.Executions < count || stats.Findings > 0 {
					t.Errorf("expected %d executions without a finding, got %d and %d findings in %v, %v", count, stats.Executions, stats.Findings, stats.Elapsed, err)
				}
			})
		})
	}
}

// TestRunEndsInTime tests that a run ends in time although examining its candidates takes long, because every server
// after the first never replies. The candidates that were not examined are counted, and one of each class is passed on.
func TestRunEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		silent := func(ctx context.Context) (target.Target, error) {
			if first {
				first = false
				return fuzztest.Serve(faults.Faultless("gearman"))(ctx)
			}
			return target.InMemory(ctx, "mute", func(ctx context.Context, ln net.Listener) error { // accepts no connection
				<-ctx.Done()
				return nil
			})
		}
		const duration = 5 * time.Second
		candidates := 0
		start := time.Now()
		stats, err := Run(t.Context(), Config{Protocol: gearman.Protocol, Seed: 1, Duration: duration, Timeout: 5 * time.Second, Server: triage.Server{Start: silent, Reference: fuzztest.Serve(faults.Faultless("gearman"))}, Reports: triage.Reports{Candidate: func(fd *triage.Finding) {
			candidates++
			if len(fd.Text) == 0 || fd.Reproduced {
				t.Errorf("candidate %+v", fd)
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > duration+duration/10 {
			t.Errorf("expected a run of %v, got %v", duration, took)
		}
		if stats.Unexamined == 0 || candidates == 0 || candidates > stats.Unexamined+stats.NotReproduced || stats.Findings > 0 {
			t.Errorf("%d candidates were not examined, and %d were handed on; %d findings", stats.Unexamined, candidates, stats.Findings)
		}
	})
}

// TestCrashThatIsNotReproduced tests that a crash which happens only once is a finding, with its log.
func TestCrashThatIsNotReproduced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := errors.New("out of luck")
		var accepted atomic.Int64 // number of connections accepted by all servers; the server that accepts connection number last ends
		const last = 400
		start := func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "unlucky", func(ctx context.Context, ln net.Listener) error {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				faults.Faultless("gearman").Serve(ctx, &counting{Listener: ln, accepted: func() {
					if accepted.Add(1) == last {
						cancel(ended)
					}
				}})
				return context.Cause(ctx)
			})
		}
		var found []*triage.Finding
		stats, err := Run(t.Context(), Config{Protocol: gearman.Protocol, Seed: 1, Sequential: true, Count: 1500, Seeds: []*input.Input{fuzztest.Input(t, gearman.Protocol, fuzztest.Work)}, Server: triage.Server{Start: start}, Reports: triage.Reports{Found: func(fd *triage.Finding) { found = append(found, fd) }}})
		if err != nil {
			t.Fatal(err)
		}
		if stats.Findings != 1 || len(found) != 1 {
			for _, fd := range found {
				t.Errorf("%v\n%s", fd.Fault, fd.Text)
			}
			t.Fatalf("expected 1 finding, got %d", stats.Findings)
		}
		if fd := found[0]; fd.Reproduced || fd.Fault.Oracle != exec.Exit || fd.Inputs == 0 || len(fd.Log.Entries) == 0 || len(fd.Text) == 0 || triage.FaultSeverity(fd.Fault) != triage.RemoteCrash {
			t.Errorf("got %+v of %v", fd, fd.Fault)
		}
	})
}

// counting is a listener that reports each connection.
type counting struct {
	net.Listener
	accepted func()
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted()
	}
	return c, err
}

// TestLongLists tests that lists of objects that earlier inputs have left are requested less often the longer they are, but
// only at a fixed address.
func TestLongLists(t *testing.T) {
	list := fuzztest.Input(t, gearman.Protocol, "Admin -> Job Server: status\n")
	for _, tt := range []struct {
		fixed bool
		names uint64
		rare  bool
	}{{true, maxInputsPerServer, false}, {true, 1000 * maxInputsPerServer, true}, {false, 1000 * maxInputsPerServer, false}} {
		w := &worker{f: &Fuzzer{cfg: Config{Protocol: gearman.Protocol, Server: triage.Server{Fixed: tt.fixed}}}, used: tt.names, r: input.NewRand(1)}
		skipped := 0
		for range 100 {
			if w.listTooLong(list) {
				skipped++
			}
		}
		if tt.rare && skipped < 90 || !tt.rare && skipped > 0 {
			t.Errorf("%+v: %d of 100 skipped", tt, skipped)
		}
	}
}

// TestProtocolWithoutModel tests that a protocol can be fuzzed without a model, but not without a barrier.
func TestProtocolWithoutModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := *beanstalk.Protocol
		p.Name = "unmodeled"
		cfg := Config{Protocol: &p, Seed: 1, Sequential: true, Count: 300, Server: triage.Server{Start: fuzztest.Serve(faults.Faultless("beanstalk"))}}
		stats, err := Run(t.Context(), cfg)
		if err != nil || stats.Executions < cfg.Count || stats.Findings > 0 {
			t.Errorf("expected %d executions and no finding, got %d and %d, %v", cfg.Count, stats.Executions, stats.Findings, err)
		}
		p.Barriers = nil
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "no barrier") {
			t.Errorf("expected an error about the barrier, got %v", err)
		}
	})
}

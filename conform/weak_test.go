package conform

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
)

// TestWeakServers tests that failing cases do not wait: on a server that answers everything, but breaks an important
// message, a run waits at most twice as long as on a correct server, and the time to identify the protocol if the server
// does not answer the preferred barrier request.
func TestWeakServers(t *testing.T) {
	all, err := Load(gearman.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.First().Select([]string{"gearman.submit.*", "gearman.echo.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	runner := Runner{Parallel: 2}
	run := func(t *testing.T, script string) (waited time.Duration, failed int) {
		synctest.Test(t, func(t *testing.T) {
			begun, r := time.Now(), runner
			r.Start = faulty(edit(script))
			for _, res := range r.Run(t.Context(), s, nil) {
				if res.Verdict != verdict.Passed {
					failed++
				}
			}
			waited = time.Since(begun)
		})
		return waited, failed
	}
	correct, failed := run(t, "")
	if failed > 0 {
		t.Fatalf("%d of %d cases failed on a correct server", failed, len(s.Cases))
	}
	for _, script := range []string{
		"answer GRAB_JOB* NO_JOB", "alter JOB_ASSIGN* workload=x", "alter JOB_CREATED job-handle=x", "alter ECHO_RES data=x",
	} {
		weak, failed := run(t, script)
		if failed == 0 || weak > 2*correct+identifyTimeout {
			t.Errorf("%s: %d of %d cases failed and the run waited %v, on a correct server %v", script, failed, len(s.Cases), weak, correct)
		}
	}
	// On a server that never sends a reply, or closes connections, the cases that show this wait, but not all the others.
	s, err = all.Select([]string{"gearman.submit.*", "gearman.echo.*", "gearman.work.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	runner = Runner{Parallel: 8, Timeout: 2 * time.Second, InferAfter: 3}
	for _, script := range []string{"drop JOB_CREATED", "drop JOB_ASSIGN*", "drop ECHO_RES", "close SUBMIT_JOB", "drop WORK_COMPLETE"} {
		if waited, failed := run(t, script); failed == 0 || waited > 30*time.Second {
			t.Errorf("%s: %d of %d cases failed and the run waited %v", script, failed, len(s.Cases), waited)
		} else {
			t.Logf("%s: %d of %d cases failed and the run waited %v", script, failed, len(s.Cases), waited)
		}
	}
}

// TestSilentTarget tests that a run ends after maxIgnored cases if the target accepts connections and sends nothing, and
// that the report has no causes.
func TestSilentTarget(t *testing.T) {
	s, err := Load(gearman.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "silent", func(ctx context.Context, ln net.Listener) error {
				var open []net.Conn
				defer func() {
					for _, c := range open {
						c.Close()
					}
				}()
				context.AfterFunc(ctx, func() { ln.Close() })
				for {
					c, err := ln.Accept()
					if err != nil {
						return nil
					}
					open = append(open, c)
				}
			})
		}
		begun := time.Now()
		report := &Report{Protocol: s.Protocol, Results: (&Runner{Start: start, Parallel: 2, Timeout: time.Second}).Run(t.Context(), s, nil)}
		const want = "cannot test silent: it accepts connections, but 8 cases received nothing from it"
		ran := len(report.Results) - report.Count(verdict.NotRun) - report.Count(verdict.Skipped)
		if why := report.Unreachable(); why != want || ran > 2*maxIgnored || len(report.Causes()) > 0 {
			t.Errorf("%d cases ran in %v: %s, causes %v", ran, time.Since(begun), why, report.Causes())
		}
	})
}

// TestLateAnswer tests that results are kept if a target that seemed to send nothing has answered a case that was
// running when the run ended, and that skipped cases stay skipped.
func TestLateAnswer(t *testing.T) {
	for _, answered := range []bool{true, false} {
		x := &run{order: resultOrder{results: make([]Result, 3), ended: make([]bool, 3)}}
		for i, v := range []verdict.Verdict{verdict.Failed, verdict.Skipped, verdict.NotRun} {
			x.order.results[i].Verdict = v
		}
		note := "silent"
		x.noReply.Store(&note)
		x.answered.Store(answered)
		x.endSilent()
		want := []verdict.Verdict{verdict.Unreachable, verdict.Skipped, verdict.NotRun}
		if answered {
			want[0] = verdict.Failed
		}
		for i, v := range want {
			if got := x.order.results[i].Verdict; got != v {
				t.Errorf("answered %v, case %d: %s, expected %s", answered, i, got, v)
			}
		}
	}
}

package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver/inject"
)

// echoCases loads n cases with an echo, in which other is a line with another accepted reply, or "".
func echoCases(t *testing.T, n int, other string) *Suite {
	t.Helper()
	src := "@section s\n@rules gearman.echo.same-data\n"
	for i := range n {
		src += fmt.Sprintf("@case echo-%d\n@about An echo.\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n%s", i, other)
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ignoring returns a function that starts a server that does not reply to the first n requests of cases, and adds the
// number of requests to requests.
func ignoring(n int32, requests *atomic.Int32) func(context.Context) (target.Target, error) {
	return faulty(inject.On("ECHO_REQ", func(m *inject.Message) bool { // other requests identify the protocol
		return m.Arg(0) == "x" && requests.Add(1) <= n
	}, (*inject.Message).Drop))
}

// TestSlowMachine tests a server that never replies, on a machine that delays jobwire by up to a duration. A missing
// reply, or a silence that the case accepts as non-strict, then proves nothing.
func TestSlowMachine(t *testing.T) {
	t.Parallel()
	silence := echoCases(t, 1, "  or non-strict nothing for 100ms\n")
	for _, tt := range []struct {
		name     string
		suite    *Suite
		by       time.Duration
		want     verdict.Verdict
		note     string
		requests int32
	}{
		{"no delay", echoCases(t, 1, ""), 0, verdict.Failed, "", 1},
		{"short delay", echoCases(t, 1, ""), 15 * time.Millisecond, verdict.Failed, "", 1},
		{"long delay", echoCases(t, 1, ""), 300 * time.Millisecond, verdict.Inconclusive, "by up to 300ms", 1 + retries},
		{"silence", silence, 0, verdict.NonStrict, "", 2},
		{"silence, short delay", silence, 24 * time.Millisecond, verdict.NonStrict, "", 2},
		{"silence, long delay", silence, 30 * time.Millisecond, verdict.Inconclusive, "by up to 30ms", 1 + retries},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var requests atomic.Int32
			start := ignoring(1000, &requests)
			delay := new(lateness.Meter)
			delay.Note(time.Now().Add(time.Hour), tt.by)
			r := &Runner{Start: start, Timeout: 500 * time.Millisecond, Segments: []play.Segmentation{play.Plain},
				ways: newSetupWays(nil)}
			w := &worker{session: &session{Runner: *r, delay: delay, kept: new(atomic.Int64)}, ctx: ctx}
			defer w.stop()
			a := w.runCase(tt.suite.Cases[0])
			wrong := a.Verdict != tt.want || !strings.Contains(a.Note, tt.note) || a.late != (tt.want != verdict.NonStrict)
			if wrong || requests.Load() != tt.requests {
				t.Errorf("%s: %s, %s, must run again: %v, %d requests", tt.name, a.Verdict, a.Note, a.late, requests.Load())
			}
		})
	}
	if verdict.Inconclusive.FailsRun() {
		t.Error("an inconclusive case makes the run fail")
	}
}

// TestTimedFailures checks which failures depend on time.
func TestTimedFailures(t *testing.T) {
	const head = "@section s\n@case c\n@about A.\n@rules gearman.echo.same-data\n"
	const echo = "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES y"
	for src, want := range map[string]time.Duration{
		echo:                0,
		echo + " within 1s": 0,
		"Worker -> Job Server: PRE_SLEEP\nJob Server -> Worker: nothing for 40ms\n" + echo:                                                        40 * time.Millisecond,
		"Worker -> Job Server: PRE_SLEEP\nJob Server -> Worker: NOOP\n  or nothing for 50ms\nWorker -> Job Server: PRE_SLEEP after 30ms\n" + echo: 30 * time.Millisecond,
		echo + "\nWorker -> Job Server: PRE_SLEEP after 30ms\n":                                                                                   0,
	} {
		s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(head + src + "\n")}})
		if err != nil {
			t.Fatal(err)
		}
		script := s.Cases[0].Script
		failed := slices.IndexFunc(script.Steps, func(st transcript.Step) bool { return strings.Contains(st.Source, "ECHO_RES") })
		if got := timed(script, &play.Failure{Index: failed}); got != want {
			t.Errorf("%s\ndepends on %v, expected %v", src, got, want)
		}
		if got := timed(script, &play.Failure{Index: failed, Waited: time.Second}); got != time.Second {
			t.Errorf("%s\ndepends on %v after a limit of 1s was exceeded", src, got)
		}
		invalid := &play.Event{Err: &codec.Error{Rule: "gearman.handle.not-empty"}}
		if got := timed(script, &play.Failure{Index: failed, Event: invalid}); got != 0 {
			t.Errorf("step %d, an invalid message: %v, want 0", failed, got)
		}
	}
}

// TestMissedTimeLimitsAreCheckedAgain runs eight cases, four at a time, against a server that does not reply until all
// of them have failed, and against a server that never replies. Then it runs a case that accepts a silence against a
// server that does not reply to the first request.
func TestMissedTimeLimitsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	const n, parallel = 8, 4
	for _, tt := range []struct {
		name     string
		suite    *Suite
		parallel int
		ignored  int32
		verdict  verdict.Verdict
		requests int32
	}{
		{"no reply at first", echoCases(t, n, ""), parallel, n, verdict.Passed, n + n},
		{"never a reply", echoCases(t, n, ""), parallel, 1000, verdict.Failed, n + parallel},
		{"a silence at first", echoCases(t, 1, "  or non-strict nothing for 1s\n"), 1, 1, verdict.Passed, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int32
			r := &Runner{Start: ignoring(tt.ignored, &requests), Timeout: time.Second, Parallel: tt.parallel}
			for _, res := range r.Run(t.Context(), tt.suite, nil) {
				if res.Verdict != tt.verdict {
					t.Errorf("%s: %s: %s (%s), want %s", tt.name, res.Case.ID, res.Verdict, res.Note, tt.verdict)
				}
			}
			if got := requests.Load(); got != tt.requests {
				t.Errorf("%s: %d requests, want %d", tt.name, got, tt.requests)
			}
		})
	}
}

package conform

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/play"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// TestSlowMachineMakesMissingReplyInconclusive tests a server that never replies, first on a machine without scheduling delays and
// then on a machine with delays.
func TestSlowMachineMakesMissingReplyInconclusive(t *testing.T) {
	t.Parallel()
	const src = "@section s\n@case mute\n@about An echo.\n@rules gearman.echo.same-data\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	connections := 0
	silent, err := target.Func(t.Context(), "mute", func(ctx context.Context, ln net.Listener) error {
		defer context.AfterFunc(ctx, func() { ln.Close() })()
		for {
			c, err := ln.Accept()
			if err != nil {
				return nil
			}
			if n, _ := io.Copy(io.Discard, c); n > 0 {
				connections++
			}
			c.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	start := func(context.Context) (target.Target, error) { return silent, nil }
	r := &Runner{Start: start, Timeout: 500 * time.Millisecond, Segments: []play.Segmentation{play.Plain}}

	onTime := &schedulingDelay{}
	if a := r.runCase(t.Context(), s.Cases[0], &sharedTarget{start: start, ctx: t.Context()}, onTime); a.Verdict != Failed {
		t.Errorf("on a machine that keeps time: %s, want failed", a.Verdict)
	}
	barely := &schedulingDelay{seen: []lateness{{time.Now().Add(time.Hour), 15 * time.Millisecond}}}
	if a := r.runCase(t.Context(), s.Cases[0], &sharedTarget{start: start, ctx: t.Context()}, barely); a.Verdict != Failed {
		t.Errorf("on one that was a little late: %s, want failed", a.Verdict)
	}
	late := &schedulingDelay{seen: []lateness{{time.Now().Add(time.Hour), 300 * time.Millisecond}}}
	a := r.runCase(t.Context(), s.Cases[0], &sharedTarget{start: start, ctx: t.Context()}, late)
	if a.Verdict != Inconclusive || !strings.Contains(a.Note, "by up to 300ms") {
		t.Errorf("on a late one: %s, %s; want inconclusive", a.Verdict, a.Note)
	}
	if Inconclusive.FailsRun() {
		t.Error("what is inconclusive falls short")
	}
	silent.Stop()
	if want := 2 + 1 + retries; connections != want {
		t.Errorf("%d performances, want %d", connections, want)
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
	}
}

// A silence that a case accepts as non-strict proves nothing on a machine with scheduling delays.
func TestAcceptedSilenceOnASlowMachine(t *testing.T) {
	t.Parallel()
	const src = "@section s\n@case mute\n@about An echo.\n@rules gearman.echo.same-data\n" +
		"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n  or lax nothing for 100ms\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	silent, err := target.Func(t.Context(), "mute", func(ctx context.Context, ln net.Listener) error {
		defer context.AfterFunc(ctx, func() { ln.Close() })()
		for {
			c, err := ln.Accept()
			if err != nil {
				return nil
			}
			defer c.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	start := func(context.Context) (target.Target, error) { return silent, nil }
	r := &Runner{Start: start, Segments: []play.Segmentation{play.Plain}}
	for by, want := range map[time.Duration]Verdict{0: NonStrict, 24 * time.Millisecond: NonStrict, 30 * time.Millisecond: Inconclusive} {
		meter := &schedulingDelay{seen: []lateness{{time.Now().Add(time.Hour), by}}}
		if a := r.runCase(t.Context(), s.Cases[0], &sharedTarget{start: start, ctx: t.Context()}, meter); a.Verdict != want || a.late != (want == Inconclusive) {
			t.Errorf("late by %v: %s, to be checked again: %v; want %s", by, a.Verdict, a.late, want)
		}
	}
}

func TestLongestDelayIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measureSchedulingDelay()
		time.Sleep(time.Second)
		before := time.Now()
		if lag := m.since(before.Add(-time.Hour)); lag != 0 {
			t.Errorf("a machine that is never late is %v late", lag)
		}
		m.note(before.Add(time.Second), maxLag)
		m.note(before.Add(2*time.Second), maxLag+1)
		if lag := m.since(before); lag != maxLag+1 {
			t.Errorf("%v late, want %v", lag, maxLag+1)
		}
		if lag := m.since(before.Add(3 * time.Second)); lag != 0 {
			t.Errorf("%v late since then, want 0", lag)
		}
		m.stop()
	})
}

// If the machine is late for hours, schedulingDelay must use little memory and still return the longest delay since any
// time.
func TestDelayHistoryIsBounded(t *testing.T) {
	m := &schedulingDelay{}
	start := time.Now()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	for i := range 100_000 {
		m.note(at(i), maxLag+time.Duration(1+i%10)*time.Millisecond)
	}
	m.note(at(100_000), maxLag+time.Millisecond)
	if n := len(m.seen); n > 10 {
		t.Errorf("%d entries are kept, expected at most 10", n)
	}
	for from, want := range map[int]time.Duration{0: 10, 99_999: 10, 100_000: 1} {
		if lag := m.since(at(from)); lag != maxLag+want*time.Millisecond {
			t.Errorf("since %d: %v late, expected %v more than %v", from, lag, want*time.Millisecond, maxLag)
		}
	}
}

// TestMissedTimeLimitsAreCheckedAgain runs eight cases, four at a time, against a server that does not reply until all of
// them have failed, and against a server that never replies.
func TestMissedTimeLimitsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	const n, parallel = 8, 4
	files := fstest.MapFS{}
	for i := range n {
		name := fmt.Sprintf("case-%d", i)
		files[name+".wire"] = &fstest.MapFile{Data: []byte("@section s\n@case " + name + "\n@about An echo.\n@rules gearman.echo.same-data\n" +
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n")}
	}
	s, err := LoadFS(gearman.Protocol, files)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		silent   int32 // requests without a reply
		verdict  Verdict
		requests int32
	}{
		{"busy at first", n, Passed, n + n},
		{"always mute", 1000, Failed, n + parallel},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			serve := func(ctx context.Context, ln net.Listener) error {
				for {
					c, err := ln.Accept()
					if err != nil {
						return nil
					}
					go func() {
						defer c.Close()
						request := make([]byte, len("\x00REQttttllllx"))
						_, err := io.ReadFull(c, request)
						if ofCase := string(request) == "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x"; err == nil && ofCase && requests.Add(1) > test.silent {
							io.WriteString(c, "\x00RES\x00\x00\x00\x11\x00\x00\x00\x01x")
						}
						io.Copy(io.Discard, c)
					}()
				}
			}
			inMemory(t, serve, func(t *testing.T, start func(context.Context) (target.Target, error)) {
				r := &Runner{Start: start, Timeout: time.Second, Parallel: parallel,
					delay: &schedulingDelay{}} // no delays, as on an idle machine; with delays, more cases would be repeated
				for _, res := range r.Run(t.Context(), s, nil) {
					if res.Verdict != test.verdict {
						t.Errorf("%s: %s (%s), want %s", res.Case.ID, res.Verdict, res.Note, test.verdict)
					}
				}
			})
			if got := requests.Load(); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
		})
	}
}

// TestAcceptedSilenceIsCheckedAgain tests a server that misses the time limit of a silence once, as on a busy machine.
func TestAcceptedSilenceIsCheckedAgain(t *testing.T) {
	t.Parallel()
	const src = "@section s\n@case late\n@about An echo.\n@rules gearman.echo.same-data\n" +
		"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n  or lax nothing for 1s\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	faulty := inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return server.New(server.Options{}) }}
	start := func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, "late", func(ctx context.Context, ln net.Listener) error {
			ignored := false
			first := func(m *inject.Message) bool {
				if ignored || m.Arg(0) != "x" { // not the request that identifies the protocol
					return false
				}
				ignored = true
				return true
			}
			return faulty.Serve(ctx, ln, &inject.MutantSpec{Edit: inject.Ignore("ECHO_REQ", first)})
		})
	}
	r := &Runner{Start: start}
	if res := r.Run(t.Context(), s, nil)[0]; res.Verdict != Passed {
		t.Errorf("%s: %s, want passed", res.Verdict, res.Note)
	}
}

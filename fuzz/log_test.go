package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
)

// logsOf returns the logs of a run with one worker.
func logsOf(t *testing.T, cfg Config) string {
	t.Helper()
	var b bytes.Buffer
	cfg.Workers, cfg.Log = 1, func(l *input.Log) {
		if err := l.Write(&b); err != nil {
			t.Error(err)
		}
	}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSameLogs tests that two runs with the same seed, one worker and the same number of inputs write the same logs.
func TestSameLogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		suite := suiteOf(t, gearman.Protocol)
		var seeds []*input.Input
		for _, c := range suite.Cases {
			if in := input.FromScript(c.Script); in != nil && in.Waits() == 0 {
				seeds = append(seeds, in)
			}
		}
		// The time limits of jobs must not depend on how fast the machine is.
		start := func(ctx context.Context) (target.Target, error) {
			machine := server.New(server.Options{Host: "h", TimeoutUnit: time.Hour})
			return target.InMemory(ctx, "no time limits", refserver.New(machine, refserver.Options{Protocol: gearman.Protocol}).Serve)
		}
		const count = 500
		run := func() string {
			return logsOf(t, Config{Protocol: gearman.Protocol, Seeds: seeds, Seed: 7, Count: count, Timeout: time.Minute, Server: triage.Server{Start: start}})
		}
		a, b := run(), run()
		if strings.Count(a, "\n") < count {
			t.Fatalf("the logs have only %d lines", strings.Count(a, "\n"))
		}
		if a != b {
			one, two := strings.Split(a, "\n"), strings.Split(b, "\n")
			for i := range min(len(one), len(two)) {
				if one[i] != two[i] {
					at := 0 // the first byte that differs
					for at < min(len(one[i]), len(two[i])) && one[i][at] == two[i][at] {
						at++
					}
					at = max(0, at-200)
					t.Fatalf("line %d differs at byte %d:\n%.500s\n%.500s", i+1, at, one[i][min(at, len(one[i])):], two[i][min(at, len(two[i])):])
				}
			}
			t.Fatalf("%d and %d lines", len(one), len(two))
		}
	})
}

// logOf returns the log of a server that has run inputs.
func logOf(all ...*input.Input) *input.Log {
	log := &input.Log{Protocol: beanstalk.Protocol}
	for i, in := range all {
		log.Entries = append(log.Entries, input.Entry{Input: in, Prefix: input.Nth(i)})
	}
	return log
}

// TestReplay tests that a log, written and read back, repeats what happened: the fault of a server that fails at its third input.
func TestReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := func(wire string) *input.Input { return fuzztest.Input(t, beanstalk.Protocol, wire) }
		log := logOf(
			read("Client -> Server: use b\nClient -> Server: put 0 0 60 secret\n"),
			read("Client -> Server: list-tubes-watched\n"),
			read("Client -> Server: put 0 0 60 \"\"\nServer -> Client: INSERTED $id\nClient -> Server: peek $id\n"))
		var b bytes.Buffer
		if err := log.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := input.ReadLog(gearman.Protocol, bytes.NewReader(b.Bytes())); err == nil {
			t.Error("the log of another protocol is accepted")
		}
		back, err := input.ReadLog(beanstalk.Protocol, &b)
		if err != nil || len(back.Entries) != 3 || !back.Entries[2].Input.Equal(log.Entries[2].Input) {
			t.Fatalf("read %+v, %v", back, err)
		}
		for fault, want := range map[string]string{"empty-body-of-another": "3 " + exec.Law, "none": ""} {
			served := faults.Faultless("beanstalk")
			if f := faults.Named(fault); f != nil {
				served = *f
			}
			var got []string
			cfg := Config{Protocol: beanstalk.Protocol, Server: triage.Server{Start: fuzztest.Serve(served)}}
			if err := Replay(t.Context(), cfg, back, func(n int, v *exec.Fault) { got = append(got, fmt.Sprint(n, " ", v.Oracle)) }); err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: expected %q, got %q", fault, want, got)
			}
		}
	})
}

package fuzzcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/cmd/internal/connect"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
)

// TestEvidence tests that the report says which command repeats a finding and how often, and does not contradict itself.
func TestEvidence(t *testing.T) {
	sys, err := connect.EntryNamed("gearman")
	if err != nil {
		t.Fatal(err)
	}
	log := &input.Log{Protocol: sys.Protocol, Entries: make([]input.Entry, 20)}
	for i := range log.Entries {
		log.Entries[i].Input = &input.Input{}
	}
	for _, tt := range []struct {
		reproduced, plays bool
		count             int
		check             check
		want, command     string
	}{
		{true, true, 16, check{}, "Reproduced in 3 of 3 attempts, each on a newly started server.", "jobwire play"},
		{true, true, 16, check{way: playing, runs: 3, repeated: 3}, "Reproduced in 3 of 3 attempts, each on a newly started server.", "jobwire play"},
		{true, true, 16, check{way: playing, runs: 3, repeated: 2}, "The command repeated it in 2 of 3 attempts.", "jobwire play"},
		{true, false, 16, check{}, "Reproduced in 3 of 3", "jobwire fuzz replay gearman"},
		{false, false, 16, check{way: replaying, runs: 3}, "Observed 16 times in the run; new servers did not repeat it in 3 attempts.", "jobwire fuzz replay gearman"},
		{false, false, 1, check{}, "Observed once in the run; the run ended before fuzz could try to repeat it on a new server.", "jobwire fuzz replay gearman"},
		{false, false, 4, check{way: replaying, runs: 3, repeated: 3, log: log.Last(2)}, "Observed 4 times in the run; the command repeated it in 3 of 3 attempts, each on a newly started server.", "jobwire fuzz replay gearman"},
		{false, false, 4, check{way: playing, runs: 3, repeated: 1}, "the command repeated it in 1 of 3 attempts, each on", "jobwire play"},
	} {
		fd := &triage.Finding{Name: "gearman-signal-1", Fault: &exec.Fault{Oracle: exec.Signal, Signal: "segmentation fault", Conn: -1, Step: -1},
			Input: &input.Input{}, Log: log, Text: []byte("x"), Reproduced: tt.reproduced, Plays: tt.plays, Count: tt.count, Shown: 3, Tried: 3, Inputs: 8}
		out := &fuzzOutput{sys: sys, o: &fuzzOptions{findings: "findings"}}
		out.checks.results = map[*triage.Finding]check{fd: tt.check}
		f := out.describe(fd, "findings/gearman-signal-1.wire")
		if !strings.Contains(f.Evidence, tt.want) || !strings.HasPrefix(f.Command, tt.command+" ") {
			t.Errorf("%+v: got %q, %q", tt, f.Evidence, f.Command)
		}
		if repeated := tt.reproduced || tt.check.repeated > 0; f.Reproduced != repeated {
			t.Errorf("%+v: reproduced: %v", tt, f.Reproduced)
		}
		if tt.check.log != nil && f.Inputs != 2 {
			t.Errorf("%d inputs", f.Inputs)
		}
	}
}

// TestShows tests that a command counts as a repetition only if it fails in the way of the finding.
func TestShows(t *testing.T) {
	p := gearman.Protocol
	const steps = "Client -> Job Server: ECHO_REQ a\nJob Server -> Client: ECHO_RES a\nJob Server -> Client: JOB_CREATED x\n"
	file := filepath.Join(t.TempDir(), "a.wire")
	if err := os.WriteFile(file, []byte("# a comment\n\n@protocol gearman\n\n"+steps), 0o666); err != nil {
		t.Fatal(err)
	}
	const at = "jobwire: a.wire fuzz.law-1: failed at line %d, 2 messages in 1ms\n"
	law, exit := &exec.Fault{Oracle: exec.Law}, &exec.Fault{Oracle: exec.Exit}
	play, replay := []string{"jobwire", "play", file}, []string{"jobwire", "fuzz", "replay", file}
	for _, tt := range []struct {
		printed string
		fault   *exec.Fault
		failsAt int // -1: none
		words   []string
		want    bool
	}{
		{fmt.Sprintf(at, 7), law, 2, play, true}, {fmt.Sprintf(at, 6), law, 2, play, false},
		{fmt.Sprintf(at, 70), law, 2, play, false}, {fmt.Sprintf(at, 6), exit, 2, play, true},
		{"jobwire: a leak\n", law, -1, play, true},
		{triage.FaultSeverity(law).String() + ": text\n", law, 2, replay, true},
		{"remote crash: text\n", law, 2, replay, false},
	} {
		fd := &triage.Finding{Fault: tt.fault, Plays: true, FailsAt: tt.failsAt, Script: &transcript.Script{Protocol: p}}
		if got := shows([]byte(tt.printed), fd, tt.words); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestChecker tests that the commands of reproduced findings are checked first, and those of dropped findings not at all.
func TestChecker(t *testing.T) {
	var c checker
	first, dropped, reproduced := &triage.Finding{Name: "first"}, &triage.Finding{Name: "dropped"}, &triage.Finding{Name: "reproduced", Reproduced: true}
	c.add(first) // nothing is checked yet
	ready, order, done := make(chan struct{}), []string{}, make(chan struct{})
	c.try = func(_ context.Context, fd *triage.Finding) check {
		<-ready
		if order = append(order, fd.Name); len(order) == 3 {
			close(done)
		}
		return check{way: playing, runs: 3, repeated: 3}
	}
	c.start(t.Context())
	c.add(&triage.Finding{Name: "running"})
	for c.queued() > 0 { // until the checker has taken it
	}
	for _, fd := range []*triage.Finding{first, dropped, reproduced} {
		c.add(fd)
	}
	c.drop(dropped)
	close(ready)
	<-done
	c.stop()
	if got := strings.Join(order, " "); got != "running reproduced first" {
		t.Errorf("got %s", got)
	}
	if c.of(reproduced).repeated != 3 || c.of(dropped).runs != 0 {
		t.Errorf("got %+v, %+v", c.of(reproduced), c.of(dropped))
	}
}

// queued returns the number of findings that wait.
func (c *checker) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

package fuzzcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/fuzz"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// outputOf returns the output for two findings, a wrong reply and a crash, and one candidate. The name of the folder
// contains a space, which a shell would split.
func outputOf(t *testing.T, format, program string) (out *fuzzOutput, printed string) {
	t.Helper()
	var w, e bytes.Buffer
	sys, err := connect.EntryNamed("gearman")
	if err != nil {
		t.Fatal(err)
	}
	o := &fuzzOptions{format: format, findings: filepath.Join(t.TempDir(), "my findings"), seed: 42, duration: time.Second, timeout: 2 * time.Second, target: connect.TargetFlags{Exec: program}}
	out = &fuzzOutput{w: &w, e: &e, sys: sys, o: o, files: map[*triage.Finding]string{}, target: program}
	steps := []byte("@case fuzz.x\n\nClient -> Job Server: ECHO_REQ there\n")
	for _, fd := range []*triage.Finding{
		{Name: "gearman-law-1", Fault: &exec.Fault{Oracle: exec.Law, Rule: "gearman.worker.wake", Law: "missing message", Text: "wrong"}, Input: &input.Input{}, Text: steps, Shown: 3, Tried: 3, Reproduced: true, Plays: true},
		{Name: "gearman-exit-2", Fault: &exec.Fault{Oracle: exec.Signal, Signal: "segmentation fault", Text: "the server process ended", Output: "Segmentation fault\n"}, Input: &input.Input{}, Text: steps, Shown: 1, Tried: 1, Inputs: 2},
	} {
		out.found(fd)
	}
	out.candidate(&triage.Finding{Name: "gearman-hang-3", Fault: &exec.Fault{Oracle: exec.HangConn}, Input: &input.Input{}, Text: steps})
	if err := out.End(fuzz.Stats{Elapsed: o.duration, Counts: triage.Counts{Findings: 2, Unexamined: 3}}, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(e.String(), "new finding"); n != 2 {
		t.Errorf("%d findings are announced: %s", n, e.String())
	}
	return out, w.String()
}

const quotedExec = `sh -c "it's \$x" {port}`

// TestFindingsBySeverity tests that the text output of fuzz lists the most severe finding first, says how often each
// finding was reproduced, and saves candidates that were not tried again in time.
func TestFindingsBySeverity(t *testing.T) {
	out, printed := outputOf(t, "text", quotedExec)
	for _, want := range []string{
		"1. critical: remote crash: SIGSEGV, observed only during the run", "2. medium: wrong answer: missing message [gearman.worker.wake]",
		"Reproduced in 3 of 3 attempts", "3 candidates were not tried again before the time ran out; 1 saved in", "Random seed 42",
	} {
		at := strings.Index(printed, want)
		if at < 0 {
			t.Fatalf("%q is missing, or out of order:\n%s", want, printed)
		}
		printed = printed[at:]
	}
	wire, err := os.ReadFile(filepath.Join(out.candidates(), "gearman-hang-3.wire"))
	if err != nil || !strings.Contains(string(wire), "before fuzz could try to reproduce it") {
		t.Errorf("%s, %v", wire, err)
	}
}

// TestFindingsCommands checks that target.Split, which parses a line like a shell, splits the printed command into the
// intended words.
func TestFindingsCommands(t *testing.T) {
	out, printed := outputOf(t, "text", quotedExec)
	commands := regexp.MustCompile(`(?m)^ *jobwire play .*`).FindAllString(printed, -1)
	if len(commands) != 2 {
		t.Fatalf("%q in\n%s", commands, printed)
	}
	words, err := target.Split(commands[1])
	want := []string{"jobwire", "play", filepath.Join(out.o.findings, "gearman-law-1.wire"), "--timeout", "2s", "--exec", quotedExec}
	if err != nil || !slices.Equal(words, want) {
		t.Errorf("got %q, %v; expected %q", words, err, want)
	}
}

// TestFindingsAsJSON tests that fuzz --format json writes one object per finding and one for the run, each with the
// random seed and the version, and with the command of a finding.
func TestFindingsAsJSON(t *testing.T) {
	_, printed := outputOf(t, "json", quotedExec)
	var names []string
	for line := range strings.Lines(printed) {
		var v struct {
			Name, Severity, Signal, Command string
			Seed                            uint64
			Jobwire                         struct{ Version string }
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Seed != 42 || v.Jobwire.Version == "" || v.Name != "" && v.Command == "" {
			t.Errorf("%s: %+v, %v", line, v, err)
		}
		names = append(names, v.Name+v.Signal)
	}
	if want := []string{"gearman-exit-2segmentation fault", "gearman-law-1", ""}; !slices.Equal(names, want) {
		t.Errorf("got %q, expected %q", names, want)
	}
}

// TestFuzzVerdict tests the exit status of fuzz: a run that executed nothing, or that left candidates unexamined, has not
// passed.
func TestFuzzVerdict(t *testing.T) {
	unreachable := &target.Error{Target: "x", Reason: "not there"}
	for _, tt := range []struct {
		stats fuzz.Stats
		err   error
		want  int
	}{
		{fuzz.Stats{Executions: 5}, nil, cli.StatusOK},
		{fuzz.Stats{Executions: 5}, context.Canceled, cli.StatusOK},
		{fuzz.Stats{Executions: 5, Counts: triage.Counts{Unexamined: 1}}, nil, cli.StatusInvalid},
		{fuzz.Stats{Executions: 5, Counts: triage.Counts{Unexamined: 1}}, context.Canceled, cli.StatusInvalid},
		{fuzz.Stats{}, context.Canceled, cli.StatusInvalid},
		{fuzz.Stats{Executions: 5, Counts: triage.Counts{Unexamined: 1, Findings: 1}}, nil, cli.StatusFailed},
		{fuzz.Stats{Executions: 5, Counts: triage.Counts{Findings: 1}}, unreachable, cli.StatusFailed},
	} {
		got := cli.StatusOK
		if e, ok := errors.AsType[*cli.Error](fuzzVerdict(tt.stats, tt.err)); ok {
			got = e.Status
		}
		if got != tt.want {
			t.Errorf("%+v, %v: expected status %d, got %d", tt.stats, tt.err, tt.want, got)
		}
	}
	if err := fuzzVerdict(fuzz.Stats{Executions: 5}, unreachable); !errors.Is(err, target.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

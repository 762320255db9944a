package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"

	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/transport"
)

// jobwireItself returns the path of the program under test. TestMain makes it run the test binary.
func jobwireItself(t *testing.T) string {
	t.Helper()
	name, err := exec.LookPath("jobwire")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// benchResult has the fields that the tests read from the JSON of a run.
type benchResult struct {
	Jobs    int64 `json:"jobs"`
	Clients int   `json:"clients"`
	Latency map[string]struct {
		Count int64    `json:"count"`
		P50   *float64 `json:"p50"`
	} `json:"latency_us"`
	CPU map[string]*float64 `json:"cpu_us_per_job"`
}

func benchJSON(t *testing.T, args ...string) benchResult {
	t.Helper()
	var out, stderr bytes.Buffer
	args = slices.Concat([]string{"bench"}, args, []string{"--format", "json"})
	status := run(t.Context(), args, strings.NewReader(""), &out, &stderr)
	// On a busy machine the command reports that it was late, which makes the run invalid but not its counts.
	if status != cli.StatusOK && status != cli.StatusInvalid {
		t.Fatalf("%v: status %d: %s", args, status, stderr.String())
	}
	var r benchResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBenchSharesAreOneRun runs a load in several shares at the same time, in virtual time, and merges the results: they
// must have as many jobs, clients and latencies as the run of the whole load.
func TestBenchSharesAreOneRun(t *testing.T) {
	t.Parallel()
	const shares, jobs = 3, 601
	sys, err := connect.EntryNamed("gearman")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tp := tapped(t, embedded(t, sys).Addr()) // so that time passes
		defer tp.capture(t)
		plan := []string{"run", "gearman", "-q", "--addr", transport.Name(tp), "--count", fmt.Sprint(jobs), "--seed", "5", "--interval", "20ms"}
		dir := t.TempDir()
		at := time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
		var all sync.WaitGroup
		for i := range shares {
			all.Go(func() {
				args := slices.Concat([]string{"bench"}, plan, []string{"--share-index", fmt.Sprint(i), "--shares", fmt.Sprint(shares),
					"--start-at", at, "--output", filepath.Join(dir, fmt.Sprint(i)+".json")})
				var out, stderr bytes.Buffer
				if status := run(t.Context(), args, strings.NewReader(""), &out, &stderr); status != cli.StatusOK {
					t.Errorf("share %d: status %d: %s", i, status, stderr.String())
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		merged, whole := benchJSON(t, "merge", dir), benchJSON(t, plan...)
		if merged.Jobs != jobs || merged.Jobs != whole.Jobs || merged.Clients != whole.Clients {
			t.Errorf("%d jobs of %d clients; one process: %d of %d", merged.Jobs, merged.Clients, whole.Jobs, whole.Clients)
		}
		for stage, q := range whole.Latency {
			if m := merged.Latency[stage]; m.Count != q.Count || m.P50 == nil {
				t.Errorf("%s: %d latencies, one process has %d", stage, m.Count, q.Count)
			}
		}
	})
}

// TestBenchSeparatesCPUTime checks that the CPU time of the generator and of the built-in server is reported
// separately, because the server runs in its own process.
func TestBenchSeparatesCPUTime(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	// A run in this process would start the built-in server from the test binary under another name, by which
	// TestMain does not recognize it as jobwire.
	out, err := exec.CommandContext(t.Context(), jobwireItself(t), "bench", "run", "gearman", "-q", "--count", "5000", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r benchResult
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"generator", "target"} {
		if v := r.CPU[end]; v == nil || *v <= 0 || *v > 10000 {
			t.Errorf("%s: %v us a job", end, v)
		}
	}
}

// TestBenchInterrupted interrupts a run: it must still write a complete report.
func TestBenchInterrupted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), jobwireItself(t), "bench", "run", "gearman", "--duration", "1m", "--interval", "50ms")
	var out bytes.Buffer
	cmd.Stdout = &out
	progress := startWithErrors(t, cmd)
	lines := bufio.NewReader(progress)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "jobs/s") {
		t.Errorf("the first line of progress is %q, %v", line, err)
	}
	cmd.Process.Signal(os.Interrupt)
	io.Copy(io.Discard, lines)
	err := cmd.Wait()
	var e *exec.ExitError
	if !errors.As(err, &e) || e.ExitCode() != cli.StatusFailed {
		t.Errorf("it ended with %v", err)
	}
	for _, want := range []string{" jobs/s", "latency", "none lost", "failed: the run was interrupted; no job was lost"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

// TestCommandsInDeploymentsExist checks that the commands and flags in deploy/kubernetes exist. $(NAME) is a variable
// that Kubernetes replaces.
func TestCommandsInDeploymentsExist(t *testing.T) {
	commands := map[string]int{}
	for _, file := range []string{"bench.yaml", "merge.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../deploy/kubernetes/base", file))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Args []string } }
				}
			}
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range doc.Spec.Template.Spec.Containers {
			cmd, rest, err := newRoot().Find(c.Args)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			commands[cmd.CommandPath()]++
			for i, arg := range rest {
				rest[i] = strings.NewReplacer("$(SHARES)", "4", "$(JOB_COMPLETION_INDEX)", "3").Replace(arg)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if commands["jobwire bench run"] != 1 || commands["jobwire bench merge"] != 3 {
		t.Errorf("the Jobs run %v", commands)
	}
}

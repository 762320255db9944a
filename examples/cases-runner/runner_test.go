// Package casesrunner tests the example that runs the cases of jobwire in Python.
package casesrunner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/casedata"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/play"
	"jobwire/refserver"
)

// suite returns the Gearman cases that need one connection and nothing else.
func suite(t *testing.T) (*conform.Suite, []casedata.Case) {
	t.Helper()
	all, err := conform.Load(gearman.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	var chosen []casedata.Case
	ids := map[string]bool{}
	for _, c := range casedata.Cases(all) {
		if len(c.Connections) == 1 && c.Needs == nil {
			chosen = append(chosen, c)
			ids[c.ID] = true
		}
	}
	return all.Only(func(c *conform.Case) bool { return ids[c.ID] }), chosen
}

// TestSameVerdicts tests that the example in Python and conform agree on each case about one connection.
func TestSameVerdicts(t *testing.T) {
	python := peers.Need(t, "python3")
	selected, cases := suite(t)
	if len(cases) < 300 {
		t.Fatalf("expected at least 300 cases about one connection, got %d", len(cases))
	}
	input, err := json.Marshal(map[string]any{"cases": cases, "timeout": play.DefaultTimeout.Seconds()})
	if err != nil {
		t.Fatal(err)
	}
	faulty := func(faults ...string) func(t *testing.T) target.Target {
		return func(t *testing.T) target.Target { return start(t, strings.Join(faults, "\n")) }
	}
	alter := `alter ECHO_RES data={data[:4]} when len(data) > 8`
	closes := `close GET_STATUS`
	answer := `answer OPTION_REQ ERROR no no`
	for _, server := range []struct {
		name  string
		start func(t *testing.T) target.Target
		fails bool // many cases
		long  bool // conform repeats each case that misses a time limit
	}{
		{"gearmand", func(t *testing.T) target.Target { return peers.Start(t, "gearmand") }, false, false},
		{"truncated replies", faulty(alter), true, false},
		{"closed connections", faulty(closes), true, false},
		{"wrong replies", faulty(answer), true, false},
		{"three faults", faulty(alter, closes, answer), true, false},
		{"no fault", faulty(), false, true},
		{"ignored requests", faulty(`drop from-peer GET_STATUS`), true, true},
	} {
		t.Run(server.name, func(t *testing.T) {
			if server.long && testing.Short() {
				t.Skip("takes long")
			}
			t.Parallel()
			tested := server.start(t)
			want := map[string]string{}
			runner := conform.Runner{Parallel: 32, Timeout: play.DefaultTimeout, Segments: []play.Segmentation{play.Plain},
				Start: func(context.Context) (target.Target, error) { return kept{tested}, nil }}
			for _, r := range runner.Run(t.Context(), selected, nil) {
				want[r.Case.ID] = string(r.Verdict)
			}
			got, pairs, failed := map[string]string{}, map[string]int{}, 0
			for _, r := range example(t, python, tested.Addr(), input) {
				if got[r.ID] = r.Verdict; r.Verdict != want[r.ID] {
					t.Errorf("%s: conform says %s, the example %s: %s", r.ID, want[r.ID], r.Verdict, r.Note)
				}
				if pairs[fmt.Sprintf("%s/%s", r.Verdict, want[r.ID])]++; r.Verdict != "passed" {
					failed++
				}
			}
			if len(got) != len(want) {
				t.Errorf("expected %d verdicts, got %d", len(want), len(got))
			}
			if server.fails && failed == 0 {
				t.Error("expected failed cases, got none")
			}
			for _, pair := range slices.Sorted(maps.Keys(pairs)) {
				t.Logf("%s (the example/conform): %d", pair, pairs[pair])
			}
		})
	}
}

// kept is a server that conform does not stop.
type kept struct{ target.Target }

func (kept) Stop() error { return nil }

// start starts the reference server with faults.
func start(t *testing.T, faults string) target.Target {
	t.Helper()
	e, err := catalog.Named("gearman")
	if err != nil {
		t.Fatal(err)
	}
	machine, settings := e.New(), refserver.Options{Protocol: e.Protocol}
	if faults != "" {
		faulty, err := e.Injector().Wrap(machine, &settings, faults)
		if err != nil {
			t.Fatal(err)
		}
		machine = faulty
	}
	s, err := target.Func(context.Background(), "the server of the test", refserver.New(machine, settings).Serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s
}

type result struct{ ID, Verdict, Note string }

// example runs the example against a server.
func example(t *testing.T, python, addr string, input []byte) []result {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "run.py", addr)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Cases []result }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	return report.Cases
}

// TestLength tests that the example has at most 150 lines.
func TestLength(t *testing.T) {
	src, err := os.ReadFile("run.py")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), "\n"); n > 150 {
		t.Errorf("expected at most 150 lines, got %d", n)
	}
}

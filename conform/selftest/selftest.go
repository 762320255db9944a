// Package selftest tests a suite of conform itself, with faulty servers, clients and workers (mutants): each must fail
// exactly the cases that can show its fault.
package selftest

import (
	"context"
	"slices"
	"strings"
	"time"

	"jobwire/conform"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/internal/virtualtime"
)

// Baseline contains the faultless server, and the faultless clients and workers by role.
type Baseline struct {
	Start    func(context.Context) (target.Target, error)
	Programs map[string]conform.Program
	Observe  mutant.Observe // observes the faults of the mutants; nil: all mutants run against all cases
}

// with returns the programs for testing a mutant: the mutant, and the faultless server if the mutant is a client or
// worker.
func (b Baseline) with(m *mutant.Mutant) Baseline {
	if m.Program != nil {
		return Baseline{Start: b.Start, Programs: map[string]conform.Program{m.Role: m.Program}}
	}
	return Baseline{Start: m.Start, Programs: b.Programs}
}

// Options are the options of a self-test.
type Options struct {
	// Bubble runs a function in virtual time, so that time limits take no time and a busy machine changes no verdict.
	// In tests it calls synctest.Test. nil: virtualtime.Run.
	Bubble func(do func())
}

// MutantResult is the result of one mutant.
type MutantResult struct {
	Mutant     *mutant.Mutant
	Failed     []string         // IDs of the cases that the mutant failed, in the order of the suite
	Survivors  []string         // names of the cases, or IDs of the instances, that the mutant should fail but passed
	Unexpected []conform.Result // results of the cases that the mutant should pass but failed
	Hidden     []conform.Result // results of cases that failed although the condition of the fault was never true in them
	Effective  bool             // there is a case in which the condition of the fault is true, or this is unknown
}

// Exact reports whether the mutant failed exactly the cases that it should fail, and its fault has an effect in each
// of them.
func (r *MutantResult) Exact() bool {
	return len(r.Survivors)+len(r.Unexpected)+len(r.Hidden) == 0 && r.Effective
}

// Report is the result of a self-test of a suite.
type Report struct {
	Suite *conform.Suite
	// results of the cases that the faultless programs did not pass; if there are any, no mutant is tested
	Failed  []conform.Result
	Mutants []MutantResult // in the order of the argument
	Runs    RunCounts
	Began   time.Time
	Took    time.Duration

	Interrupted bool // the user ended the run before all mutants had been tested
}

// RunCounts are numbers of runs of a case against a mutant. A case in which the condition of a fault is never true
// cannot show the fault.
type RunCounts struct {
	Possible int `json:"possible"` // with the instances of cases that are chosen for the mutant
	Done     int `json:"done"`
	Sampled  int `json:"sampled"` // of those done: the condition is never true, which these runs check
}

// KilledBy returns, by the name of the case, the names of the mutants that fail the case.
func (r *Report) KilledBy() map[string][]string {
	by := map[string][]string{}
	for _, m := range r.Mutants {
		for _, id := range m.Failed {
			name, _, _ := strings.Cut(id, "[")
			if n := len(by[name]); n == 0 || by[name][n-1] != m.Mutant.Name {
				by[name] = append(by[name], m.Mutant.Name)
			}
		}
	}
	return by
}

// WithoutMutant returns the names of the cases that no mutant fails, in the order of the suite.
func (r *Report) WithoutMutant() []string {
	by := r.KilledBy()
	var names []string
	for _, name := range r.Suite.Names() {
		if len(by[name]) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// Exact returns the number of mutants that failed exactly the cases that they should fail.
func (r *Report) Exact() int {
	n := 0
	for i := range r.Mutants {
		if r.Mutants[i].Exact() {
			n++
		}
	}
	return n
}

// Passed reports whether the self-test is complete and passed: the faultless programs passed all cases, each mutant
// failed exactly the cases that it should fail, and each case is failed by at least one mutant.
func (r *Report) Passed() bool {
	return !r.Interrupted && len(r.Failed) == 0 && r.Exact() == len(r.Mutants) && len(r.WithoutMutant()) == 0
}

// Run tests the suite itself: the faultless programs must pass every case, and each mutant must fail exactly the
// cases that it should fail. The faultless server observes first in which cases the condition of the fault of each
// mutant is true. A mutant runs against these cases, the cases that it should fail, and one in a hundred of the
// others, which must pass. Mutants that should fail none of the cases in s are omitted. If done is not nil, Run
// calls it for each mutant after testing the mutant.
func Run(ctx context.Context, s *conform.Suite, faultless Baseline, mutants []mutant.Mutant, o Options,
	done func(*MutantResult)) *Report {
	began := time.Now()
	if o.Bubble == nil {
		o.Bubble = virtualtime.Run
	}
	s = s.InProcess() // faulty servers run in this process, so cases that need a server's process cannot run
	report := &Report{Suite: s, Began: began}
	parts := slices.Collect(slices.Chunk(s.Cases, baselinePart))
	failed, effects := make([][]conform.Result, len(parts)), make([]effects, len(parts))
	o.each(ctx, len(parts), func(i int) { failed[i], effects[i] = faultless.observe(s.With(parts[i]...)) })
	report.Failed = slices.Concat(failed...)
	if len(report.Failed) == 0 {
		o.run(ctx, report, faultless, mutants, join(effects), done)
	}
	report.Took, report.Interrupted = time.Since(began), ctx.Err() != nil
	return report
}

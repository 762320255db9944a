package conform

import (
	"context"
	"strings"
	"time"

	"jobwire/internal/mutant"
	"jobwire/internal/target"
)

// Mutant is a server, client or worker with one deliberate fault. It proves the cases that detect the fault. Only cases
// about its kind of program are run.
type Mutant = mutant.Mutant

// Baseline is the faultless server and the faultless programs, by role.
type Baseline struct {
	Start    func(context.Context) (target.Target, error)
	Programs map[string]Program
}

// with returns the programs to test a mutant with: the mutant, and the faultless others.
func (s Baseline) with(m *Mutant) Baseline {
	if m.Program != nil {
		return Baseline{s.Start, map[string]Program{m.Role: m.Program}}
	}
	return Baseline{m.Start, s.Programs}
}

// SelfTestOptions are the options of a self-test.
type SelfTestOptions struct {
	Mutants int           // mutants at a time; 0: 1
	Cases   int           // cases of one mutant at a time; 0: 1
	Timeout time.Duration // of an expectation; 0: DefaultSelfTestTimeout
}

// DefaultSelfTestTimeout is short, because a mutant that sends nothing takes the whole timeout.
const DefaultSelfTestTimeout = 400 * time.Millisecond

// repeatTimeoutFactor is the factor by which the timeout is multiplied when a case is run again whose verdict may be due to a busy
// machine.
const repeatTimeoutFactor = 5

// MutantResult is the result of one mutant.
type MutantResult struct {
	Mutant     *Mutant
	Failed     []string // IDs of the cases that it failed, in the order of the suite
	Survivors  []string // cases that it should fail, and passed
	Unexpected []Result // cases that it should pass, and failed
	Took       time.Duration
}

// Exact reports whether the mutant failed the cases that it should fail, and no others.
func (r *MutantResult) Exact() bool { return len(r.Survivors)+len(r.Unexpected) == 0 }

// SelfTestReport is the result of a self-test of a suite.
type SelfTestReport struct {
	Suite   *Suite
	Failed  []Result       // cases that the faultless programs did not pass; if there are any, no mutant is run
	Mutants []MutantResult // in the order of the argument
	Began   time.Time
	Took    time.Duration

	Interrupted bool // the user ended the run before all mutants had been tested
}

// KilledBy returns the names of the mutants that fail each case, by the name of the case.
func (r *SelfTestReport) KilledBy() map[string][]string {
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
func (r *SelfTestReport) WithoutMutant() []string {
	by := r.KilledBy()
	var names []string
	for _, name := range r.Suite.Names() {
		if len(by[name]) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// Exact returns how many mutants failed the cases that they should fail, and no others.
func (r *SelfTestReport) Exact() int {
	n := 0
	for i := range r.Mutants {
		if r.Mutants[i].Exact() {
			n++
		}
	}
	return n
}

// Passed reports whether the faultless programs passed, every mutant was exact, and a mutant failed every case.
func (r *SelfTestReport) Passed() bool {
	return !r.Interrupted && len(r.Failed) == 0 && r.Exact() == len(r.Mutants) && len(r.WithoutMutant()) == 0
}

// SelfTest tests the suite itself. The faultless programs must pass every case, and every mutant must fail exactly the
// cases that it should fail. If the suite is only a selection, the mutants that should fail none of its cases are left out.
// If done is not nil, SelfTest calls it for each mutant when its test ends.
func SelfTest(ctx context.Context, s *Suite, faultless Baseline, mutants []Mutant, o SelfTestOptions, done func(*MutantResult)) *SelfTestReport {
	began := time.Now()
	if o.Timeout == 0 {
		o.Timeout = DefaultSelfTestTimeout
	}
	s = s.InProcess() // faulty servers run in this process
	report := &SelfTestReport{Suite: s, Began: began}
	sound := Runner{Start: faultless.Start, Programs: faultless.Programs, Parallel: o.Cases, Timeout: repeatTimeoutFactor * o.Timeout, OmitPlay: true, Strict: true}
	for _, r := range sound.Run(ctx, s, nil) {
		if r.Verdict != Passed {
			report.Failed = append(report.Failed, r)
		}
	}
	if len(report.Failed) == 0 {
		report.Mutants = o.run(ctx, s, faultless, mutants, done)
	}
	report.Took, report.Interrupted = time.Since(began), ctx.Err() != nil
	return report
}

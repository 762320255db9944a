package conform

import (
	"context"
	"strings"
	"time"

	"jobwire/internal/mutant"
	"jobwire/internal/target"
)

// Mutant is a server, or a client or worker, with one deliberate fault, which proves the
// cases that notice it. Only the cases about its kind are performed.
type Mutant = mutant.Mutant

// Sound is what has no fault: the server, and the programs by their roles.
type Sound struct {
	Start    func(context.Context) (target.Target, error)
	Programs map[string]Program
}

// with returns what a mutant is judged with: itself, and what is sound of the rest.
func (s Sound) with(m *Mutant) Sound {
	if m.Program != nil {
		return Sound{s.Start, map[string]Program{m.Role: m.Program}}
	}
	return Sound{m.Start, s.Programs}
}

// SelfTestOptions say how a self-test is run.
type SelfTestOptions struct {
	Mutants int           // at a time; 0 is 1
	Cases   int           // of one mutant at a time; 0 is 1
	Timeout time.Duration // of an expectation; 0 is DefaultSelfTestTimeout
}

// DefaultSelfTestTimeout is short because a mutant that is silent costs all of it.
const DefaultSelfTestTimeout = 400 * time.Millisecond

// patience is how many times longer the timeout is where a verdict that may be this
// machine's fault is given again.
const patience = 5

// MutantResult says what became of one mutant.
type MutantResult struct {
	Mutant     *Mutant
	Failed     []string // IDs of the cases that it failed, in the suite's order
	Survivors  []string // of those that were named for it, and passed
	Unexpected []Result // cases that it failed though they were not named for it
	Took       time.Duration
}

// Exact reports whether the mutant failed the cases named for it, and no others.
func (r *MutantResult) Exact() bool { return len(r.Survivors)+len(r.Unexpected) == 0 }

// SelfTestReport is the proof of a suite, or where it falls short.
type SelfTestReport struct {
	Suite   *Suite
	Failed  []Result       // what the faultless ones did not pass; if there is any, no mutant is run
	Mutants []MutantResult // in the order in which they were given
	Began   time.Time
	Took    time.Duration

	Interrupted bool // the user ended the run before all mutants had been tested
}

// KilledBy returns the names of the mutants that fail each case, by the case's name.
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

// Unproved returns the names of the cases that no mutant fails, in the suite's order.
func (r *SelfTestReport) Unproved() []string {
	by := r.KilledBy()
	var names []string
	for _, name := range r.Suite.Names() {
		if len(by[name]) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// Exact returns how many mutants failed the cases named for them, and no others.
func (r *SelfTestReport) Exact() int {
	n := 0
	for i := range r.Mutants {
		if r.Mutants[i].Exact() {
			n++
		}
	}
	return n
}

// Held reports whether the faultless ones pass, every mutant is exact and every case is
// failed by one.
func (r *SelfTestReport) Held() bool {
	return !r.Interrupted && len(r.Failed) == 0 && r.Exact() == len(r.Mutants) && len(r.Unproved()) == 0
}

// SelfTest tests the suite itself: what is faultless has to pass every case, and
// every mutant has to fail exactly those named for it. A suite that is only a
// selection leaves out the mutants that have nothing to do with it. done, if not nil, is
// told of each mutant as it ends.
func SelfTest(ctx context.Context, s *Suite, faultless Sound, mutants []Mutant, o SelfTestOptions, done func(*MutantResult)) *SelfTestReport {
	began := time.Now()
	if o.Timeout == 0 {
		o.Timeout = DefaultSelfTestTimeout
	}
	s = s.InProcess() // faulty servers run in this process
	report := &SelfTestReport{Suite: s, Began: began}
	sound := Runner{Start: faultless.Start, Programs: faultless.Programs, Parallel: o.Cases, Timeout: patience * o.Timeout, Bare: true, Strict: true}
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

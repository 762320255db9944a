package audit

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"jobwire/internal/mutant"
)

// SelfTestReport is the result of a self-test of the stress test.
type SelfTestReport struct {
	Faultless []Outcome    // of the reference clients and workers
	Mutants   []MutantTest // in the order of the argument of [SelfTest]
}

// MutantTest is the result of a client or worker with an injected fault.
type MutantTest struct {
	Mutant   *mutant.Mutant
	Outcome  Outcome // under the fault profile that shows the fault
	Detected bool    // the stress test found the fault: the rule and the verdict of the mutant
}

// Passed reports whether all faultless clients and workers passed, and all injected faults were detected.
func (r *SelfTestReport) Passed() bool {
	for i := range r.Faultless {
		if !r.Faultless[i].Passed() {
			return false
		}
	}
	for i := range r.Mutants {
		if !r.Mutants[i].Detected {
			return false
		}
	}
	return true
}

// faultTime is the time limit per task for injected faults that may leave a task unanswered.
const faultTime = 700 * time.Millisecond

// SelfTest runs faultless clients and workers, which must pass, as opts selects, and then each mutant under the fault
// profile that shows its fault, which must be detected. It runs at most parallel mutants at the same time.
func SelfTest(ctx context.Context, opts StressOptions, mutants []mutant.Mutant, parallel int) (*SelfTestReport, error) {
	faultless, err := Stress(ctx, opts)
	if err != nil {
		return nil, err
	}
	r := &SelfTestReport{faultless, make([]MutantTest, len(mutants))}
	errs := make([]error, len(mutants))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i := range mutants {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r.Mutants[i], errs[i] = testMutant(ctx, opts, &mutants[i], faultTime)
			if !r.Mutants[i].Detected { // on a busy machine, the messages before the fault may take longer than faultTime
				r.Mutants[i], errs[i] = testMutant(ctx, opts, &mutants[i], 0)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// testMutant runs one mutant. limit is the time limit per task if the fault may leave a task unanswered; 0 is the default.
func testMutant(ctx context.Context, opts StressOptions, m *mutant.Mutant, limit time.Duration) (MutantTest, error) {
	profile := ProfileNamed("plain")
	if m.Condition != "" {
		profile = ProfileNamed(m.Condition)
	}
	opts.Profiles, opts.Drivers = []*Profile{profile}, map[string]Driver{m.Role: Driver(m.Program)}
	if m.Verdict == string(Hung) || m.Verdict == "" {
		opts.Limit = limit
	}
	all, err := Stress(ctx, opts)
	if err != nil {
		return MutantTest{Mutant: m}, err
	}
	t := MutantTest{Mutant: m, Outcome: all[0]}
	found := m.Rule == ""
	for _, b := range t.Outcome.Breaches {
		found = found || string(b.Rule.ID) == m.Rule
	}
	t.Detected = found && (m.Verdict == "" || m.Verdict == string(t.Outcome.Verdict))
	return t, nil
}

// WriteText writes the report as text.
func (r *SelfTestReport) WriteText(w io.Writer) error {
	var b strings.Builder
	failed, detected := 0, 0
	for i := range r.Faultless {
		if x := &r.Faultless[i]; !x.Passed() {
			failed++
			fmt.Fprintf(&b, "reference %s under %s: %s: %s\n", x.Role, x.Profile.Name, x.Verdict, x.Note)
		}
	}
	for i := range r.Mutants {
		t := &r.Mutants[i]
		mark := "MISSED   "
		if t.Detected {
			detected++
			mark = "detected "
		}
		var rules []string
		for _, breach := range t.Outcome.Breaches {
			rules = append(rules, string(breach.Rule.ID))
		}
		fmt.Fprintf(&b, "%s%s: %s\n         %s: %s %s\n", mark, t.Mutant.Name, t.Mutant.About, t.Outcome.Profile.Name, t.Outcome.Verdict, strings.Join(rules, " "))
	}
	fmt.Fprintf(&b, "\n%d of %d injected faults detected; the reference client and worker failed in %d of %d runs\n", detected, len(r.Mutants), failed, len(r.Faultless))
	_, err := io.WriteString(w, b.String())
	return err
}

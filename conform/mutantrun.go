package conform

import (
	"context"
	"slices"
	"sync"
	"time"
)

// mutantRun is the self-test of one mutant.
type mutantRun struct {
	*MutantResult
	with   Baseline
	suite  *Suite // instances to run
	ways   *setupWays
	mu     sync.Mutex
	passes int // number of parts of the suite that still have to run
	so     map[*Case]Result
}

// run tests the mutants against the cases, several mutants at a time, and calls done for each.
func (o SelfTestOptions) run(ctx context.Context, s *Suite, sound Baseline, mutants []Mutant, done func(*MutantResult)) []MutantResult {
	var trials, doubted []*mutantRun
	for i := range mutants {
		m := &mutants[i]
		if slices.ContainsFunc(s.Cases, func(c *Case) bool { return named(m, c) }) {
			trials = append(trials, &mutantRun{MutantResult: &MutantResult{Mutant: m}, with: sound.with(m), suite: s.forMutant(m), ways: newSetupWays(s.Setups), passes: 2, so: map[*Case]Result{}})
		}
	}
	var mu sync.Mutex
	end := func(t *mutantRun) {
		t.conclude()
		if done != nil {
			mu.Lock()
			defer mu.Unlock()
			done(t.MutantResult)
		}
	}
	pass := func(part *Suite, parallel int, r Runner) {
		each(trials, parallel, func(t *mutantRun) {
			t.runCases(ctx, part, r)
			switch last := t.passed(); {
			case last && len(t.unexpectedCases()) == 0:
				end(t)
			case last:
				mu.Lock()
				doubted = append(doubted, t)
				mu.Unlock()
			}
		})
	}
	// Heavy cases need much memory and time, so only two mutants run them at once, with a longer timeout. They run at
	// the same time as the light cases, which mostly wait.
	light, heavy := s.byWeight()
	var wg sync.WaitGroup
	wg.Go(func() { pass(light, o.Mutants, Runner{Parallel: o.Cases, Timeout: o.Timeout}) })
	wg.Go(func() { pass(heavy, 2, Runner{Timeout: repeatTimeoutFactor * o.Timeout}) })
	wg.Wait()

	// Run the cases with unexpected results again, now that the machine is less busy: on a busy machine, a server may
	// reply too late.
	each(doubted, 4, func(t *mutantRun) {
		for range 2 {
			if cases := t.unexpectedCases(); len(cases) > 0 {
				t.runCases(ctx, s.with(cases...), Runner{Parallel: 2, Timeout: repeatTimeoutFactor * o.Timeout})
			}
		}
		end(t)
	})
	var results []MutantResult
	for _, t := range trials {
		results = append(results, *t.MutantResult)
	}
	return results
}

// each calls do once for each mutant run. At most parallel calls run at the same time.
func each(trials []*mutantRun, parallel int, do func(*mutantRun)) {
	var wg sync.WaitGroup
	next := make(chan *mutantRun)
	for range max(1, parallel) {
		wg.Go(func() {
			for t := range next {
				do(t)
			}
		})
	}
	for _, t := range trials {
		next <- t
	}
	close(next)
	wg.Wait()
}

// runCases runs the cases of s that concern the mutant. Each case gets its own server, so that the fault does not
// affect other cases.
func (t *mutantRun) runCases(ctx context.Context, s *Suite, r Runner) {
	began := time.Now()
	r.Start, r.Programs, r.NewServerPerCase, r.OmitPlay, r.once, r.ways, r.Strict = t.with.Start, t.with.Programs, true, true, true, t.ways, true
	part := s.with()
	for _, c := range s.Cases {
		if t.concerns(c) && slices.Contains(t.suite.Cases, c) {
			part.Cases = append(part.Cases, c)
		}
	}
	results := r.Run(ctx, part, nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, res := range results {
		t.so[res.Case] = res
	}
	t.Took += time.Since(began)
}

// concerns reports whether the case tests the kind of program that the mutant is: a server, or a client or worker with
// the same role.
func (t *mutantRun) concerns(c *Case) bool { return c.Program == t.Mutant.Role }

// passed records that one more part of the suite has run, and reports whether it was the last part.
func (t *mutantRun) passed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passes--
	return t.passes == 0
}

// unexpectedCases returns the cases whose results differ from the expected results.
func (t *mutantRun) unexpectedCases() []*Case {
	survives := t.survives()
	var cases []*Case
	for _, c := range t.suite.Cases {
		r := t.so[c]
		if !t.concerns(c) {
			continue
		}
		if slices.Contains([]Verdict{Inconclusive, Unreachable, NotRun}, r.Verdict) && r.setup == nil || detects(r) && !named(t.Mutant, c) || survives(c) {
			cases = append(cases, c)
		}
	}
	return cases
}

// survives returns a function that reports whether the mutant passed a case that it should fail. If KilledBy names an
// instance, the mutant must fail this instance. If KilledBy names a case, it must fail at least one instance.
func (t *mutantRun) survives() func(*Case) bool {
	failed := map[string]bool{}
	for c, r := range t.so {
		if detects(r) {
			failed[c.Family], failed[c.ID] = true, true
		}
	}
	return func(c *Case) bool {
		return slices.Contains(t.Mutant.KilledBy, c.Family) && !failed[c.Family] || slices.Contains(t.Mutant.KilledBy, c.ID) && !failed[c.ID]
	}
}

// conclude sets Failed, Unexpected and Survivors of the mutant's result.
func (t *mutantRun) conclude() {
	survives := t.survives()
	for _, c := range t.suite.Cases {
		r := t.so[c]
		if detects(r) {
			t.Failed = append(t.Failed, c.ID)
			if !named(t.Mutant, c) {
				t.Unexpected = append(t.Unexpected, r)
			}
		}
		if survives(c) {
			t.Survivors = append(t.Survivors, c.ID)
		}
	}
}

// detects reports whether a result proves that the case detects the fault.
func detects(r Result) bool {
	return slices.Contains([]Verdict{Failed, Inconsistent, Crashed, Hung}, r.Verdict)
}

// heavyCase is the total size of the arguments, in bytes, above which a case is heavy.
const heavyCase = 4 << 20

// byWeight separates the heavy cases from the others.
func (s *Suite) byWeight() (light, heavy *Suite) {
	light, heavy = s.with(), s.with()
	for _, c := range s.Cases {
		size := 0
		for _, st := range c.Script.Steps {
			for _, a := range st.Choices[0].Args {
				size += len(a.Value)
			}
		}
		part := light
		if size > heavyCase {
			part = heavy
		}
		part.Cases = append(part.Cases, c)
	}
	return light, heavy
}

package conform

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"jobwire/internal/virtualtime"
)

// baselinePart is the number of cases that run against the faultless programs in one bubble.
const baselinePart = 50

// each calls do for the numbers below n, several at the same time, each in a bubble of its own. It stops early when ctx ends.
func (o SelfTestOptions) each(ctx context.Context, n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, cmp.Or(o.Parallel, runtime.GOMAXPROCS(0))) {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() == nil {
					o.Bubble(func() {
						virtualtime.Forward()
						do(i)
					})
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// runner returns a runner in which each case gets its own server, so that a fault does not affect other cases.
func (b Baseline) runner() *Runner {
	return &Runner{Start: b.Start, Programs: b.Programs, NewServerPerCase: true, OmitPlay: true, Strict: true, delay: new(schedulingDelay), virtual: true}
}

// fails returns the results of the cases that do not pass.
func (b Baseline) fails(s *Suite) []Result {
	return slices.DeleteFunc(b.runner().Run(context.Background(), s, nil), func(r Result) bool { return r.Verdict == Passed })
}

// run tests the mutants that should fail a case of the suite, and calls done for each.
func (o SelfTestOptions) run(ctx context.Context, s *Suite, faultless Baseline, mutants []Mutant, done func(*MutantResult)) []MutantResult {
	var results []MutantResult
	for i := range mutants {
		if m := &mutants[i]; slices.ContainsFunc(s.Cases, func(c *Case) bool { return named(m, c) }) {
			results = append(results, MutantResult{Mutant: m})
		}
	}
	var mu sync.Mutex
	o.each(ctx, len(results), func(i int) {
		r := &results[i]
		began := time.Now()
		r.conclude(s, faultless.with(r.Mutant).runner().Run(context.Background(), s.forMutant(r.Mutant), nil))
		r.Took = time.Since(began)
		if done != nil {
			mu.Lock()
			defer mu.Unlock()
			done(r)
		}
	})
	return results
}

// conclude sets Failed, Unexpected and Survivors. If KilledBy names an instance, the mutant must fail this instance. If it names a case, the
// mutant must fail at least one instance.
func (r *MutantResult) conclude(s *Suite, results []Result) {
	failed := map[string]bool{}
	for _, res := range results {
		if !detects(res) {
			continue
		}
		failed[res.Case.Family], failed[res.Case.ID] = true, true
		r.Failed = append(r.Failed, res.Case.ID)
		if !named(r.Mutant, res.Case) {
			r.Unexpected = append(r.Unexpected, res)
		}
	}
	for _, name := range r.Mutant.KilledBy {
		if !failed[name] && slices.ContainsFunc(s.Cases, func(c *Case) bool { return name == c.Family || name == c.ID }) {
			r.Survivors = append(r.Survivors, name)
		}
	}
}

// detects reports whether a result proves that the case detects the fault.
func detects(r Result) bool {
	return slices.Contains([]Verdict{Failed, Inconsistent, Crashed, Hung}, r.Verdict)
}

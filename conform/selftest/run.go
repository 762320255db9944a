package selftest

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"jobwire/conform"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/internal/virtualtime"
)

// baselinePart is the number of cases that run against the faultless programs in one bubble.
const baselinePart = 50

// each calls do for the numbers below n, several at the same time, each in a bubble of its own. It stops early when
// ctx ends.
func (o Options) each(ctx context.Context, n int, do func(i int)) {
	virtualtime.Each(ctx, n, o.Bubble, func(i int) {
		virtualtime.Forward()
		do(i)
	})
}

// runner returns a runner in which each case gets its own server, so that a fault does not affect other cases.
func (b Baseline) runner() *conform.Runner {
	return &conform.Runner{Start: b.Start, Programs: b.Programs, NewServerPerCase: true, OmitPlay: true, Strict: true,
		Virtual: true}
}

// effects are the names of the mutants whose faults would have had an effect in a case. A case that no server observed
// has no entry.
type effects map[*conform.Case]map[string]bool

func join(all []effects) effects {
	joined := effects{}
	for _, e := range all {
		maps.Copy(joined, e)
	}
	return joined
}

// observe runs the cases against the faultless programs. It returns the results of those that do not pass, and which
// faults would have had an effect.
func (b Baseline) observe(s *conform.Suite) (failed []conform.Result, seen effects) {
	r, seen := b.runner(), effects{}
	var servers []func() map[string]bool // of the present case
	if b.Observe != nil {
		r.Start = func(ctx context.Context) (target.Target, error) {
			t, effective, err := b.Observe(ctx)
			if err == nil {
				servers = append(servers, effective)
			}
			return t, err
		}
	}
	for _, c := range s.Cases {
		servers = nil
		if res := r.Run(context.Background(), s.With(c), nil)[0]; res.Verdict != verdict.Passed {
			failed = append(failed, res)
		}
		if b.Observe != nil {
			seen[c] = map[string]bool{}
			for _, effective := range servers {
				maps.Copy(seen[c], effective())
			}
		}
	}
	return failed, seen
}

// in reports whether the fault of a mutant has an effect in a case, or this is unknown.
func (e effects) in(c *conform.Case, m *mutant.Mutant) bool {
	return m.Program != nil || e[c] == nil || e[c][m.Name]
}

// sampleSize is the number of cases without an effect of a fault of which one runs nevertheless.
const sampleSize = 100

func sampled(c *conform.Case, m *mutant.Mutant) bool {
	h := fnv.New32a()
	h.Write([]byte(m.Name + " " + c.ID))
	return h.Sum32()%sampleSize == 0
}

// run tests the mutants that should fail a case of the suite, and calls done for each.
func (o Options) run(ctx context.Context, report *Report, faultless Baseline, mutants []mutant.Mutant,
	seen effects, done func(*MutantResult)) {
	s := report.Suite
	var parts []*conform.Suite
	for i := range mutants {
		m := &mutants[i]
		if !slices.ContainsFunc(s.Cases, func(c *conform.Case) bool { return named(m, c) }) {
			continue
		}
		part, all := s.With(), forMutant(s, m).Cases
		for _, c := range all {
			switch {
			case seen.in(c, m), named(m, c):
			case sampled(c, m):
				report.Runs.Sampled++
			default:
				continue
			}
			part.Cases = append(part.Cases, c)
		}
		report.Runs.Possible += len(all)
		report.Runs.Done += len(part.Cases)
		parts = append(parts, part)
		report.Mutants = append(report.Mutants, MutantResult{Mutant: m,
			Effective: slices.ContainsFunc(s.Cases, func(c *conform.Case) bool { return seen.in(c, m) })})
	}
	var mu sync.Mutex
	tested := make([]bool, len(parts))
	o.each(ctx, len(parts), func(i int) {
		r := &report.Mutants[i]
		r.conclude(s, faultless.with(r.Mutant).runner().Run(context.Background(), parts[i], nil), seen)
		tested[i] = true
		if done != nil {
			mu.Lock()
			defer mu.Unlock()
			done(r)
		}
	})
	i := -1
	report.Mutants = slices.DeleteFunc(report.Mutants, func(MutantResult) bool { // after an interruption
		i++
		return !tested[i]
	})
}

// conclude sets Failed, Unexpected, Hidden and Survivors. If KilledBy names an instance, the mutant must fail this
// instance. If it names a case, the mutant must fail at least one instance.
func (r *MutantResult) conclude(s *conform.Suite, results []conform.Result, seen effects) {
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
		if !seen.in(res.Case, r.Mutant) {
			r.Hidden = append(r.Hidden, res)
		}
	}
	for _, name := range r.Mutant.KilledBy {
		if !failed[name] && slices.ContainsFunc(s.Cases, func(c *conform.Case) bool { return name == c.Family || name == c.ID }) {
			r.Survivors = append(r.Survivors, name)
		}
	}
}

// detects reports whether a result proves that the case detects the fault.
func detects(r conform.Result) bool {
	return r.Verdict.FailsRun() && r.Verdict.Row().Decided
}

// otherInstances is the number of additional instances, besides the first of each case, that run against a mutant which
// should pass them.
const otherInstances = 12

// forMutant returns the suite with the instances to run against a mutant: all instances of the cases that the mutant
// should fail, the first instance of each other case, and a few other instances, which differ between mutants.
func forMutant(s *conform.Suite, m *mutant.Mutant) *conform.Suite {
	out := s.With()
	var others []*conform.Case
	first := map[string]bool{}
	for _, c := range s.Cases {
		if c.Program == m.Role && !named(m, c) && first[c.Family] {
			others = append(others, c)
		}
		first[c.Family] = true
	}
	h := fnv.New32a()
	h.Write([]byte(m.Name))
	chosen := map[*conform.Case]bool{}
	for k := range min(otherInstances, len(others)) {
		chosen[others[(int(h.Sum32()%uint32(len(others)))+k*len(others)/otherInstances)%len(others)]] = true
	}
	clear(first)
	for _, c := range s.Cases {
		if c.Program == m.Role && (named(m, c) || !first[c.Family] || chosen[c]) {
			out.Cases = append(out.Cases, c)
		}
		first[c.Family] = true
	}
	return out
}

// named reports whether the mutant should fail the case or the instance.
func named(m *mutant.Mutant, c *conform.Case) bool {
	return slices.Contains(m.KilledBy, c.Family) || slices.Contains(m.KilledBy, c.ID)
}

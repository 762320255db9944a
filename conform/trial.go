package conform

import (
	"context"
	"slices"
	"sync"
	"time"
)

// trial is the judgement of one mutant, while it goes on.
type trial struct {
	*MutantResult
	with   Sound
	due    map[string]bool // IDs of the cases that it must fail
	mu     sync.Mutex
	passes int // of the suite's parts, that are still to be judged
	so     map[*Case]Result
}

// run judges the mutants, several at a time.
func (o SelfTestOptions) run(ctx context.Context, s *Suite, sound Sound, mutants []Mutant, done func(*MutantResult)) []MutantResult {
	var trials, doubted []*trial
	for i := range mutants {
		m := &mutants[i]
		if due := s.named(m.Kills); len(due) > 0 {
			trials = append(trials, &trial{MutantResult: &MutantResult{Mutant: m}, with: sound.with(m), due: due, passes: 2, so: map[*Case]Result{}})
		}
	}
	var mu sync.Mutex
	end := func(t *trial) {
		t.conclude(s)
		if done != nil {
			mu.Lock()
			defer mu.Unlock()
			done(t.MutantResult)
		}
	}
	pass := func(part *Suite, parallel int, r Runner) {
		each(trials, parallel, func(t *trial) {
			t.judge(ctx, part, r)
			switch last := t.passed(); {
			case last && len(t.doubtful(s)) == 0:
				end(t)
			case last:
				mu.Lock()
				doubted = append(doubted, t)
				mu.Unlock()
			}
		})
	}
	// Cases that move much data take memory and time: few at once, and with patience. They
	// are judged beside the others, which mostly wait.
	light, heavy := s.byWeight()
	var wg sync.WaitGroup
	wg.Go(func() { pass(light, o.Mutants, Runner{Parallel: o.Cases, Timeout: o.Timeout}) })
	wg.Go(func() { pass(heavy, 2, Runner{Timeout: patience * o.Timeout}) })
	wg.Wait()

	// A busy machine looks like a silent server, and it was this that kept it busy. What may
	// be its fault is judged again, now that there is less to do.
	each(doubted, 4, func(t *trial) {
		for range 2 {
			if cases := t.doubtful(s); len(cases) > 0 {
				t.judge(ctx, &Suite{Protocol: s.Protocol, Cases: cases}, Runner{Parallel: 2, Timeout: patience * o.Timeout})
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

// each calls do for all trials, so many at a time.
func each(trials []*trial, parallel int, do func(*trial)) {
	var wg sync.WaitGroup
	next := make(chan *trial)
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

// judge performs cases. Each gets a server of its own: what the fault does to one must not be
// seen by another.
func (t *trial) judge(ctx context.Context, s *Suite, r Runner) {
	began := time.Now()
	r.Start, r.Programs, r.Fresh, r.Bare, r.once = t.with.Start, t.with.Programs, true, true, true
	part := &Suite{Protocol: s.Protocol}
	for _, c := range s.Cases {
		if t.concerns(c) {
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

// concerns reports whether the case is about what the mutant is.
func (t *trial) concerns(c *Case) bool { return c.Program == t.Mutant.Role }

// passed notes that a part of the suite has been judged, and tells whether it was the last.
func (t *trial) passed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passes--
	return t.passes == 0
}

// doubtful returns the cases whose results are not what they should be.
func (t *trial) doubtful(s *Suite) []*Case {
	var cases []*Case
	for _, c := range s.Cases {
		r := t.so[c]
		if !t.concerns(c) {
			continue
		}
		if slices.Contains([]Verdict{Inconclusive, Unreachable, NotRun}, r.Verdict) || kills(r) != t.due[c.ID] {
			cases = append(cases, c)
		}
	}
	return cases
}

// conclude draws up what the mutant killed.
func (t *trial) conclude(s *Suite) {
	for _, c := range s.Cases {
		r := t.so[c]
		killed, due := kills(r), t.due[c.ID]
		if killed {
			t.Kills = append(t.Kills, c.ID)
		}
		switch {
		case killed && !due:
			t.Unexpected = append(t.Unexpected, r)
		case due && !killed:
			t.Survivors = append(t.Survivors, c.ID)
		}
	}
}

// kills reports whether a result proves that the case notices the fault.
func kills(r Result) bool { return slices.Contains([]Verdict{Failed, Unsteady, Died}, r.Verdict) }

// named returns those of the IDs that the suite has.
func (s *Suite) named(ids []string) map[string]bool {
	in := map[string]bool{}
	for _, c := range s.Cases {
		if slices.Contains(ids, c.ID) {
			in[c.ID] = true
		}
	}
	return in
}

// heavyCase is how many bytes of arguments make a case a heavy one.
const heavyCase = 4 << 20

// byWeight parts the cases that move much data from the others.
func (s *Suite) byWeight() (light, heavy *Suite) {
	light, heavy = &Suite{Protocol: s.Protocol}, &Suite{Protocol: s.Protocol}
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

package fuzz

import (
	"context"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
	"jobwire/internal/watch"
	"slices"
)

// searchLeaks repeats inputs of the corpus that leave nothing on the server, and adds a candidate if the memory of the
// server grows.
func (w *worker) searchLeaks(ctx context.Context) {
	all := w.f.corpus.LeakInputs(exec.LeakInputs)
	g := exec.Growth{Runs: exec.LeakExecutions}
	clean := true
	for n := range exec.LeakWarmup + exec.LeakRounds*exec.LeakExecutions {
		if n >= exec.LeakWarmup && (n-exec.LeakWarmup)%exec.LeakExecutions == 0 {
			at, _ := watch.Of(w.t)
			if g.At = append(g.At, at.Resident); g.Ended() && !w.x.Steady { // the inputs that a steady executor runs must not depend on measurements
				return
			}
		}
		for _, in := range slices.Clone(all) {
			if w.ended(ctx) {
				return
			}
			w.f.repeats.Add(1)
			w.repeated++
			w.noPrefix = clean // the previous input has left nothing on the server
			r := w.execute(in)
			if clean = r.Clean; r.Fault == nil && !exec.Ended(w.t) {
				continue
			}
			if !w.failed(&triage.Candidate{Fault: exec.Verdict(w.t, r.Fault)}, nil) {
				return
			}
			all = slices.DeleteFunc(all, func(d *input.Input) bool { return d == in })
		}
	}
	at, ok := watch.Of(w.t)
	if g.At = append(g.At, at.Resident); !ok || !g.Leaks() || len(all) == 0 {
		return
	}
	log := *w.log
	log.Entries = nil
	for _, in := range all {
		log.Entries = append(log.Entries, input.Entry{Input: in})
	}
	w.f.triage.Add(&triage.Candidate{Fault: exec.MemoryGrows(), Log: &log})
}

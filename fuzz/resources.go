package fuzz

import (
	"context"
	"errors"
	"fmt"

	"jobwire/internal/watch"
)

func spin() *Fault {
	return &Fault{Oracle: Processor, Law: "busy while idle", Conn: -1, Step: -1, Text: "the server keeps a CPU core busy, although all connections are closed"}
}

// kept is how many descriptors must have leaked to look for the input.
const kept = 4

// repeat runs inputs several times and returns what the idle server uses then.
func (l *replayer) repeat(entries []Entry, runs, descriptors int) (watch.Usage, bool) {
	l.used = true
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for range runs {
		for _, e := range entries {
			if l.ctx.Err() != nil {
				return watch.Usage{}, false
			}
			if r := l.x.execute(e.Input, e.Prefix); r.Fault != nil && r.Fault.grave() {
				return watch.Usage{}, false
			}
		}
	}
	l.x.closeCanary()
	return watch.AtRest(l.t, descriptors)
}

// keeps reports whether an input leaks file descriptors each time.
func (l *replayer) keeps(c *Input) *Fault {
	if _, f := l.execute(c); f != nil && f.grave() || l.x == nil {
		return nil
	}
	alone := []Entry{{Input: c}}
	at, _ := l.repeat(alone, 1, -1)
	begun := at.Descriptors
	for range 2 {
		before, by := at.Descriptors, l.x.unnoticed
		var ok bool
		if at, ok = l.repeat(alone, watch.KeepRuns, before); !ok || at.Descriptors-before-(l.x.unnoticed-by) < watch.Keeps {
			return nil
		}
	}
	return &Fault{Oracle: Descriptors, Law: "descriptors grow", Conn: -1, Step: -1,
		Text: fmt.Sprintf("the server has %d more open file descriptors after %d repetitions of the messages, with all connections closed", at.Descriptors-begun, 2*watch.KeepRuns)}
}

// leaksDescriptors reports whether entries, repeated a few times, leak descriptors.
func (l *replayer) leaksDescriptors(entries []Entry) bool {
	const times = 4
	if l.ready() != nil {
		return false
	}
	before, ok := l.repeat(entries, 1, -1)
	if !ok {
		return false
	}
	by := l.x.unnoticed
	after, ok := l.repeat(entries, times, before.Descriptors)
	return ok && after.Descriptors-before.Descriptors-(l.x.unnoticed-by) >= times
}

// mayGrow reports whether a growth of memory after an execution is a fault. Jobs that are left need memory. If the model does
// not know what is left, the reference server is asked too.
func (l *replayer) mayGrow(r *Record) bool {
	return r.Clean || r.Vague && l.cfg.Reference != nil
}

// smallLeak is the smallest leak that is found, in bytes for each execution of an input.
const smallLeak = 1 << 10

// grows reports whether an input leaks memory each time.
func (l *replayer) grows(c *Input) *Fault {
	if r, f := l.execute(c); f != nil && f.grave() || l.x == nil || !l.mayGrow(r) {
		return nil
	}
	runs := l.leakRuns
	if runs == 0 {
		runs = watch.LeakBytes / smallLeak
	}
	at, _ := watch.Of(l.t)
	descriptors := -1
	n, repetitions, err := watch.MemoryLeak(at.Resident, runs, func() (watch.Usage, error) {
		u, ok := l.repeat([]Entry{{Input: c}}, runs, descriptors)
		if !ok {
			return u, errStopped
		}
		if descriptors < 0 {
			descriptors = u.Descriptors
		}
		return u, nil
	})
	if n == 0 || err != nil {
		return nil
	}
	each := n / int64(repetitions)
	l.leakRuns = min(watch.LeakBytes/smallLeak, max(16, int(2*watch.LeakBytes/each)))
	return &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1,
		Text: fmt.Sprintf("the server uses %d KiB more memory after %d repetitions of the messages (%d bytes each), with all connections closed", n>>10, repetitions, each)}
}

// errStopped is returned if the server ended, or failed, while an input was repeated.
var errStopped = errors.New("the server failed while the input was repeated")

// A worker repeats a few inputs of the corpus together to look for leaks of memory: a warm-up, and then several rounds of soakRuns
// executions of each. Growth is suspicious if it is, in each round, as large as that of a leak of smallLeak in one of the inputs.
// Servers take memory from the system in large pieces, so a search for the input repeats it more often.
const (
	soakInputs = 8
	soakWarm   = 64
	soakRounds = 3
	soakRuns   = 64
	searchRuns = 512
)

// soak repeats inputs of the corpus of which nothing is left on the server.
func (w *worker) soak(ctx context.Context) {
	all := w.f.corpus.soak(soakInputs)
	last := int64(0) // resident memory when the round began
	for n := range soakWarm + soakRounds*soakRuns {
		if n >= soakWarm && (n-soakWarm)%soakRuns == 0 {
			at, ok := watch.Of(w.t)
			if !ok || n > soakWarm && at.Resident-last < smallLeak*soakRuns {
				return
			}
			last = at.Resident
		}
		for _, c := range all {
			if w.over(ctx) || !w.f.claim() {
				return
			}
			w.pristine = true // nothing is left of these inputs
			if r := w.execute(c); r.Fault != nil || ended(w.t) {
				w.failed(verdict(w.t, r.Fault), nil)
				return
			}
		}
	}
	if at, ok := watch.Of(w.t); !ok || len(all) == 0 || at.Resident-last < smallLeak*soakRuns {
		return
	}
	log := *w.log
	log.Entries = nil
	for _, c := range all {
		log.Entries = append(log.Entries, Entry{Input: c})
	}
	w.f.triage.leaks.Add(1)
	w.f.triage.add(&candidate{fault: &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1}, log: &log})
}

// growth returns how much memory, in bytes, a new server keeps of entries that are repeated after a warm-up.
func (l *replayer) growth(entries []Entry) int64 {
	if l.ready() != nil {
		return 0
	}
	before, ok := l.repeat(entries, searchRuns, -1)
	if !ok {
		return 0
	}
	after, _ := l.repeat(entries, searchRuns, before.Descriptors)
	return after.Resident - before.Resident
}

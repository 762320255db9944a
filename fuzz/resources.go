package fuzz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// spins reports whether the server is busy after an input.
func (l *replayer) spins(c *Input) *Fault {
	if l.execute(c); l.x == nil || ended(l.t) {
		return nil
	}
	l.x.closeCanary() // a busy server may reply late, too
	if !watch.Spinning(l.t) {
		return nil
	}
	l.used = true
	return spin()
}

// spinBatch is how many inputs run between two checks for a busy server.
const spinBatch = 16

// findSpin returns the one of many inputs after which the server stays busy.
func (f *Fuzzer) findSpin(done []*Input) (*Input, *Fault) {
	l := f.replayer
	l.used = true
	for batch := range slices.Chunk(done, spinBatch) {
		if f.stopped() || l.ready() != nil {
			break
		}
		sound := l.holds(batch)
		if l.x.closeCanary(); sound && !watch.Spinning(l.t) {
			continue
		}
		l.used = true
		for _, c := range batch {
			for _, c := range traitsOf(f.cfg.Protocol).alone(c) {
				if v := l.spins(c); v != nil {
					return c, v
				}
			}
		}
		l.used = true
	}
	l.used = true
	return nil, nil
}

// holds runs inputs one after the other, each with names of its own, and reports whether the server survives.
func (l *replayer) holds(inputs []*Input) bool {
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for i, c := range inputs {
		if r := l.x.execute(c, nth(i)); r.Fault != nil && r.Fault.grave() || ended(l.t) {
			l.observe(verdict(l.t, r.Fault), inputs[:i+1])
			return false
		}
	}
	return true
}

func spin() *Fault {
	return &Fault{Oracle: Processor, Law: "busy while idle", Conn: -1, Step: -1, Text: "the server keeps a CPU core busy, although all connections are closed"}
}

// repeat runs an input several times and returns what the idle server uses then.
func (l *replayer) repeat(c *Input, runs, descriptors int) (watch.Usage, bool) {
	l.used = true
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for range runs {
		if r := l.x.execute(c, ""); r.Fault != nil && r.Fault.grave() {
			return watch.Usage{}, false
		}
	}
	l.x.closeCanary()
	return watch.AtRest(l.t, descriptors)
}

// keeps reports whether an input leaks file descriptors each time.
func (l *replayer) keeps(c *Input) *Fault {
	if _, f := l.execute(c); f != nil && f.grave() {
		return nil
	}
	at, _ := l.repeat(c, 1, -1)
	begun := at.Descriptors
	for range 2 {
		before, by := at.Descriptors, l.x.unnoticed
		var ok bool
		if at, ok = l.repeat(c, watch.KeepRuns, before); !ok || at.Descriptors-before-(l.x.unnoticed-by) < watch.Keeps {
			return nil
		}
	}
	return &Fault{Oracle: Descriptors, Law: "descriptors grow", Conn: -1, Step: -1,
		Text: fmt.Sprintf("the server has %d more open file descriptors after %d repetitions of the messages, with all connections closed", at.Descriptors-begun, 2*watch.KeepRuns)}
}

// mayGrow reports whether a growth of memory after an execution is a fault. Jobs that are left need memory. If the model cannot
// tell what is left, the reference server is asked too.
func (l *replayer) mayGrow(r *Record) bool {
	return r.Clean || r.Vague && l.cfg.Reference != nil
}

// grows reports whether an input leaks memory each time.
func (l *replayer) grows(c *Input) *Fault {
	if r, f := l.execute(c); f != nil && f.grave() || !l.mayGrow(r) {
		return nil
	}
	runs := l.leakRuns
	if runs == 0 {
		runs = watch.LeakRuns
	}
	at, _ := watch.Of(l.t)
	descriptors := -1
	n, repetitions, err := watch.MemoryLeak(at.Resident, runs, func() (watch.Usage, error) {
		u, ok := l.repeat(c, runs, descriptors)
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
	l.leakRuns = min(watch.LeakRuns, max(16, int(2*watch.LeakBytes/each)))
	return &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1,
		Text: fmt.Sprintf("the server uses %d KiB more memory after %d repetitions of the messages (%d bytes each), with all connections closed", n>>10, repetitions, each)}
}

// errStopped is returned if the server ended, or failed, while an input was repeated.
var errStopped = errors.New("the server failed while the input was repeated")

// How the corpus is soaked: each input runs alone, in two rounds after some runs to warm up.
const (
	soakWarm  = 3
	soakRuns  = 8
	soakBytes = soakRuns * watch.LeakBytes / watch.LeakRuns
)

// soakShare limits the soak runs to one of so many executions.
const soakShare = 6

// soak runs inputs of the corpus repeatedly on a server that no other input uses, and checks for memory leaks.
func (w *instance) soak(ctx context.Context) {
	defer w.close()
	for ctx.Err() == nil && !w.f.done() {
		if w.t != nil && (time.Since(w.base) > lifetime || w.exhausted()) {
			w.kill()
		}
		if w.t == nil && w.launch(ctx) != nil || target.Pid(w.t) == 0 {
			return
		}
		var c *Input
		if w.soaked*soakShare <= w.f.inputs.Load() {
			c = w.f.corpus.next()
		}
		if c == nil {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		} else if c.waits() == 0 && !c.Burst && c.bytes() <= big && !w.soakInput(c) {
			w.kill()
		} else if w.slices++; w.slices%spinBatch == 0 && watch.Spinning(w.t) {
			w.kill() // the instances report it
		}
	}
}

// soakInput runs one input repeatedly. It reports whether the server has survived.
func (w *instance) soakInput(c *Input) bool {
	f, one := w.f, w.ready[0]
	prefix := one.prefix()
	var at [3]watch.Usage
	for i, runs := range [3]int{soakWarm, soakRuns, soakRuns} {
		for range runs {
			r := one.x.execute(c, prefix)
			f.inputs.Add(1)
			w.soaked++
			if r.Fault != nil && r.Fault.grave() {
				f.triageQueue.add(&candidate{observations: []*observation{{input: c, fault: r.Fault}}, whole: verdict(w.t, r.Fault)})
				return false
			}
			if !f.replayer.mayGrow(r) || f.stopped() {
				return true
			}
		}
		at[i], _ = watch.Of(w.t)
	}
	if at[1].Resident-at[0].Resident >= soakBytes && at[2].Resident-at[1].Resident >= soakBytes {
		f.triageQueue.add(&candidate{observations: []*observation{{input: c, fault: &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1}}}, grown: true})
	}
	return true
}

// grown examines an input after which a server used more memory.
func (f *Fuzzer) grown(c *Input) {
	for _, c := range traitsOf(f.cfg.Protocol).alone(c) {
		f.replayer.leakRuns = 0
		if v := f.replayer.grows(c); v != nil {
			if !f.dismissed(c, v) && !f.confirm(c, v) {
				f.suppress(provisionalKey(f.cfg.Protocol, c, v))
			}
			break
		}
	}
	f.replayer.leakRuns = 0
}

// kept is how many descriptors must have leaked to look for the input.
const kept = 4

// findDescriptorLeak bisects inputs after which descriptors leaked.
func (f *Fuzzer) findDescriptorLeak(done []*Input) {
	const most = 1200
	f.tally("bisecting a descriptor leak")
	done = done[max(0, len(done)-most):]
	// A server may keep half-closed connections, which makes the count uncertain.
	plain := slices.DeleteFunc(slices.Clone(done), func(c *Input) bool {
		return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Verb == transcript.Closes || s.Verb == transcript.HalfCloses })
	})
	all, ok := f.replayer.stay(plain)
	if ok && all >= kept/2 {
		done = plain
	} else if all, ok = f.replayer.stay(done); !ok || all < kept/2 {
		return
	}
	for len(done) > 1 && !f.stopped() {
		half := done[:len(done)/2]
		n, ok := f.replayer.stay(half)
		if !ok {
			return
		}
		if 2*n >= all && n > 0 {
			done, all = half, n
		} else {
			done, all = done[len(half):], all-n
		}
	}
	for _, c := range traitsOf(f.cfg.Protocol).alone(done[0]) {
		if v := f.replayer.keeps(c); v != nil {
			if !f.dismissed(c, v) {
				f.confirm(c, v)
			}
			return
		}
	}
}

// stay returns how many descriptors inputs leak.
func (l *replayer) stay(inputs []*Input) (n int, ok bool) {
	if l.ready() != nil {
		return 0, false
	}
	l.used = true
	l.x.ping()
	l.x.closeCanary()
	before, ok := watch.AtRest(l.t, -1)
	by := l.x.unnoticed
	ok = ok && l.holds(inputs)
	l.x.closeCanary()
	after, live := watch.AtRest(l.t, before.Descriptors+l.x.unnoticed-by)
	return after.Descriptors - before.Descriptors - (l.x.unnoticed - by), ok && live
}

package triage

import (
	"errors"
	"fmt"

	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/watch"
)

// repeat runs entries several times in turn, waits until the server is idle, and returns the resources that the server
// then uses. It returns false if the server has failed or the run has ended. descriptors is the expected number of open
// file descriptors, or -1.
func (l *replayer) repeat(entries []input.Entry, runs, descriptors int) (watch.Usage, bool) {
	l.used = true
	l.x.Thorough = false
	for range runs {
		for _, e := range entries {
			if l.ctx.Err() != nil {
				return watch.Usage{}, false
			}
			if r := l.x.Execute(e.Input, e.Prefix); r.Fault != nil && r.Fault.MaybeCrashed() {
				return watch.Usage{}, false
			}
		}
	}
	l.x.CloseCanary()
	return watch.AtRest(l.t, descriptors)
}

// keeps returns a fault if each execution of an input leaks file descriptors, and otherwise nil.
func (l *replayer) keeps(in *input.Input) *exec.Fault {
	if _, f := l.execute(in); f != nil && f.MaybeCrashed() || l.x == nil {
		return nil
	}
	alone := []input.Entry{{Input: in}}
	at, _ := l.repeat(alone, 1, -1)
	begun := at.Descriptors
	for range 2 {
		before, by := at.Descriptors, l.x.MaybeKept
		var ok bool
		if at, ok = l.repeat(alone, watch.KeepRuns, before); !ok || at.Descriptors-before-(l.x.MaybeKept-by) < watch.Keeps {
			return nil
		}
	}
	return &exec.Fault{Oracle: exec.Descriptors, Law: "descriptors grow", Conn: -1, Step: -1,
		Text: fmt.Sprintf("the server has %d more open file descriptors after %d repetitions of the messages, with all connections closed", at.Descriptors-begun, 2*watch.KeepRuns)}
}

// leaksDescriptors reports whether each repetition of the entries leaks at least one file descriptor.
func (l *replayer) leaksDescriptors(entries []input.Entry) bool {
	const times = 4
	if l.ready() != nil {
		return false
	}
	before, ok := l.repeat(entries, 1, -1)
	if !ok {
		return false
	}
	by := l.x.MaybeKept
	after, ok := l.repeat(entries, times, before.Descriptors)
	return ok && after.Descriptors-before.Descriptors-(l.x.MaybeKept-by) >= times
}

// mayGrow reports whether memory growth after an execution may be a fault. It is not a fault if the input leaves
// unfinished jobs on the server. If the model does not know whether there are unfinished jobs, the result is true only
// if the fault can be compared with the reference server.
func (l *replayer) mayGrow(r *exec.Record) bool {
	return r.Clean || r.Vague && l.cfg.Reference != nil
}

// grows returns a fault if each execution of an input leaks memory, and otherwise nil.
func (l *replayer) grows(in *input.Input) *exec.Fault {
	if r, f := l.execute(in); f != nil && f.MaybeCrashed() || l.x == nil || !l.mayGrow(r) {
		return nil
	}
	runs := l.leakRuns
	if runs == 0 {
		runs = watch.LeakBytes / exec.MinLeak
	}
	at, _ := watch.Of(l.t)
	descriptors := -1
	n, repetitions, err := watch.MemoryLeak(at.Resident, runs, func() (watch.Usage, error) {
		u, ok := l.repeat([]input.Entry{{Input: in}}, runs, descriptors)
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
	l.leakRuns = min(watch.LeakBytes/exec.MinLeak, max(16, int(2*watch.LeakBytes/each)))
	v := exec.MemoryGrows()
	v.Text = fmt.Sprintf("the server uses %d KiB more memory after %d repetitions of the messages (%d bytes each), with all connections closed", n>>10, repetitions, each)
	return v
}

// leaksMemory returns a fault if the memory of a new server grows while an input is repeated, and otherwise nil. It
// needs fewer repetitions than grows, and is less reliable for programs with a garbage collector.
func (l *replayer) leaksMemory(in *input.Input) *exec.Fault {
	if !l.leaks([]input.Entry{{Input: in}}) {
		return nil
	}
	return exec.MemoryGrows()
}

// errStopped is the error if the server fails or the run ends while an input is repeated.
var errStopped = errors.New("the server failed while the input was repeated")

// leaks reports whether the memory of a new server grows while entries are repeated.
func (l *replayer) leaks(entries []input.Entry) bool {
	if l.ready() != nil {
		return false
	}
	times := exec.LeakInputs / len(entries)
	first, ok := l.repeat(entries, times*exec.LeakWarmup, -1)
	g := exec.Growth{At: []int64{first.Resident}, Runs: int64(times * exec.LeakExecutions)}
	for n := 0; ok && n < exec.LeakRounds && !g.Ended(); n++ {
		var at watch.Usage
		at, ok = l.repeat(entries, times*exec.LeakExecutions, first.Descriptors)
		g.At = append(g.At, at.Resident)
	}
	return ok && g.Leaks()
}

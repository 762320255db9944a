package fuzz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"jobwire/fuzz/input"
	"jobwire/internal/watch"
)

// ServerEnv returns environment variables for servers, in addition to the variables of this process, that make small
// memory leaks visible early. With them, servers in Go collect garbage often, and AddressSanitizer keeps at most 1 MiB
// of freed memory (default: 256 MiB). If the user has set GOGC or ASAN_OPTIONS, those settings have precedence.
func ServerEnv() (env []string) {
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=10")
	}
	return append(env, "ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=16:"+os.Getenv("ASAN_OPTIONS"))
}

func cpuLoop() *Fault {
	return &Fault{Oracle: Processor, Law: "busy while idle", Conn: -1, Step: -1,
		Text: "the server keeps a CPU core busy, although all connections are closed"}
}

// kept is the number of leaked file descriptors from which a worker adds a candidate.
const kept = 4

// repeat runs entries several times in turn, waits until the server is idle, and returns the resources that the server
// then uses. It returns false if the server has failed or the run has ended. descriptors is the expected number of open
// file descriptors, or -1.
func (l *replayer) repeat(entries []input.Entry, runs, descriptors int) (watch.Usage, bool) {
	l.used = true
	l.x.thorough = false
	defer func() { l.x.thorough = true }()
	for range runs {
		for _, e := range entries {
			if l.ctx.Err() != nil {
				return watch.Usage{}, false
			}
			if r := l.x.execute(e.Input, e.Prefix); r.Fault != nil && r.Fault.maybeCrashed() {
				return watch.Usage{}, false
			}
		}
	}
	l.x.closeCanary()
	return watch.AtRest(l.t, descriptors)
}

// keeps returns a fault if each execution of an input leaks file descriptors, and otherwise nil.
func (l *replayer) keeps(c *input.Input) *Fault {
	if _, f := l.execute(c); f != nil && f.maybeCrashed() || l.x == nil {
		return nil
	}
	alone := []input.Entry{{Input: c}}
	at, _ := l.repeat(alone, 1, -1)
	begun := at.Descriptors
	for range 2 {
		before, by := at.Descriptors, l.x.maybeKept
		var ok bool
		if at, ok = l.repeat(alone, watch.KeepRuns, before); !ok || at.Descriptors-before-(l.x.maybeKept-by) < watch.Keeps {
			return nil
		}
	}
	return &Fault{Oracle: Descriptors, Law: "descriptors grow", Conn: -1, Step: -1,
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
	by := l.x.maybeKept
	after, ok := l.repeat(entries, times, before.Descriptors)
	return ok && after.Descriptors-before.Descriptors-(l.x.maybeKept-by) >= times
}

// mayGrow reports whether memory growth after an execution may be a fault. It is not a fault if the input leaves
// unfinished jobs on the server. If the model does not know whether there are unfinished jobs, the result is true only
// if the fault can be compared with the reference server.
func (l *replayer) mayGrow(r *Record) bool {
	return r.Clean || r.Vague && l.cfg.Reference != nil
}

// minLeak is the size of the smallest leak that the fuzzer detects, in bytes for each execution of an input.
const minLeak = 1 << 10

// grows returns a fault if each execution of an input leaks memory, and otherwise nil.
func (l *replayer) grows(c *input.Input) *Fault {
	if r, f := l.execute(c); f != nil && f.maybeCrashed() || l.x == nil || !l.mayGrow(r) {
		return nil
	}
	runs := l.leakRuns
	if runs == 0 {
		runs = watch.LeakBytes / minLeak
	}
	at, _ := watch.Of(l.t)
	descriptors := -1
	n, repetitions, err := watch.MemoryLeak(at.Resident, runs, func() (watch.Usage, error) {
		u, ok := l.repeat([]input.Entry{{Input: c}}, runs, descriptors)
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
	l.leakRuns = min(watch.LeakBytes/minLeak, max(16, int(2*watch.LeakBytes/each)))
	v := memoryGrows()
	v.Text = fmt.Sprintf("the server uses %d KiB more memory after %d repetitions of the messages (%d bytes each), with all connections closed", n>>10, repetitions, each)
	return v
}

// leaksMemory returns a fault if the memory of a new server grows while an input is repeated, and otherwise nil. It
// needs fewer repetitions than grows, and is less reliable for programs with a garbage collector.
func (l *replayer) leaksMemory(c *input.Input) *Fault {
	if !l.leaks([]input.Entry{{Input: c}}) {
		return nil
	}
	return memoryGrows()
}

func memoryGrows() *Fault {
	return &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1,
		Text: "the server uses more memory after repetitions of the messages"}
}

// errStopped is the error if the server fails or the run ends while an input is repeated.
var errStopped = errors.New("the server failed while the input was repeated")

// Parameters of the search for memory leaks. A worker repeats a few inputs of the corpus together, in a warm-up and
// then in several rounds. If the memory grows, triage bisects: it repeats one half of the inputs on a new server, with
// the same total number of executions. With fewer different inputs, the leaking input is executed more often and adds
// more to the growth.
const (
	leakInputs     = 8
	leakWarmup     = 64 // executions of each input
	leakRounds     = 6
	leakExecutions = 64 // executions of each input in a round with LeakInputs inputs
)

// growth contains the resident memory of a server, in bytes, after the warm-up and after each round. The memory does
// not grow evenly: allocators take memory in large pieces, and garbage collectors return some.
type growth struct {
	at   []int64
	runs int64 // number of executions of each input in a round
}

// of returns the growth since round i, in bytes.
func (g *growth) of(i int) int64 { return g.at[len(g.at)-1] - g.at[i] }

// ended reports whether the growth so far is less than half of the growth that a leak of minLeak bytes in one of the
// inputs causes. Then there is no leak to detect.
func (g *growth) ended() bool {
	rounds := len(g.at) - 1
	return rounds > 1 && g.of(0) < int64(rounds)*g.runs*minLeak/2
}

// leaks reports whether the rounds are complete and the memory has grown in both halves of the rounds.
func (g *growth) leaks() bool {
	half := len(g.at) / 2
	return len(g.at) == leakRounds+1 && !g.ended() && g.at[half] > g.at[0] &&
		g.of(half) >= int64(leakRounds/2)*g.runs*minLeak/2
}

// searchLeaks repeats inputs of the corpus that leave nothing on the server, and adds a candidate if the memory of the
// server grows.
func (w *worker) searchLeaks(ctx context.Context) {
	all := w.f.corpus.LeakInputs(leakInputs)
	g := growth{runs: leakExecutions}
	clean := true
	for n := range leakWarmup + leakRounds*leakExecutions {
		if n >= leakWarmup && (n-leakWarmup)%leakExecutions == 0 {
			at, _ := watch.Of(w.t)
			if g.at = append(g.at, at.Resident); g.ended() && !w.x.steady { // the inputs that a steady executor runs must not depend on measurements
				return
			}
		}
		for _, c := range slices.Clone(all) {
			if w.ended(ctx) || !w.f.claim() {
				return
			}
			w.noPrefix = clean // the previous input has left nothing on the server
			r := w.execute(c)
			if clean = r.Clean; r.Fault == nil && !ended(w.t) {
				continue
			}
			if !w.failed(verdict(w.t, r.Fault), nil) {
				return
			}
			all = slices.DeleteFunc(all, func(d *input.Input) bool { return d == c })
		}
	}
	at, ok := watch.Of(w.t)
	if g.at = append(g.at, at.Resident); !ok || !g.leaks() || len(all) == 0 {
		return
	}
	log := *w.log
	log.Entries = nil
	for _, c := range all {
		log.Entries = append(log.Entries, input.Entry{Input: c})
	}
	w.f.triage.leaks.Add(1)
	w.f.triage.add(&candidate{fault: memoryGrows(), log: &log})
}

// leaks reports whether the memory of a new server grows while entries are repeated.
func (l *replayer) leaks(entries []input.Entry) bool {
	if l.ready() != nil {
		return false
	}
	times := leakInputs / len(entries)
	first, ok := l.repeat(entries, times*leakWarmup, -1)
	g := growth{at: []int64{first.Resident}, runs: int64(times * leakExecutions)}
	for n := 0; ok && n < leakRounds && !g.ended(); n++ {
		var at watch.Usage
		at, ok = l.repeat(entries, times*leakExecutions, first.Descriptors)
		g.at = append(g.at, at.Resident)
	}
	return ok && g.leaks()
}

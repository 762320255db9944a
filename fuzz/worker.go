package fuzz

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// worker generates inputs and runs them one after the other on its own server, which it replaces with a new one from
// time to time.
type worker struct {
	f     *Fuzzer
	id    int
	slow  bool // the inputs have pauses
	r     *rand.Rand
	g     *input.Generator
	clock int // speed of the servers' clocks as a multiple of the machine's clock; 0: the same speed
	exec.Servers
	generation int // number of the current server

	t            target.Target
	x            *exec.Executor
	log          *input.Log
	exclusive    bool          // use a new server as soon as an input leaves something on this one
	noPrefix     bool          // the inputs so far have left nothing on the server, so names need no prefix
	used         uint64        // number of prefixes used
	freePrefixes []string      // prefixes of inputs that have left nothing on the server
	descriptors  int           // number of open file descriptors of the server at its start
	checked      int           // number of log entries at the last check of the resources
	paused       time.Duration // time for which the triage has paused the worker
	executed     int           // number of inputs executed, without repetitions
	repeated     int           // number of repetitions in search of memory leaks
}

// Numbers of inputs and servers. A server that runs many inputs is followed by exclusiveInputs servers, each of which
// is replaced as soon as an input leaves something on it. Only until then can the model check names and numbers that
// all users of a server share.
const (
	maxInputsPerServer     = 1000
	maxSlowInputsPerServer = 40
	exclusiveInputs        = 4
	checkEvery             = 500 // inputs between two checks of the server's resources
	leakCheckEvery         = 2   // one of leakCheckEvery servers that run many inputs is used to search for memory leaks
)

// fuzzTimeout is the timeout of a reply if there are several workers. The replayer waits longer. A single worker also
// waits longer, because the log of its run must not depend on the load of the machine.
const fuzzTimeout = time.Second

// maxStarting limits the time for which a worker tries to start a server again, if another server has started before.
const maxStarting = 2 * time.Minute

// run fuzzes until a limit of the run is reached. It returns an error if the server cannot be started or reached.
func (w *worker) run(ctx context.Context) error {
	defer w.discard()
	for !w.ended(ctx) {
		if err := w.begin(ctx); err != nil {
			return err
		}
		if n := w.generation / (1 + exclusiveInputs); !w.slow && !w.exclusive && n%leakCheckEvery == leakCheckEvery-1 &&
			w.searchesLeaks() {
			w.searchLeaks(ctx)
		} else {
			w.fuzz(ctx)
		}
		w.end(ctx)
		w.generation++
		if w.f.cfg.Fixed {
			if err := exec.Reachable(ctx, w.t); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchesLeaks reports whether the worker may search for leaks: if the server has a process, and if at most a third of
// the executions of the worker were repetitions in search of leaks. If there are several workers, they do not search
// while a candidate for a leak is examined.
func (w *worker) searchesLeaks() bool {
	return target.Pid(w.t) != 0 && w.repeated <= w.executed/2 && (w.f.cfg.Workers == 1 || !w.f.triage.SearchingLeaks())
}

// ended reports whether the run has ended.
func (w *worker) ended(ctx context.Context) bool { return ctx.Err() != nil || w.f.done() }

// begin takes the next server and prepares the executor, the log and the state of the worker for it.
func (w *worker) begin(ctx context.Context) error {
	f := w.f
	var err error
	if w.t == nil || !f.cfg.Fixed {
		if w.t, err = w.nextServer(ctx); err != nil {
			return err
		}
	}
	f.servers.Add(1)
	steady, timeout := f.cfg.Workers == 1, f.cfg.Timeout
	if !steady {
		timeout = min(timeout, fuzzTimeout)
	}
	if w.x, err = exec.NewExecutor(w.t, w.clock, f.barrier, &f.cfg.Known, timeout); err != nil {
		return err
	}
	w.x.Over, w.x.Steady = f.stopped, steady
	w.log = &input.Log{Protocol: f.cfg.Protocol, Server: w.t.String(), Seed: f.cfg.Seed, Worker: w.id,
		Generation: w.generation, Clock: w.clock, Steady: steady}
	w.exclusive = !w.slow && !f.cfg.Fixed && w.generation%(1+exclusiveInputs) != 0
	w.checked, w.freePrefixes = 0, nil
	if w.noPrefix = !f.cfg.Fixed; !f.cfg.Fixed {
		w.used = 0
	}
	if !f.cfg.Fixed && !w.slow { // there are many slow workers, so their servers are not started ahead
		w.Prepare(ctx)
	}
	u, _ := watch.AtRest(w.t, -1)
	w.descriptors = u.Descriptors
	return nil
}

// nextServer returns the next server after it accepts connections. If servers have started before, a failed start has
// another reason, such as a busy machine, and nextServer tries again with growing delays, for at most maxStarting.
func (w *worker) nextServer(ctx context.Context) (target.Target, error) {
	begin := time.Now()
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		t, err := w.Take(ctx)
		if err == nil {
			alive := make(chan error, 1)
			go func() { alive <- target.Alive(ctx, t) }() // may wait longer than the run for the end of its connection
			select {
			case err = <-alive:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err == nil {
				return t, nil
			}
			target.Kill(t)
		}
		if w.f.servers.Load() == 0 || ctx.Err() != nil || time.Since(begin) > maxStarting {
			return nil, err
		}
		w.f.Logf("a server did not start, which is tried again: %v", err)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
}

// discard stops the current server, and the next server if one was started.
func (w *worker) discard() {
	if w.x != nil {
		w.x.CloseCanary()
	}
	if w.t != nil {
		target.Kill(w.t)
	}
	w.Close()
}

// fuzz runs inputs on one server until the server fails or has run enough inputs.
func (w *worker) fuzz(ctx context.Context) {
	most := maxInputsPerServer
	if w.slow {
		most = maxSlowInputsPerServer
	}
	for n := 0; n < most && !w.ended(ctx); n++ {
		w.yieldToTriage(ctx)
		usable := w.runOne()
		if w.f.cfg.Fixed && usable || w.f.cfg.Sequential {
			w.f.triage.ExamineBetween(ctx)
		}
		if !usable || w.exclusive && !w.noPrefix {
			return
		}
		if !w.f.cfg.Fixed && len(w.log.Entries)-w.checked >= checkEvery && !w.check() {
			return
		}
	}
}

// yieldToTriage pauses the worker while many candidates wait, for at most a third of the time of the run. It does not
// pause the first worker, nor workers that run inputs with pauses.
func (w *worker) yieldToTriage(ctx context.Context) {
	for w.id > 0 && !w.slow && !w.ended(ctx) && w.paused < time.Since(w.f.start)/triageShare && w.f.triage.Busy() {
		begin := time.Now()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		w.paused += time.Since(begin)
	}
}

// triageShare limits the part of the time for which a worker pauses: one divided by triageShare.
const triageShare = 3

// runOne generates an input and runs it. It reports whether the server can be used for another input.
func (w *worker) runOne() bool {
	in, parent, seed := w.input()
	if in == nil || !w.f.claim() {
		return true
	}
	w.executed++
	r := w.execute(in)
	if r.Clean && !r.OrderUncertain && r.Fault == nil {
		w.f.corpus.AddClean(w.f.cfg.Protocol, in)
	}
	if w.f.corpus.Add(in, parent, r.Features) && !r.OrderUncertain {
		r.AddChosen(w.g, in, w.log.Entries[len(w.log.Entries)-1].Prefix == "" || w.f.cfg.Fixed)
	}
	v := r.Fault
	if v == nil && !exec.Ended(w.t) {
		return true
	}
	return w.failed(&triage.Candidate{Fault: exec.Verdict(w.t, v), Seed: seed}, parent)
}

// execute runs an input and adds it to the log.
func (w *worker) execute(in *input.Input) *exec.Record {
	prefix := ""
	if !w.noPrefix {
		prefix = w.prefix()
	}
	r := w.x.Execute(in, prefix)
	w.log.Entries = append(w.log.Entries, input.Entry{Input: in, Prefix: prefix, Events: r.Outcome()})
	if !r.FreesNames(w.f.cfg.Protocol, in) {
		w.noPrefix = false
	} else if prefix != "" {
		w.freePrefixes = append(w.freePrefixes, prefix)
	}
	w.f.msgs.Add(int64(len(r.Events)))
	if in.Waits() > 0 {
		w.f.timed.Add(1)
	}
	return r
}

// prefix returns a prefix for the names of the next input: an unused one, or one of an input that has left nothing on
// the server. It reuses the oldest prefix first, to give the server time to notice that the connections were closed.
func (w *worker) prefix() string {
	if len(w.freePrefixes) > 16 {
		p := w.freePrefixes[0]
		w.freePrefixes = w.freePrefixes[1:]
		return p
	}
	w.used++
	if w.f.cfg.Fixed {
		return w.f.Prefix()
	}
	return input.PrefixOf('A', w.used)
}

// input returns the next input: a seed, a generated input, or a mutation of parent. parent is nil for other inputs. The
// input is nil if it must not be run.
func (w *worker) input() (in *input.Input, parent *input.CorpusEntry, seed bool) {
	f := w.f
	single := f.cfg.Workers == 1
	in = f.corpus.Seed(w.slow)
	if in == nil && single {
		in = f.corpus.Seed(true)
	}
	if in != nil {
		if single && races(in) {
			return nil, nil, false
		}
		return in, nil, true
	}
	every := slowInputEvery
	if f.cfg.Sequential {
		every = 8 // pauses in virtual time take no time
	}
	w.g.Slow = w.slow || single && w.r.IntN(every) == 0
	pick := func() *input.Input {
		if e := f.corpus.SelectEntry(w.r); e != nil {
			return e.Input
		}
		return nil
	}
	parent = f.corpus.SelectEntry(w.r)
	generated := w.r.IntN(3) == 0
	if w.slow { // inputs of the corpus have no timers that a pause could meet, because their coverage must not depend on time
		generated = w.r.IntN(5) > 0
	}
	if parent == nil || generated {
		in, parent = w.g.Generate(), nil
	} else {
		in = w.g.Mutate(parent.Input, pick)
	}
	if w.g.Slow && in.Waits() == 0 {
		w.g.AddPause(in, nil)
	}
	if w.exclusive && len(w.log.Entries) == 0 { // the list contains nothing of other inputs, nor their last connections
		w.g.List(in)
	}
	if len(in.Steps) == 0 || w.listTooLong(in) || single && races(in) {
		return nil, nil, false
	}
	return in, parent, false
}

// races reports whether an input has a time limit of less than 100 ms, so that the replies depend on the scheduling of
// the machine.
func races(in *input.Input) bool {
	const soon = 100 * time.Millisecond
	return slices.ContainsFunc(in.Steps, func(s input.Step) bool {
		if s.Type == nil || !s.Type.Has(codec.TimeLimit) {
			return false
		}
		at := s.Type.At(codec.TimeLimit)
		if at >= len(s.Args) {
			return false
		}
		n, ok := codec.ParseNumber(s.Args[at].Value)
		return ok && n > 0 && n < uint64(soon/s.Type.FieldAt(at).Unit)
	})
}

// slowInputEvery is the average number of generated inputs of a single worker for each input with pauses.
const slowInputEvery = 2000

// listTooLong reports whether to skip an input because it requests a list of all objects on a server at a fixed
// address. These lists grow during the run, so such inputs are skipped more and more often, to keep the speed of the
// run.
func (w *worker) listTooLong(in *input.Input) bool {
	if !w.f.cfg.Fixed || w.used <= maxInputsPerServer || w.r.Uint64N(w.used) < maxInputsPerServer {
		return false
	}
	for i := range in.Steps {
		if t := w.f.cfg.Protocol.TypeNamed(input.Class(w.f.cfg.Protocol, &in.Steps[i])); t != nil && input.ListsAll(t) {
			return true
		}
	}
	return false
}

// failed handles the fault of the last input, which is the candidate without its log. It reports whether the server can
// still be used.
func (w *worker) failed(candidate *triage.Candidate, parent *input.CorpusEntry) bool {
	v := candidate.Fault
	if v == nil || w.f.stopped() {
		return true
	}
	gone := false
	if w.f.cfg.Fixed && v.MaybeCrashed() {
		if u := exec.Unreachable(w.t); u != nil {
			v, gone = u, true
		}
	}
	candidate.Fault, candidate.Log = v, w.log.Until(len(w.log.Entries))
	if !w.f.triage.Add(candidate) {
		w.f.corpus.Failed(parent)
	}
	return !gone && (w.f.cfg.Fixed || !v.MaybeCrashed() && !v.Ends())
}

// kept is the number of leaked file descriptors from which a worker adds a candidate.
const kept = 4

// check checks whether the idle server uses more resources than at its start, and adds a candidate if so. It reports
// whether the server can still be used.
func (w *worker) check() bool {
	from := w.checked
	w.checked = len(w.log.Entries)
	if v := exec.Verdict(w.t, nil); v != nil {
		return w.addCandidate(v, from)
	}
	if target.Pid(w.t) == 0 || w.f.stopped() || from == w.checked {
		return true
	}
	w.x.CloseCanary()
	if watch.Spinning(w.t) {
		return w.addCandidate(exec.CPULoop(), from)
	}
	u, ok := watch.AtRest(w.t, w.descriptors+w.x.MaybeKept)
	if w.descriptors == 0 || !ok {
		w.descriptors = u.Descriptors
	} else if u.Descriptors >= w.descriptors+kept+w.x.MaybeKept {
		return w.addCandidate(&exec.Fault{Oracle: exec.Descriptors, Law: "descriptors grow", Conn: -1, Step: -1}, from)
	}
	return true
}

// addCandidate adds a candidate for a fault that was caused by an entry after the first from entries. It returns false.
func (w *worker) addCandidate(v *exec.Fault, from int) bool {
	w.f.triage.Add(&triage.Candidate{Fault: v, Log: w.log.Until(len(w.log.Entries)), From: from})
	return false
}

// end checks the server's resources and output for the last time, and stops the server. The server may print a report
// when it ends.
func (w *worker) end(ctx context.Context) {
	if w.f.cfg.Fixed {
		return
	}
	t, log := w.t, w.log
	w.t = nil
	w.x.CloseCanary()
	if w.f.cfg.Log != nil {
		w.f.cfg.Log(log)
	}
	if w.exclusive || exec.Ended(t) || w.f.stopped() {
		w.f.ending.Go(func() { target.Kill(t) })
		return
	}
	from := w.checked
	if w.t = t; !w.check() {
		w.t = nil
		w.f.ending.Go(func() { target.Kill(t) })
		return
	}
	w.t = nil
	w.f.ending.Go(func() {
		exec.Stop(ctx, t)
		if v := exec.Verdict(t, nil); v != nil && !w.f.stopped() {
			w.f.triage.Add(&triage.Candidate{Fault: v, Log: log, From: from})
		}
	})
}

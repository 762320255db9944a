package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// run is the state of one call of [Runner.Run].
type run struct {
	Runner
	ctx      context.Context
	halt     context.CancelCauseFunc
	suite    *Suite
	board    resultOrder
	attempts []attempt
	begun    time.Time
	crashes  sync.Map     // *crashKind, by what equal crashes have in common
	ran      atomic.Bool  // at least one case has reached the target
	halted   atomic.Bool  // a case has the verdict Unreachable, which ends the run
	answered atomic.Bool  // the target has sent something to a case
	ignored  atomic.Int64 // number of cases to which the target has sent nothing

	noReply atomic.Pointer[string] // the reason why the run ended if the target sends nothing at all
}

// Run runs all cases of a suite and returns their results in the order of the suite. If done is not nil, Run calls it
// for each case in that order, when the case and all previous cases have ended. Each of the cases that run at the same
// time has a server of its own, if Start can start several. If a server crashes or hangs, Run restarts it and runs
// the case that noticed this, and those that had just ended on the same server, again, each alone on a new server. Run
// calls done again if such a case had passed before.
//
// If a case misses a time limit while others run, Run repeats the case alone, after all others, and uses the second
// result, because a server may reply too late on a busy machine. Run does not repeat a case if another one has failed
// twice in the same way, an instance of the same case or one with a message that the target does not implement. It
// stops repeating cases after Parallel repeated cases in a row have failed.
//
// If ctx is done, the time budget is used up or the target cannot be reached, Run stops. In the last case, one case
// gets the verdict Unreachable. All cases without a result get the verdict NotRun.
func (r *Runner) Run(ctx context.Context, s *Suite, done func(Result)) []Result {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	if r.ways == nil {
		r.ways = newSetupWays(s.Setups)
	}
	if r.kept == nil {
		r.kept = new(atomic.Int64)
	}
	x := &run{
		Runner: *r, ctx: ctx, halt: halt, suite: s,
		attempts: make([]attempt, len(s.Cases)), begun: time.Now(),
		board: resultOrder{results: make([]Result, len(s.Cases)), ended: make([]bool, len(s.Cases)), done: done},
	}
	x.same = newInference(s, r.InferAfter)
	if r.InferAfter > 0 {
		x.silence = &silence{limit: shortTimeout, number: map[[2]*codec.Type]int{}}
	}
	if x.Parallel > 1 {
		x.large = make(chan struct{}, 1)
	}
	switch {
	case x.delay != nil:
	case r.Virtual:
		x.delay = new(lateness.Meter)
	default:
		measured, stop := context.WithCancel(ctx)
		defer stop()
		x.delay = lateness.Measure(measured)
	}
	first := &worker{Runner: &x.Runner, ctx: ctx, elusive: x.isElusive}
	defer first.stop()
	shared := 0 // cases that use the server of a worker
	for _, c := range s.Cases {
		if !x.ownServer(c) {
			shared++
		}
	}
	if note := x.otherProtocol(first); note != "" {
		for i, c := range s.Cases {
			res := Result{Case: c}.notRun(ctx)
			if res.Note = note; i == 0 {
				res.Verdict = verdict.Unreachable
			}
			x.board.end(i, res)
		}
		return x.board.results
	}
	workers := max(1, r.Parallel)
	if first.err != nil && shared > 0 {
		workers = 1 // the run ends at the first case
	}
	var wg sync.WaitGroup
	notStarted := make(chan error, workers)
	for n := range workers {
		w := first
		if n > 0 {
			w = &worker{Runner: &x.Runner, ctx: ctx, elusive: x.isElusive}
		}
		wg.Go(func() {
			if n > 0 && n < shared {
				if _, err := w.start(); err != nil {
					notStarted <- err // perhaps only one server can run at a time
					return
				}
			}
			x.work(w)
			if w != first {
				w.stop()
			}
		})
	}
	wg.Wait()
	if n := len(notStarted); n > 0 && x.Note != nil && ctx.Err() == nil {
		x.Note(fmt.Sprintf("%d of %d servers did not start, so fewer cases ran at the same time: %v",
			n, workers, <-notStarted))
	}
	x.repeatLate(first)
	x.runRefuted(first)
	x.endSilent()
	if r.InferAfter > 0 {
		x.same.explain(x.board.results)
	}
	r.Profile.unexpected(x.board.results, func(i int) {
		if done != nil {
			done(x.board.results[i])
		}
	})
	return x.board.results
}

// ownServer reports whether the case gets a server of its own.
func (r *Runner) ownServer(c *Case) bool { return c.OwnServer || r.NewServerPerCase || c.observed() }

// work runs cases on the worker until no case is left.
func (x *run) work(w *worker) {
	for {
		i, why := x.same.next()
		if i < 0 {
			break
		}
		v := verdict.Inferred
		if why == "" && x.overtime() {
			why, v = fmt.Sprintf("the time budget of %v was used up", x.Budget), verdict.NotRun
		}
		if why != "" && x.ctx.Err() == nil {
			x.attempts[i].Result = Result{Case: x.suite.Cases[i], Verdict: v, Note: why}
			x.board.end(i, x.attempts[i].Result)
			continue
		}
		x.runAt(w, i)
		a := &x.attempts[i]
		if x.same.ended(a); !x.mustRepeat(a) {
			x.board.end(i, x.conclude(a.Result))
		}
	}
	if w.server != nil {
		if err := target.Died(w.server); err != nil {
			x.findCause(w, -1, newCrash(err))
		}
	}
}

// overtime reports whether the time budget of the run is used up.
func (x *run) overtime() bool { return x.Budget > 0 && time.Since(x.begun) > x.Budget }

// runAt runs a case on the worker and stores the attempt. If the server of the worker crashes or hangs, runAt finds the
// case that is the cause.
func (x *run) runAt(w *worker, i int) {
	if err := w.ended(); err != nil {
		x.findCause(w, -1, newCrash(err))
	}
	c := x.suite.Cases[i]
	a := w.runCase(c)
	if a.Verdict == verdict.Unreachable && a.shared && x.ran.Load() {
		a = w.connectAgain(c)
	}
	if !a.ignored() {
		if a.Verdict != verdict.NotRun && a.Verdict != verdict.Skipped {
			x.answered.Store(true)
		}
	} else if n := x.ignored.Add(1); n >= maxIgnored && x.barrier == nil && !x.answered.Load() {
		a.Result = Result{Case: c, Verdict: verdict.Unreachable}
		a.Note = fmt.Sprintf("%s: it accepts connections, but %d cases received nothing from it", w.server, n)
		x.noReply.Store(&a.Note)
	}
	if a.shared && a.Verdict != verdict.NotRun {
		w.note(i, a.from)
	}
	x.attempts[i] = a
	switch {
	case a.Verdict.Stops() && a.shared && w.server.Done() != nil:
		x.findCause(w, i, a.Crash)
	case a.Verdict == verdict.Unreachable && (a.shared || !x.ran.Load()), a.Verdict == verdict.Hung && a.shared:
		if x.halt(errUnreachable); !x.halted.CompareAndSwap(false, true) {
			x.attempts[i].Result = a.notRun(x.ctx)
		}
		return
	}
	if v := x.attempts[i].Verdict; v != verdict.Skipped && v != verdict.NotRun && v != verdict.Unreachable {
		x.ran.Store(true)
	}
	if a := &x.attempts[i]; a.Verdict == verdict.Failed && a.Play != nil && a.Play.Failure != nil {
		x.silence.add(a.Performed(), a.Play.Failure)
	}
}

// mustRepeat reports whether a case must run again because time limits may have made it fail while other cases ran.
func (r *Runner) mustRepeat(a *attempt) bool {
	return a.late && r.Parallel > 1 && r.Profile.apply(a.Result).Verdict == a.Verdict
}

// repeatLate repeats the cases that time limits may have made fail.
func (x *run) repeatLate(w *worker) {
	confirmed := 0             // number of consecutive repeated cases that have failed again
	again := map[string]bool{} // failures that were seen again, by the case without parameters, or by the missing message
	for i := range x.attempts {
		a := x.attempts[i]
		if x.board.ended[i] {
			continue
		}
		failure := a.slowFailure()
		same := fmt.Sprint(a.Case.Family, " ", failure.key)
		if t := lastRequest(a.Case, a.Play).kind; t != nil && x.same.lacks(t) != "" {
			same = t.Name
		}
		if confirmed < x.Parallel && !again[same] && x.ctx.Err() == nil && !x.overtime() {
			x.runAt(w, i)
			second := &x.attempts[i]
			if a.Verdict != verdict.Inconclusive && second.late {
				second.Result = a.Result
			}
			if confirmed++; !second.late {
				confirmed = 0
			} else if failure.key != "" {
				again[same] = true
			}
		}
		if last := &x.attempts[i]; last.late && last.Verdict == verdict.Failed && x.ctx.Err() != nil {
			last.Verdict = verdict.Inconclusive
			last.Note = "the run ended before the case could be repeated alone: " + last.Note
		}
		x.board.end(i, x.conclude(x.attempts[i].Result))
	}
}

// runRefuted runs the cases that were inferred to fail if an instance that failed has passed when it was repeated, or
// if the target implements the message that seemed to be missing.
func (x *run) runRefuted(w *worker) {
	refuted := map[string]bool{} // cases, without parameters, of which an instance passed, and none crashed the target
	for i := range x.board.results {
		switch c, v := x.suite.Cases[i], x.board.results[i].Verdict; {
		case v.Passes():
			if _, known := refuted[c.Family]; !known {
				refuted[c.Family] = true
			}
		case v.Stops():
			refuted[c.Family] = false
		}
	}
	for i, c := range x.suite.Cases {
		res := &x.board.results[i]
		if res.Verdict != verdict.Inferred || x.ctx.Err() != nil || x.overtime() {
			continue
		}
		if res.lacking != nil && x.same.lacks(res.lacking) == "" || res.lacking == nil && refuted[c.Family] {
			x.runAt(w, i)
			x.board.end(i, x.conclude(x.attempts[i].Result))
		}
	}
}

// otherProtocol records whether the worker's server replies to a barrier request. If the target is a server of another
// protocol, or expects TLS, otherProtocol returns a sentence about that, and otherwise "".
func (x *run) otherProtocol(w *worker) string {
	if x.NewServerPerCase || !slices.ContainsFunc(x.suite.Cases,
		func(c *Case) bool { return !c.OwnServer && c.Program == "" }) {
		return ""
	}
	t, err := w.start()
	if err != nil {
		return ""
	}
	script, took, other := identify(x.ctx, x.suite.Protocol, t, cmp.Or(x.Timeout, identifyTimeout))
	if x.silence != nil {
		x.silence.limit = max(x.silence.limit, 4*took)
	}
	if x.barrier = script; other == "" {
		return ""
	}
	return fmt.Sprintf("%s as a server of %s: %s", t, x.suite.Protocol.Title, other)
}

// resultOrder receives results in any order and passes them to done in the order of the suite.
type resultOrder struct {
	mu       sync.Mutex
	results  []Result
	ended    []bool
	reported int
	done     func(Result)
}

func (b *resultOrder) end(i int, r Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = r
	if i < b.reported && b.done != nil {
		b.done(r)
	}
	for b.ended[i] = true; b.reported < len(b.ended) && b.ended[b.reported]; b.reported++ {
		if b.done != nil {
			b.done(b.results[b.reported])
		}
	}
}

// maxIgnored is the number of cases that a target must ignore to end the run, if it has also ignored the barrier
// requests and sent nothing at all.
const maxIgnored = 8

// ignored reports whether the case waited for the server of a worker and received nothing.
func (a *attempt) ignored() bool {
	p := a.Play
	if p == nil {
		_, p = a.Conversation()
	}
	return a.shared && p != nil && p.Failure != nil && p.Failure.Waited > 0 &&
		!slices.ContainsFunc(p.Events, func(e play.Event) bool { return e.From == codec.Server && len(e.Frame.Raw) > 0 })
}

// endSilent gives all cases that ran the verdict Unreachable if the run ended because the target sends nothing, and it
// has sent nothing to the cases that were running then.
func (x *run) endSilent() {
	note := x.noReply.Load()
	if note == nil || x.answered.Load() {
		return
	}
	for i := range x.board.results {
		if res := &x.board.results[i]; res.Verdict != verdict.NotRun && res.Verdict != verdict.Skipped {
			x.board.end(i, Result{Case: res.Case, Verdict: verdict.Unreachable, Note: *note})
		}
	}
}

// errUnreachable is the cancellation cause of a run whose target cannot be reached.
var errUnreachable = errors.New("the target could not be reached")

// notRun returns the result of a case that did not run because the run ended.
func (r Result) notRun(ctx context.Context) Result {
	r.Verdict, r.Note, r.Play = verdict.NotRun, "the run was interrupted", nil
	if cause := context.Cause(ctx); cause == errUnreachable || cause == ErrFirstFailure {
		r.Note = cause.Error()
	}
	return r
}

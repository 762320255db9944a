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
	session
	ctx      context.Context
	halt     context.CancelCauseFunc
	suite    *Suite
	order    resultOrder
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
	ru := &run{
		session: session{Runner: *r, kept: new(atomic.Int64), same: newInference(s, r.InferAfter)},
		ctx:     ctx, halt: halt, suite: s,
		attempts: make([]attempt, len(s.Cases)), begun: time.Now(),
		order: resultOrder{results: make([]Result, len(s.Cases)), ended: make([]bool, len(s.Cases)), done: done, early: r.Ended},
	}
	if r.InferAfter > 0 {
		ru.silence = &silence{limit: shortTimeout, number: map[[2]*codec.Type]int{}}
	}
	if ru.Parallel > 1 {
		ru.large = make(chan struct{}, 1)
	}
	if r.Virtual {
		var last atomic.Uint64
		ru.delay, ru.unique = new(lateness.Meter), func(name string) string { return fmt.Sprint(name, "-0-", last.Add(1)) }
	} else {
		measured, stop := context.WithCancel(ctx)
		defer stop()
		ru.delay, ru.unique = lateness.Measure(measured), play.UniqueName
	}
	first := &worker{session: &ru.session, ctx: ctx, elusive: ru.isElusive}
	defer first.stop()
	shared := 0 // cases that use the server of a worker
	for _, c := range s.Cases {
		if !ru.ownServer(c) {
			shared++
		}
	}
	if note := ru.otherProtocol(first); note != "" {
		for i, c := range s.Cases {
			res := Result{Case: c}.notRun(ctx)
			if res.Note = note; i == 0 {
				res.Verdict = verdict.Unreachable
			}
			ru.order.end(i, res)
		}
		return ru.order.results
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
			w = &worker{session: &ru.session, ctx: ctx, elusive: ru.isElusive}
		}
		wg.Go(func() {
			if n > 0 && n < shared {
				if _, err := w.start(); err != nil {
					notStarted <- err // perhaps only one server can run at a time
					return
				}
			}
			ru.work(w)
			if w != first {
				w.stop()
			}
		})
	}
	wg.Wait()
	if n := len(notStarted); n > 0 && ru.Note != nil && ctx.Err() == nil {
		ru.Note(fmt.Sprintf("%d of %d servers did not start, so fewer cases ran at the same time: %v",
			n, workers, <-notStarted))
	}
	ru.repeatLate(first)
	ru.runRefuted(first)
	ru.endSilent()
	if r.InferAfter > 0 {
		ru.same.explain(ru.order.results)
	}
	r.Profile.unexpected(ru.order.results, func(i int) {
		if done != nil {
			done(ru.order.results[i])
		}
	})
	return ru.order.results
}

// ownServer reports whether the case gets a server of its own.
func (r *Runner) ownServer(c *Case) bool { return c.OwnServer || r.NewServerPerCase || c.observed() }

// work runs cases on the worker until no case is left.
func (ru *run) work(w *worker) {
	for {
		i, why := ru.same.next()
		if i < 0 {
			break
		}
		v := verdict.Inferred
		if why == "" && ru.overtime() {
			why, v = fmt.Sprintf("the time budget of %v was used up", ru.Budget), verdict.NotRun
		}
		if why != "" && ru.ctx.Err() == nil {
			ru.attempts[i].Result = Result{Case: ru.suite.Cases[i], Verdict: v, Note: why}
			ru.order.end(i, ru.attempts[i].Result)
			continue
		}
		ru.runAt(w, i)
		a := &ru.attempts[i]
		if ru.same.ended(a); !ru.mustRepeat(a) {
			ru.order.end(i, ru.conclude(a.Result))
		}
	}
	if w.server != nil {
		if err := target.Died(w.server); err != nil {
			ru.findCause(w, -1, newCrash(err))
		}
	}
}

// overtime reports whether the time budget of the run is used up.
func (ru *run) overtime() bool { return ru.Budget > 0 && time.Since(ru.begun) > ru.Budget }

// runAt runs a case on the worker and stores the attempt. If the server of the worker crashes or hangs, runAt finds the
// case that is the cause.
func (ru *run) runAt(w *worker, i int) {
	if err := w.ended(); err != nil {
		ru.findCause(w, -1, newCrash(err))
	}
	c := ru.suite.Cases[i]
	a := w.runCase(c)
	if a.Verdict == verdict.Unreachable && a.shared && ru.ran.Load() {
		a = w.connectAgain(c)
	}
	if !a.ignored() {
		if a.Verdict != verdict.NotRun && a.Verdict != verdict.Skipped {
			ru.answered.Store(true)
		}
	} else if n := ru.ignored.Add(1); n >= maxIgnored && ru.barrier == nil && !ru.answered.Load() {
		a.Result = Result{Case: c, Verdict: verdict.Unreachable}
		a.Note = fmt.Sprintf("%s: it accepts connections, but %d cases received nothing from it", w.server, n)
		ru.noReply.Store(&a.Note)
	}
	if a.shared && a.Verdict != verdict.NotRun {
		w.note(i, a.from)
	}
	ru.attempts[i] = a
	switch {
	case a.Verdict.Stops() && a.shared && w.server.Done() != nil:
		ru.findCause(w, i, a.Crash)
	case a.Verdict == verdict.Unreachable && (a.shared || !ru.ran.Load()), a.Verdict == verdict.Hung && a.shared:
		if ru.halt(errUnreachable); !ru.halted.CompareAndSwap(false, true) {
			ru.attempts[i].Result = a.notRun(ru.ctx)
		}
		return
	}
	if v := ru.attempts[i].Verdict; v != verdict.Skipped && v != verdict.NotRun && v != verdict.Unreachable {
		ru.ran.Store(true)
	}
	if a := &ru.attempts[i]; a.Verdict == verdict.Failed && a.Play != nil && a.Play.Failure != nil {
		ru.silence.add(a.Performed(), a.Play.Failure)
	}
}

// mustRepeat reports whether a case must run again because time limits may have made it fail while other cases ran.
func (r *Runner) mustRepeat(a *attempt) bool {
	return a.late && r.Parallel > 1 && r.Profile.apply(a.Result).Verdict == a.Verdict
}

// repeatLate repeats the cases that time limits may have made fail.
func (ru *run) repeatLate(w *worker) {
	confirmed := 0             // number of consecutive repeated cases that have failed again
	again := map[string]bool{} // failures that were seen again, by the case without parameters, or by the missing message
	for i := range ru.attempts {
		a := ru.attempts[i]
		if ru.order.ended[i] {
			continue
		}
		failure := a.slowFailure()
		same := fmt.Sprint(a.Case.Family, " ", failure.key)
		if t := lastRequest(a.Case, a.Play).kind; t != nil && ru.same.lacks(t) != "" {
			same = t.Name
		}
		if confirmed < ru.Parallel && !again[same] && ru.ctx.Err() == nil && !ru.overtime() {
			ru.runAt(w, i)
			second := &ru.attempts[i]
			if a.Verdict != verdict.Inconclusive && second.late {
				second.Result = a.Result
			}
			if confirmed++; !second.late {
				confirmed = 0
			} else if failure.key != "" {
				again[same] = true
			}
		}
		if last := &ru.attempts[i]; last.late && last.Verdict == verdict.Failed && ru.ctx.Err() != nil {
			last.Verdict = verdict.Inconclusive
			last.Note = "the run ended before the case could be repeated alone: " + last.Note
		}
		ru.order.end(i, ru.conclude(ru.attempts[i].Result))
	}
}

// runRefuted runs the cases that were inferred to fail if an instance that failed has passed when it was repeated, or
// if the target implements the message that seemed to be missing.
func (ru *run) runRefuted(w *worker) {
	refuted := map[string]bool{} // cases, without parameters, of which an instance passed, and none crashed the target
	for i := range ru.order.results {
		switch c, v := ru.suite.Cases[i], ru.order.results[i].Verdict; {
		case v.Passes():
			if _, known := refuted[c.Family]; !known {
				refuted[c.Family] = true
			}
		case v.Stops():
			refuted[c.Family] = false
		}
	}
	for i, c := range ru.suite.Cases {
		res := &ru.order.results[i]
		if res.Verdict != verdict.Inferred || ru.ctx.Err() != nil || ru.overtime() {
			continue
		}
		if res.lacking != nil && ru.same.lacks(res.lacking) == "" || res.lacking == nil && refuted[c.Family] {
			ru.runAt(w, i)
			ru.order.end(i, ru.conclude(ru.attempts[i].Result))
		}
	}
}

// otherProtocol records whether the worker's server replies to a barrier request. If the target is a server of another
// protocol, or expects TLS, otherProtocol returns a sentence about that, and otherwise "".
func (ru *run) otherProtocol(w *worker) string {
	if ru.NewServerPerCase || !slices.ContainsFunc(ru.suite.Cases,
		func(c *Case) bool { return !c.OwnServer && c.Program == "" }) {
		return ""
	}
	t, err := w.start()
	if err != nil {
		return ""
	}
	script, took, other := identify(ru.ctx, ru.suite.Protocol, t, cmp.Or(ru.Timeout, identifyTimeout))
	if ru.silence != nil {
		ru.silence.limit = max(ru.silence.limit, 4*took)
	}
	if ru.barrier = script; other == "" {
		return ""
	}
	return fmt.Sprintf("%s as a server of %s: %s", t, ru.suite.Protocol.Title, other)
}

// resultOrder receives results in any order and passes them to done in the order of the suite.
type resultOrder struct {
	mu       sync.Mutex
	results  []Result
	ended    []bool
	reported int
	done     func(Result)
	early    func(Result) // called with each result at once; may be nil
}

// end records the result of the case with the index i and passes on all results that are now complete in the order of
// the suite. A second result for a case, which replaces the first, is passed on at once.
func (o *resultOrder) end(i int, r Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results[i] = r
	if o.early != nil {
		o.early(r)
	}
	if i < o.reported && o.done != nil {
		o.done(r)
	}
	for o.ended[i] = true; o.reported < len(o.ended) && o.ended[o.reported]; o.reported++ {
		if o.done != nil {
			o.done(o.results[o.reported])
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
func (ru *run) endSilent() {
	note := ru.noReply.Load()
	if note == nil || ru.answered.Load() {
		return
	}
	for i := range ru.order.results {
		if res := &ru.order.results[i]; res.Verdict != verdict.NotRun && res.Verdict != verdict.Skipped {
			ru.order.end(i, Result{Case: res.Case, Verdict: verdict.Unreachable, Note: *note})
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

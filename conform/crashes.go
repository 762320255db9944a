package conform

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/internal/target"
	"jobwire/play"
)

// sharedTarget is the target that most cases use together. It is started at the first use, and again after it has crashed.
type sharedTarget struct {
	start  func(context.Context) (target.Target, error)
	ctx    context.Context
	mu     sync.Mutex
	t      target.Target
	err    error
	deaths []death                    // of the generations before the current one
	begun  time.Time                  // when the current generation was started
	ended  *atomic.Pointer[time.Time] // when the current generation ended; the value is nil while it runs
}

// death is the end of a generation of the shared target: the time from a start of the target to its end.
type death struct {
	from time.Time // when the generation was started
	at   time.Time // when it ended, or, if it hung, when a case noticed that
	hung bool      // it did not reply to any request, and was restarted
	err  error     // how it crashed; nil if it hung
}

// get returns the target and the number of its generation.
func (s *sharedTarget) get() (target.Target, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, -1, s.err
	case s.t == nil:
		s.begun = time.Now()
		s.t, s.err = s.start(s.ctx)
		s.watch()
	case s.hasEnded():
		s.deaths = append(s.deaths, death{from: s.begun, at: s.endedAt(), err: s.t.Err()})
		s.begun = time.Now()
		s.err = s.t.Restart()
		s.watch()
	}
	return s.t, len(s.deaths), s.err
}

// watch records when the generation that starts now ends.
func (s *sharedTarget) watch() {
	ended := &atomic.Pointer[time.Time]{}
	s.ended = ended
	if s.err != nil || s.t.Done() == nil {
		return
	}
	done := s.t.Done()
	go func() {
		select {
		case <-done:
			now := time.Now()
			ended.Store(&now)
		case <-s.ctx.Done():
		}
	}()
}

// endedAt returns when the generation ended, or the current time if that is unknown.
func (s *sharedTarget) endedAt() time.Time {
	if at := s.ended.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (s *sharedTarget) hasEnded() bool {
	select {
	case <-s.t.Done(): // nil, and therefore never ready, if the end of the target cannot be observed
		return true
	default:
		return false
	}
}

// restart restarts the target, which hangs, unless another case has already done so. It returns false if the target cannot
// be restarted.
func (s *sharedTarget) restart(generation int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.deaths) != generation:
		return true
	case s.t.Done() == nil:
		return false
	}
	s.deaths = append(s.deaths, death{from: s.begun, at: time.Now(), hung: true})
	s.begun = time.Now()
	s.err = s.t.Restart()
	s.watch()
	return true
}

// generation returns the number of the current generation.
func (s *sharedTarget) generation() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.deaths)
}

// end returns the error with which a generation ended, or nil.
func (s *sharedTarget) end(generation int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths[generation].err
}

// crashWindow is how long before the observation of a crash a case may have ended and still be its cause.
const crashWindow = 500 * time.Millisecond

// findCrashingCases finds the cases in which a target crashed or hung. It runs the cases again that ran at that time or had
// just ended, with a target for each: first the cases that noticed the crash, and the others only if none of these was the
// cause. It returns the results that change, and those that were not final yet.
func (r *Runner) findCrashingCases(ctx context.Context, attempts []attempt, shared *sharedTarget, lag *schedulingDelay) map[int]Result {
	if shared.t != nil {
		if err := target.Died(shared.t); err != nil {
			shared.deaths = append(shared.deaths, death{from: shared.begun, at: shared.endedAt(), err: err})
		}
	}
	final := map[int]Result{}
	alone := *r
	alone.NewServerPerCase, alone.checkTarget = true, true
	for generation, died := range shared.deaths {
		since := died.at.Add(-crashWindow)
		if died.hung { // the case that noticed the hang has waited for a reply, and then for the reply to another request
			since = since.Add(-2 * cmp.Or(r.Timeout, play.DefaultTimeout))
		}
		rerun := map[int]attempt{}
		var mu sync.Mutex
		runAgain := func(which func(a *attempt) bool) (blamed bool) {
			var wg sync.WaitGroup
			free := make(chan struct{}, max(1, r.Parallel))
			for i := range attempts {
				a := &attempts[i]
				// A case that got the target before the restart may have connected to it after the restart.
				if a.generation < 0 || a.generation > generation || a.to.Before(since) || a.to.Before(died.from) || !which(a) {
					continue
				}
				free <- struct{}{}
				wg.Go(func() {
					again := *a // unchanged if the target cannot be started again
					switch {
					case ctx.Err() == nil:
						again = alone.runCase(ctx, a.Case, shared, lag)
					case context.Cause(ctx) != errUnreachable:
						again.Result = a.notRun(ctx)
					}
					mu.Lock()
					rerun[i] = again
					blamed = blamed || again.Verdict == Crashed || again.Verdict == Hung
					mu.Unlock()
					<-free
				})
			}
			wg.Wait()
			return blamed
		}
		// Most often a case that noticed the crash is its cause, and the cases that ended before need not run
		// again.
		if !runAgain((*attempt).maybeElsewhere) || died.hung {
			runAgain(func(a *attempt) bool { return !a.maybeElsewhere() })
		}
		blamed, last := false, -1
		for i := range attempts {
			a := &attempts[i]
			again, ok := rerun[i]
			if !ok {
				continue
			}
			cause := again.Verdict == Crashed || again.Verdict == Hung
			blamed = blamed || cause
			if cause || a.maybeElsewhere() || died.hung {
				final[i] = again.Result
			}
			if last < 0 || r.likelierCause(a, &attempts[last]) {
				last = i
			}
		}
		if !blamed && !died.hung && last >= 0 {
			a := attempts[last].Result
			a.Verdict, a.Crash = Crashed, newCrash(died.err)
			a.Note = "the target crashed during this case or a case that ran at the same time, but no case makes the target crash when the case runs alone: " + a.Crash.String()
			final[last] = a
		}
	}
	return final
}

// likelierCause reports whether case a is more likely than case b to have crashed the target, if neither does when it runs
// alone: because the profile lists only a as a case that may crash the target, or otherwise because only a noticed the
// crash, or because a ended later.
func (r *Runner) likelierCause(a, b *attempt) bool {
	if x, y := r.Profile.mayCrash(a.Case), r.Profile.mayCrash(b.Case); x != y {
		return x
	}
	return a.maybeElsewhere() && !b.maybeElsewhere() || a.to.After(b.to)
}

// Crash is how a target ended during a case.
type Crash struct {
	Exit   string // "signal: aborted", "exit status 1"; "" if the target is not a program
	Fault  string // the line of the output that names the fault: a panic, a failed assertion, the summary of a sanitizer; or ""
	Output string // the head of the crash report that the target printed, or else its last lines
}

// newCrash returns how a target ended, according to its error.
func newCrash(err error) *Crash {
	c := &Crash{}
	var e *target.Error
	switch {
	case errors.As(err, &e):
		c.Exit, c.Fault = e.Exit, target.Fault(e.Output)
		_, c.Output = target.Excerpt(e.Output)
		if e.Err != nil && c.Fault == "" {
			c.Fault = e.Err.Error()
		}
	case err != nil:
		c.Fault = err.Error()
	}
	return c
}

// title describes in one line how the target ended.
func (c *Crash) title() string {
	s := "the target crashed"
	if c.Fault != "" {
		s += ": " + c.Fault
	}
	if c.Exit != "" {
		s += " (" + c.Exit + ")"
	}
	return s
}

// String returns the title with the beginning of the target's output.
func (c *Crash) String() string {
	if c.Output == "" || strings.TrimSpace(c.Output) == c.Fault {
		return c.title()
	}
	return c.title() + "; output:\n" + c.Output
}

func (s *sharedTarget) stop() {
	if s.t != nil {
		s.t.Stop()
	}
}

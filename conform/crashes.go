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

// sharedTarget is the target that most cases use at the same time. It is started when a case first needs it, and
// restarted after a crash. The time from one start to the end of the target is a generation; generations are numbered
// from 0.
type sharedTarget struct {
	start  func(context.Context) (target.Target, error)
	ctx    context.Context
	mu     sync.Mutex
	t      target.Target
	err    error
	deaths []death                    // ends of the generations before the current one
	begun  time.Time                  // start of the current generation
	ended  *atomic.Pointer[time.Time] // end of the current generation; the value is nil while the target runs
}

// death is the end of a generation of the shared target: a crash or a hang.
type death struct {
	from time.Time // start of the generation
	at   time.Time // time of the crash, or time at which a case noticed the hang
	hung bool      // the target did not reply to any request, and was restarted
	err  error     // description of the crash; nil if the target hung
}

// get returns the target and the number of its current generation. It starts the target if necessary.
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

// watch records the time at which the generation that begins now ends.
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

// endedAt returns the time at which the current generation ended, or the current time if the end was not recorded.
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

// restart restarts the target because it hangs in the given generation. It does nothing if another case has already
// restarted the target. It returns false if the target cannot be restarted.
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

// end returns the error with which a generation crashed, or nil if it hung.
func (s *sharedTarget) end(generation int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths[generation].err
}

// crashWindow limits the time between the end of a case and the detection of a crash that the case has caused.
const crashWindow = 500 * time.Millisecond

// findCrashingCases finds the cases that crashed or hung the shared target. For each crash, it runs the cases again
// that were running at that time or had just ended, each with a target of its own: first the cases that noticed the
// crash and, if none of them is the cause, the others. It returns the results of cases that have changed or were not
// final, by index.
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
		if died.hung { // the case that noticed the hang has waited for two replies until their timeouts
			since = since.Add(-2 * cmp.Or(r.Timeout, play.DefaultTimeout))
		}
		rerun := map[int]attempt{}
		var mu sync.Mutex
		runAgain := func(which func(a *attempt) bool) (blamed bool) {
			var wg sync.WaitGroup
			free := make(chan struct{}, max(1, r.Parallel))
			for i := range attempts {
				a := &attempts[i]
				// A case may have received the target before a restart and connected to it after the restart.
				if a.generation < 0 || a.generation > generation || a.to.Before(since) || a.to.Before(died.from) || !which(a) {
					continue
				}
				free <- struct{}{}
				wg.Go(func() {
					again := *a // keep the result if the target cannot be started again
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
		// Usually a case that noticed the crash is its cause. Then the cases that ended before need not run again.
		if !runAgain((*attempt).sharedTargetFailed) || died.hung {
			runAgain(func(a *attempt) bool { return !a.sharedTargetFailed() })
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
			if cause || a.sharedTargetFailed() || died.hung {
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

// likelierCause reports whether case a is a likelier cause of a crash than case b, if neither crashes the target when
// it runs alone. The criteria are, in this order: the profile lists the case as one that may crash the target, the case
// noticed the crash, the case ended later.
func (r *Runner) likelierCause(a, b *attempt) bool {
	if x, y := r.Profile.mayCrash(a.Case), r.Profile.mayCrash(b.Case); x != y {
		return x
	}
	return a.sharedTargetFailed() && !b.sharedTargetFailed() || a.to.After(b.to)
}

// Crash describes the end of the target's process during a case.
type Crash struct {
	Exit   string // text such as "signal: aborted" or "exit status 1"; "" if the target is not a process
	Fault  string // line of the output with the panic, the failed assertion or the summary of a sanitizer; or ""
	Output string // beginning of the crash report in the output or, if there is none, the last lines of the output
}

// newCrash returns the description of a crash from the error of the target.
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

// title returns the description on one line.
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

// String returns the description with a part of the target's output.
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

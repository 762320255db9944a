package conform

import (
	"cmp"
	"context"
	"sync"
	"time"

	"jobwire/internal/target"
	"jobwire/play"
)

// shared is the target that most cases use together. It is started when first
// needed, and again when it has died.
type shared struct {
	start  func(context.Context) (target.Target, error)
	ctx    context.Context
	mu     sync.Mutex
	t      target.Target
	err    error
	deaths []death // of the lives before the present one
}

// death is the end of a life of the shared target.
type death struct {
	at   time.Time // when it was noticed
	hung bool      // it answered nothing, and was restarted
}

// get returns the target and which life of it this is.
func (s *shared) get() (target.Target, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, -1, s.err
	case s.t == nil:
		s.t, s.err = s.start(s.ctx)
	case s.ended():
		s.deaths = append(s.deaths, death{at: time.Now()})
		s.err = s.t.Restart()
	}
	return s.t, len(s.deaths), s.err
}

func (s *shared) ended() bool {
	select {
	case <-s.t.Done(): // nil, and never ready, where death cannot be seen
		return true
	default:
		return false
	}
}

// restart restarts the target, which hangs, unless another case has done so. It reports false if that is not
// possible.
func (s *shared) restart(life int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.deaths) != life:
		return true
	case s.t.Done() == nil:
		return false
	}
	s.deaths = append(s.deaths, death{time.Now(), true})
	s.err = s.t.Restart()
	return true
}

// life is the number of the present life.
func (s *shared) life() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.deaths)
}

// lookBack is how long before a death was seen a case may have ended that caused it.
const lookBack = 500 * time.Millisecond

// inquire finds the cases that a target crashed or hung in. The cases that ran when it
// did, or had just ended, are run again with a target for each. It returns the results
// that this changes, and those that were still open.
func (r *Runner) inquire(ctx context.Context, attempts []attempt, shared *shared, lag *lagMeter) map[int]Result {
	if shared.t != nil && target.Died(shared.t) != nil {
		shared.deaths = append(shared.deaths, death{at: time.Now()})
	}
	final := map[int]Result{}
	alone := *r
	alone.Fresh, alone.autopsy = true, true
	for life, died := range shared.deaths {
		since := died.at.Add(-lookBack)
		if died.hung { // the case that noticed it had waited for a reply, and then for another
			since = since.Add(-2 * cmp.Or(r.Timeout, play.DefaultTimeout))
		}
		rerun := map[int]attempt{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		free := make(chan struct{}, max(1, r.Parallel))
		for i := range attempts {
			a := &attempts[i]
			if a.life != life || a.to.Before(since) {
				continue
			}
			free <- struct{}{}
			wg.Go(func() {
				again := *a // of a target that cannot be started again
				switch {
				case ctx.Err() == nil:
					again = alone.judge(ctx, a.Case, shared, lag)
				case context.Cause(ctx) != errLost:
					again.Result = a.notRun(ctx)
				}
				mu.Lock()
				rerun[i] = again
				mu.Unlock()
				<-free
			})
		}
		wg.Wait()
		blamed, last := false, -1
		for i := range attempts {
			a := &attempts[i]
			again, ok := rerun[i]
			if !ok {
				continue
			}
			cause := again.Verdict == Died || again.Verdict == Hung
			blamed = blamed || cause
			if cause || a.dubious() || died.hung {
				final[i] = again.Result
			}
			if last < 0 || a.dubious() && !attempts[last].dubious() || a.to.After(attempts[last].to) {
				last = i
			}
		}
		if !blamed && !died.hung && last >= 0 {
			a := attempts[last].Result
			a.Verdict = Died
			a.Note = "the target crashed during this case or a case that ran at the same time, but no case makes the target crash when the case runs alone: " + a.Note
			final[last] = a
		}
	}
	return final
}

func (s *shared) stop() {
	if s.t != nil {
		s.t.Stop()
	}
}

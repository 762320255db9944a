package conform

import (
	"context"
	"sync"
	"time"

	"jobwire/internal/target"
)

// shared is the target that most cases use together. It is started when first
// needed, and again when it has died.
type shared struct {
	start  func(context.Context) (target.Target, error)
	ctx    context.Context
	mu     sync.Mutex
	t      target.Target
	err    error
	deaths []time.Time // when each life was seen to have ended
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
		s.deaths = append(s.deaths, time.Now())
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

// life is the number of the present life.
func (s *shared) life() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.deaths)
}

// lookBack is how long before a death was seen a case may have ended that caused it.
const lookBack = 500 * time.Millisecond

// inquire finds out what a target died of. The cases that were under way when it
// died, or had just ended, are judged again with a target for each. It returns the results
// that this changes, and those that were still open.
func (r *Runner) inquire(ctx context.Context, attempts []attempt, shared *shared, lag *lagMeter) map[int]Result {
	if shared.t != nil && target.Died(shared.t) != nil {
		shared.deaths = append(shared.deaths, time.Now())
	}
	final := map[int]Result{}
	coroner := *r
	coroner.Fresh, coroner.autopsy = true, true
	for life, died := range shared.deaths {
		blamed, last := false, -1
		for i := range attempts {
			a := &attempts[i]
			if a.life != life || a.to.Before(died.Add(-lookBack)) {
				continue
			}
			again := *a // of a target that cannot be started again
			switch {
			case ctx.Err() == nil:
				again = coroner.judge(ctx, a.Case, shared, lag)
			case context.Cause(ctx) != errLost:
				again.Result = a.notRun(ctx)
			}
			blamed = blamed || again.Verdict == Died
			if again.Verdict == Died || a.dubious() {
				final[i] = again.Result
			}
			if last < 0 || a.dubious() && !attempts[last].dubious() || a.to.After(attempts[last].to) {
				last = i
			}
		}
		if !blamed && last >= 0 {
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

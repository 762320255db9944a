package conform

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/play"
)

// Verdict is what a case says of a target.
type Verdict string

const (
	Passed      Verdict = "passed"
	Lax         Verdict = "lax"         // tolerable: a choice of lesser grade was taken
	Failed      Verdict = "failed"      // the target did something else
	Died        Verdict = "died"        // the target ended during the case
	Unreachable Verdict = "unreachable" // there was no target to judge
	Skipped     Verdict = "skipped"     // the target cannot be put to this test
)

// Result is a case's outcome.
type Result struct {
	Case    *Case
	Verdict Verdict
	Note    string // why it was skipped, or did not pass
	Took    time.Duration
	Play    *play.Result // nil if it was not performed
}

// Runner performs suites against one target.
type Runner struct {
	// Start makes a server to be judged. It is called for the shared target and
	// for every case that needs one of its own.
	Start func(context.Context) (target.Target, error)

	Parallel int           // cases at a time; 0 is 1
	Timeout  time.Duration // of an expectation; 0 is play.DefaultTimeout
	Waive    []codec.RuleID
}

// Run performs all cases of a suite and returns their results in the suite's
// order. done, if not nil, is told of each as it ends, one at a time. Whatever
// happens to the target, the results are complete.
func (r *Runner) Run(ctx context.Context, s *Suite, done func(Result)) []Result {
	results := make([]Result, len(s.Cases))
	shared := &shared{start: r.Start, ctx: ctx}
	defer shared.stop()
	var (
		next = make(chan int)
		tell sync.Mutex
		wg   sync.WaitGroup
	)
	for range max(1, r.Parallel) {
		wg.Go(func() {
			for i := range next {
				results[i] = r.judge(ctx, s.Cases[i], shared)
				if done != nil {
					tell.Lock()
					done(results[i])
					tell.Unlock()
				}
			}
		})
	}
	for i := range s.Cases {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// judge performs one case.
func (r *Runner) judge(ctx context.Context, c *Case, shared *shared) Result {
	began := time.Now()
	finish := func(v Verdict, note string, p *play.Result) Result {
		return Result{Case: c, Verdict: v, Note: note, Took: time.Since(began), Play: p}
	}
	if err := ctx.Err(); err != nil {
		return finish(Skipped, "the run was ended", nil)
	}
	var t target.Target
	var err error
	if c.Alone {
		if t, err = r.Start(ctx); err == nil {
			defer t.Stop()
			if t.Done() == nil {
				return finish(Skipped, "it needs a server of its own, which --addr cannot give; use --exec", nil)
			}
		}
	} else {
		t, err = shared.get()
	}
	if err != nil {
		return finish(Unreachable, err.Error(), nil)
	}
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, play.DefaultTimeout))
		defer cancel()
		return target.Dial(ctx, t)
	}
	p := play.Peers(ctx, c.Script, dial, play.Options{Timeout: r.Timeout, Codec: codec.Options{Waive: r.Waive}})
	f := p.Failure
	switch {
	case ctx.Err() != nil:
		return finish(Skipped, "the run was ended", p)
	case f == nil && p.Grade == transcript.Lax:
		return finish(Lax, "", p)
	case f == nil:
		return finish(Passed, "", p)
	case !c.Alone && target.Died(t) != nil:
		return finish(Died, target.Died(t).Error(), p)
	case f.Reason == play.Unreachable:
		return finish(Unreachable, f.Error(), p)
	}
	return finish(Failed, f.Error(), p)
}

// shared is the target that most cases use together. It is started when first
// needed, and again when it has died.
type shared struct {
	start func(context.Context) (target.Target, error)
	ctx   context.Context
	mu    sync.Mutex
	t     target.Target
	err   error
}

func (s *shared) get() (target.Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.t == nil:
		s.t, s.err = s.start(s.ctx)
	case s.t.Done() != nil:
		select {
		case <-s.t.Done():
			s.err = s.t.Restart()
		default:
		}
	}
	return s.t, s.err
}

func (s *shared) stop() {
	if s.t != nil {
		s.t.Stop()
	}
}

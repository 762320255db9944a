package conform

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
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
	Passed       Verdict = "passed"
	Lax          Verdict = "lax"          // tolerable: a choice of lesser grade was taken
	Failed       Verdict = "failed"       // the target did something else
	Unsteady     Verdict = "unsteady"     // it depends on how the stream is cut into segments
	Died         Verdict = "died"         // the target ended during the case
	Unreachable  Verdict = "unreachable"  // there was no target to judge
	Inconclusive Verdict = "inconclusive" // this machine was too slow for the case's times
	Skipped      Verdict = "skipped"      // the target cannot be put to this test
	Known        Verdict = "known"        // it falls short as its profile says
	Flaky        Verdict = "flaky"        // it fell short, which its profile says may happen
	Unexpected   Verdict = "unexpected"   // it passed, though its profile says that it does not
)

// Verdicts are all verdicts, in the order in which summaries name them.
var Verdicts = []Verdict{Passed, Lax, Known, Flaky, Failed, Unsteady, Died, Unexpected, Unreachable, Inconclusive, Skipped}

// FallsShort reports whether the verdict breaks a run.
func (v Verdict) FallsShort() bool {
	return slices.Contains([]Verdict{Failed, Unsteady, Died, Unexpected, Unreachable}, v)
}

// Result is a case's outcome.
type Result struct {
	Case     *Case
	Verdict  Verdict
	Note     string // why it was skipped, or did not pass
	Took     time.Duration
	Segments play.Segmentation // how the stream was cut in the performance that decided
	Play     *play.Result      // that performance; nil if it passed, or there was none
}

// Runner performs suites against one target.
type Runner struct {
	// Start makes a server to be judged. It is called for the target that cases share,
	// and for every case that needs one of its own.
	Start func(context.Context) (target.Target, error)

	// Programs are the clients and workers that cases judge, by their roles.
	Programs map[string]Program

	Parallel int                 // cases at a time; 0 is 1
	Timeout  time.Duration       // of an expectation; 0 is play.DefaultTimeout
	Segments []play.Segmentation // the ways each case is performed; nil is plain alone
	Fresh    bool                // every case gets a server of its own
	Waive    []codec.RuleID
	Profile  *Profile // what is known of the target; may be nil
	Bare     bool     // results come without their performance, which holds all that was said

	autopsy bool // look at the target behind every performance, also one that passed
}

// Run performs all cases of a suite and returns their results in the suite's
// order. done, if not nil, is told of each in that order, as soon as it and all before
// it have ended. Whatever happens to the target, the results are complete: it is
// restarted when it has died, and the cases that were under way, or had just ended, are
// judged again, one at a time, to learn which of them it died of. A case that had
// passed before that is then told of a second time.
func (r *Runner) Run(ctx context.Context, s *Suite, done func(Result)) []Result {
	var (
		board    = scoreboard{results: make([]Result, len(s.Cases)), ended: make([]bool, len(s.Cases)), done: done}
		attempts = make([]attempt, len(s.Cases))
		shared   = &shared{start: r.Start, ctx: ctx}
		next     = make(chan int)
		wg       sync.WaitGroup
		lag      = watchLag()
	)
	defer shared.stop()
	defer lag.stop()
	for range max(1, r.Parallel) {
		wg.Go(func() {
			for i := range next {
				a := r.judge(ctx, s.Cases[i], shared, lag)
				attempts[i] = a
				if !a.dubious() {
					board.end(i, r.Profile.apply(a.Result))
				}
			}
		})
	}
	for i := range s.Cases {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, res := range r.inquire(ctx, attempts, shared, lag) {
		board.end(i, r.Profile.apply(res))
	}
	return board.results
}

// scoreboard takes results as they come and tells of them in order.
type scoreboard struct {
	mu      sync.Mutex
	results []Result
	ended   []bool
	told    int
	done    func(Result)
}

func (b *scoreboard) end(i int, r Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = r
	if i < b.told && b.done != nil {
		b.done(r)
	}
	for b.ended[i] = true; b.told < len(b.ended) && b.ended[b.told]; b.told++ {
		if b.done != nil {
			b.done(b.results[b.told])
		}
	}
}

// retries is how often a case is tried again that this machine was too slow for.
const retries = 2

// attempt is a case's result with what is needed to tell whether a death of the
// target had to do with it.
type attempt struct {
	Result
	life     int // of the shared target; -1 if it had a target of its own
	from, to time.Time
}

// dubious reports whether the shared target died during the attempt, which other cases
// may have been the cause of.
func (a *attempt) dubious() bool { return a.Verdict == Died && a.life >= 0 }

// judge performs a case in every way that is asked for.
func (r *Runner) judge(ctx context.Context, c *Case, shared *shared, lag *lagMeter) (a attempt) {
	from := time.Now()
	defer func() {
		a.Case, a.from, a.to = c, from, time.Now()
		a.Took = a.to.Sub(from)
		if r.Bare {
			a.Play = nil
		}
	}()
	why := r.Profile.lacks(c)
	if c.Program != "" && r.Programs[c.Program] == nil {
		why = "there is no program to judge that is a " + c.Program
	}
	if c.Watch != "" {
		why = "what is watched behind it is the server's " + c.Watch + ", by 'jobwire play'"
	}
	if why != "" {
		return attempt{Result: Result{Verdict: Skipped, Note: why}, life: -1}
	}
	ways := r.Segments
	if len(ways) == 0 {
		ways = []play.Segmentation{play.Plain}
	}
	for i, how := range ways {
		if c.Program != "" && how == play.Coalesced && i > 0 {
			continue // a relay does not hold back what others say
		}
		var once attempt
		for try := 0; ; try++ {
			once = r.perform(ctx, c, shared, how, lag)
			if once.Verdict != Inconclusive || try == retries {
				break
			}
		}
		once.Segments = how
		was := a.Verdict
		if a = once; i > 0 && once.Verdict != was && slices.Contains([]Verdict{Failed, Lax, Passed}, once.Verdict) {
			a.Verdict = Unsteady
			a.Note = fmt.Sprintf("%s when sent %s, but %s when sent %s: %s", was, ways[0], once.Verdict, how, once.Note)
		}
		// What falls short as it is needs no more proof.
		if a.Verdict != Passed && a.Verdict != Lax {
			break
		}
	}
	return a
}

// perform performs a case once.
func (r *Runner) perform(ctx context.Context, c *Case, shared *shared, how play.Segmentation, lag *lagMeter) attempt {
	life := -1
	verdict := func(v Verdict, note string, p *play.Result) attempt {
		return attempt{Result: Result{Verdict: v, Note: note, Play: p}, life: life}
	}
	if ctx.Err() != nil {
		return verdict(Skipped, "the run was ended", nil)
	}
	var t target.Target
	var err error
	if c.Alone || r.Fresh {
		if t, err = r.Start(ctx); err == nil {
			defer t.Stop()
			if t.Done() == nil {
				return verdict(Skipped, "it needs a server of its own, which an address cannot give; use --exec", nil)
			}
		}
	} else {
		t, life, err = shared.get()
	}
	if err != nil {
		return verdict(Unreachable, err.Error(), nil)
	}
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, play.DefaultTimeout))
		defer cancel()
		return target.Dial(ctx, t)
	}
	from := time.Now()
	options := play.Options{Timeout: r.Timeout, Segments: how, Codec: codec.Options{Waive: r.Waive}}
	var p *play.Result
	var note string
	if c.Program == "" {
		p = play.Peers(ctx, c.Script, dial, options)
	} else {
		var able bool
		if p, note, able = r.performProgram(ctx, c, dial, options); !able {
			return verdict(Skipped, note, p)
		}
	}
	f := p.Failure
	if f != nil && note == "" {
		note = f.Error()
	}
	if ctx.Err() != nil {
		return verdict(Skipped, "the run was ended", p)
	}
	if !c.Alone && (f != nil || r.autopsy) { // an @alone case may well have ended its server on purpose
		if err := target.Died(t); err != nil {
			return verdict(Died, err.Error(), p)
		}
		if life >= 0 && shared.life() != life {
			return verdict(Died, "the target died and was restarted", p)
		}
	}
	switch {
	case f == nil && note != "":
		return verdict(Failed, note, p)
	case f == nil && p.Grade == transcript.Lax:
		return verdict(Lax, "what it does is tolerable, but not what is due", p)
	case f == nil:
		return verdict(Passed, "", nil)
	case f.Reason == play.Unreachable && !c.Alone:
		return verdict(Unreachable, note, p)
	case f.Waited > 0 && lag.since(from) > max(maxLag, f.Waited/shareOfWait):
		return verdict(Inconclusive, fmt.Sprintf("this machine was up to %v late meanwhile, too much to judge %v by: %s", lag.since(from).Round(time.Millisecond), f.Waited, note), p)
	}
	return verdict(Failed, note, p)
}

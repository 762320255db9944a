package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/virtualtime"
	"jobwire/internal/watch"
	"jobwire/play"
)

// Verdict is the result of a case on a target.
type Verdict string

const (
	Passed       Verdict = "passed"
	NonStrict    Verdict = "non-strict"       // the target's reply is accepted, although the specification prefers another reply
	Different    Verdict = "different"        // the target did not do what the case expects, but the specification is silent about it
	Failed       Verdict = "failed"           // the target did not do what the case expects
	Inconsistent Verdict = "inconsistent"     // the result depends on how messages are divided into writes
	Crashed      Verdict = "crashed"          // the process of the target ended during the case
	Hung         Verdict = "hung"             // after the case, the target did not reply on a new connection
	Unreachable  Verdict = "unreachable"      // the target did not start, or did not accept a connection
	Inconclusive Verdict = "inconclusive"     // a setup does not work on the target, or the target or this machine was too slow for the time limits
	Skipped      Verdict = "skipped"          // the case does not apply to the target
	NotRun       Verdict = "not run"          // the run ended before the case
	Known        Verdict = "expected failure" // the case failed, and the profile lists it as failing
	Flaky        Verdict = "flaky"            // the case failed, and the profile lists it as flaky
	Unexpected   Verdict = "unexpected pass"  // the case passed, and the profile lists it as failing
)

// Verdicts contains all verdicts, in the order of summaries.
var Verdicts = []Verdict{Passed, NonStrict, Different, Known, Flaky, Failed, Inconsistent, Crashed, Hung, Unexpected, Unreachable, Inconclusive, Skipped, NotRun}

// FailsRun reports whether the verdict makes a run fail.
func (v Verdict) FailsRun() bool {
	return slices.Contains([]Verdict{Failed, Inconsistent, Crashed, Hung, Unexpected, Unreachable}, v)
}

// Result is the result of a case.
type Result struct {
	Case     *Case
	Verdict  Verdict
	Note     string // reason why the case was skipped or did not pass
	Quote    string // words of the specification that the target does not follow, if the profile contains them
	Finding  string // name or URL of a finding that explains the failure, if the profile contains it
	Took     time.Duration
	Segments play.Segmentation // how messages were divided into writes in the run that determined the verdict
	Play     *play.Result      // messages of that run; nil if the case passed or did not run
	Command  string            // command line that runs only this case; "" if Runner.Command is ""
	Crash    *Crash            // crash of the target during the case, or nil

	script *transcript.Script // transcript that was run
	setup  *brokenSetup       // nil if all setups worked

	// Only in a result for all instances of a case:
	Instances int    // number of instances; 0: the result is for one instance
	Values    string // the values of the instances, by verdict
}

// performed returns the transcript that was run: the transcript of the case, in which each setup
// uses a way that works on the target.
func (r *Result) performed() *transcript.Script {
	if r.script != nil {
		return r.script
	}
	return r.Case.Script
}

// Runner runs suites against one target.
type Runner struct {
	// Start starts a server to test. Run calls it for the shared target, and for each case that needs its own server.
	Start func(context.Context) (target.Target, error)

	// StartProcess starts the server as a process whose resources can be checked. It may be nil if Start does that.
	StartProcess func(context.Context) (target.Target, error)

	// Programs are the clients and workers under test, by role.
	Programs map[string]Program

	Parallel         int                 // number of cases that run at the same time; 0: 1
	Timeout          time.Duration       // timeout of an expectation; 0: play.DefaultTimeout
	Segments         []play.Segmentation // ways to divide messages into writes; each case runs once in each way; nil: only plain
	NewServerPerCase bool                // every case gets a server of its own
	Strict           bool                // a failure where the specification is silent is Failed instead of Different
	Waive            []codec.RuleID
	Profile          *Profile // profile of the target; may be nil
	Command          string   // a command line for [Result.Command], without the selection of cases; may be ""
	OmitPlay         bool     // results do not contain Play, which contains all messages

	// Virtual states that Run is called in a bubble of package testing/synctest, with a target in memory. A case then
	// begins with a second, a step ends when the target waits, and this machine delays nothing. Parallel must be 0 or 1.
	Virtual bool

	ways        *setupWays         // ways to setups that work on the target; nil: not tested yet
	barrier     *transcript.Script // barrier request to which the target replied before the first case; nil if it did not reply
	checkTarget bool               // check the target after each run of a case, even if the case passed
	delay       *schedulingDelay   // scheduling delay of this machine; nil: Run measures it
	large       chan struct{}      // for play.Options.Large
	kept        *atomic.Int64      // bytes of messages in the results
}

// maxKept is the number of bytes up to which the results of a run keep messages whole.
const maxKept = 16 << 20

// Run runs all cases of a suite and returns their results in the order of the suite. If done is not nil, Run calls it
// for each case in that order, when the case and all previous cases have ended. If the target crashes, Run restarts it
// and repeats the cases that were running or had just ended, to find those that crash the target. Run calls done again
// if such a case had passed before.
//
// If a case misses a time limit while others run, Run repeats the case alone, after all others, and uses the second
// result, because a server may reply too late on a busy machine. Run stops repeating cases after Parallel repeated
// cases in a row have failed.
//
// If ctx is done or the shared target cannot be reached, Run stops. In the latter case, one case gets the verdict
// Unreachable. All cases without a result get the verdict NotRun.
func (r *Runner) Run(ctx context.Context, s *Suite, done func(Result)) []Result {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	var (
		board    = resultOrder{results: make([]Result, len(s.Cases)), ended: make([]bool, len(s.Cases)), done: done}
		attempts = make([]attempt, len(s.Cases))
		shared   = &sharedTarget{start: r.Start, ctx: ctx}
		next     = make(chan int)
		wg       sync.WaitGroup
		lag      = r.delay
		ran      atomic.Bool  // at least one case has reached the target
		halted   atomic.Bool  // a case has the verdict Unreachable, which ends the run
		answered atomic.Bool  // the target has sent something to a case
		ignored  atomic.Int64 // number of cases to which the target has sent nothing
	)
	defer shared.stop()
	switch {
	case lag != nil:
	case r.Virtual:
		lag = new(schedulingDelay)
	default:
		lag = measureSchedulingDelay()
		defer lag.stop()
	}
	if r.ways == nil {
		r.ways = newSetupWays(s.Setups)
	}
	if r.kept == nil {
		r.kept = new(atomic.Int64)
	}
	if r.Parallel > 1 {
		r.large = make(chan struct{}, 1)
	}
	if note := r.otherProtocol(ctx, s, shared); note != "" {
		for i, c := range s.Cases {
			res := Result{Case: c}.notRun(ctx)
			if res.Note = note; i == 0 {
				res.Verdict = Unreachable
			}
			board.end(i, res)
		}
		return board.results
	}
	for range max(1, r.Parallel) {
		wg.Go(func() {
			for i := range next {
				a := r.runCase(ctx, s.Cases[i], shared, lag)
				if a.Verdict == Unreachable && a.shared && ran.Load() {
					a = r.connectAgain(ctx, s.Cases[i], shared, lag)
				}
				if !a.ignored() {
					answered.Store(true)
				} else if n := ignored.Add(1); n >= maxIgnored && r.barrier == nil && !answered.Load() {
					a.Verdict, a.Play = Unreachable, nil
					a.Note = fmt.Sprintf("the target accepts connections, but %d cases received nothing from it", n)
				}
				switch {
				case a.Verdict == Unreachable && (a.shared || !ran.Load()), a.Verdict == Hung && a.shared && a.generation < 0:
					if halt(errUnreachable); !halted.CompareAndSwap(false, true) {
						a.Result = a.notRun(ctx)
					}
				case a.Verdict != Skipped && a.Verdict != NotRun && a.Verdict != Unreachable:
					ran.Store(true)
				}
				attempts[i] = a
				if !a.sharedTargetFailed() && !r.mustRepeat(&a) {
					board.end(i, r.conclude(a.Result))
				}
			}
		})
	}
	for i := range s.Cases {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, res := range r.findCrashingCases(ctx, attempts, shared, lag) {
		board.end(i, r.conclude(res))
	}
	confirmed := 0 // number of consecutive repeated cases that have failed again
	for i := range attempts {
		a := &attempts[i]
		if !r.mustRepeat(a) || board.ended[i] {
			continue
		}
		res := a.Result
		if confirmed < r.Parallel && ctx.Err() == nil {
			again := r.runCase(ctx, a.Case, shared, lag)
			if a.Verdict == Inconclusive || !again.late {
				res = again.Result
			}
			if confirmed++; !again.late {
				confirmed = 0
			}
		}
		board.end(i, r.conclude(res))
	}
	r.Profile.unexpected(board.results, func(i int) {
		if done != nil {
			done(board.results[i])
		}
	})
	return board.results
}

// connectAgain runs a case again that could not connect to a target to which other cases have connected. If it cannot
// connect again, although the target accepts a connection afterwards, the result is inconclusive, and the run goes on.
func (r *Runner) connectAgain(ctx context.Context, c *Case, shared *sharedTarget, lag *schedulingDelay) attempt {
	a := r.runCase(ctx, c, shared, lag)
	if a.Verdict != Unreachable {
		return a
	}
	if t, _, err := shared.get(); err == nil && target.Alive(ctx, t) == nil {
		a.Verdict = Inconclusive
		a.Note = "the target accepted no connection for this case, twice, and one after it: " + a.Note
	}
	return a
}

// mustRepeat reports whether a case must run again because time limits may have made it fail while other cases ran.
func (r *Runner) mustRepeat(a *attempt) bool {
	return a.late && r.Parallel > 1 && r.Profile.apply(a.Result).Verdict == a.Verdict
}

// otherProtocol records whether the shared target replies to a barrier request. If the target is a server of another
// protocol, or expects TLS, otherProtocol returns a sentence about that, and otherwise "".
func (r *Runner) otherProtocol(ctx context.Context, s *Suite, shared *sharedTarget) string {
	if r.NewServerPerCase || !slices.ContainsFunc(s.Cases, func(c *Case) bool { return !c.OwnServer && c.Program == "" }) {
		return ""
	}
	t, _, err := shared.get()
	if err != nil {
		return ""
	}
	script, other := identify(ctx, s.Protocol, t)
	if r.barrier = script; other == "" {
		return ""
	}
	return fmt.Sprintf("%s as a server of %s: %s", t, s.Protocol.Title, other)
}

// dialer returns a function that connects to a target within the timeout.
func dialer(t target.Target, timeout time.Duration) play.Dialer {
	return func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout, play.DefaultTimeout))
		defer cancel()
		return target.Dial(ctx, t)
	}
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

// maxIgnored is the number of cases that a target must ignore to end the run, if it has also ignored the barrier requests
// and sent nothing at all.
const maxIgnored = 8

// ignored reports whether the case waited for the shared target and received nothing.
func (a *attempt) ignored() bool {
	p := a.Play
	if p == nil && a.setup != nil {
		p = a.setup.play
	}
	return a.shared && p != nil && p.Failure != nil && p.Failure.Waited > 0 &&
		!slices.ContainsFunc(p.Events, func(e play.Event) bool { return e.From == codec.Server && len(e.Frame.Raw) > 0 })
}

// errUnreachable is the cancellation cause of a run whose target cannot be reached.
var errUnreachable = errors.New("the target could not be reached")

// notRun returns the result of a case that did not run because the run ended.
func (r Result) notRun(ctx context.Context) Result {
	r.Verdict, r.Note, r.Play = NotRun, "the run was interrupted", nil
	if context.Cause(ctx) == errUnreachable {
		r.Note = errUnreachable.Error()
	}
	return r
}

// slowCase is the duration above which time counts as a possible reason for the failure of a case. A server may act at
// times that the case does not state, for example at the end of a time-to-run of 1 s.
const slowCase = 500 * time.Millisecond

// aliveTimeout limits the time in which a target that has not crashed answers a barrier request after a failed case.
const aliveTimeout = 200 * time.Millisecond

// repeatFactor is the factor by which a timeout is multiplied when the machine may have caused that there was no reply.
const repeatFactor = 5

// retries is the maximum number of times that a case is repeated because the machine was too slow.
const retries = 2

// attempt is the result of running a case once in all ways, with the data that shows whether the case may have crashed
// the target.
type attempt struct {
	Result
	generation int  // generation of the shared target; -1: the case had a target of its own
	shared     bool // the case used the shared target
	late       bool // time limits may have made the case fail: it missed one, the machine was slow, or the case took longer than slowCase
	from, to   time.Time
}

// sharedTargetFailed reports whether the shared target crashed or hung during the attempt. The cause may be another case.
func (a *attempt) sharedTargetFailed() bool {
	return (a.Verdict == Crashed || a.Verdict == Hung) && a.generation >= 0
}

// runCase runs a case once in each way to divide messages into writes.
func (r *Runner) runCase(ctx context.Context, c *Case, shared *sharedTarget, lag *schedulingDelay) (a attempt) {
	from := time.Now()
	defer func() {
		a.Case, a.from, a.to = c, from, time.Now()
		a.Took = a.to.Sub(from)
		if r.Command != "" {
			a.Command = r.Command + " --run " + c.selector()
		}
		if r.OmitPlay {
			a.Play, a.script = nil, nil
		}
		if a.Play != nil && r.kept != nil {
			r.kept.Add(int64(a.Play.Cut(r.keep())))
		}
	}()
	why := r.Profile.lacks(c)
	if c.Program != "" && r.Programs[c.Program] == nil {
		why = "the case needs a program with this role (--program): " + c.Program
	}
	if why != "" {
		return attempt{Result: Result{Verdict: Skipped, Note: why}, generation: -1}
	}
	ways := r.Segments
	if len(ways) == 0 || c.observed() {
		ways = []play.Segmentation{play.Plain}
	}
	if c.Segments != nil {
		ways = []play.Segmentation{*c.Segments}
	}
	for i, how := range ways {
		if c.Program != "" && how == play.Coalesced && i > 0 {
			continue // the relay does not combine messages of the program or the server
		}
		var once attempt
		for try := 0; ; try++ {
			once = r.perform(ctx, c, shared, how, lag)
			late := once.Verdict == Inconclusive && once.setup == nil
			silent := try == 0 && acceptedSilence(once) // check once again: on a busy machine the preferred reply may have been late
			if !late && !silent || try == retries {
				break
			}
		}
		passes := func(how play.Segmentation) bool { return r.perform(ctx, c, shared, how, lag).Verdict == Passed }
		switch { // if the server sent the preferred reply only with other writes, check the silence again, because the reply may have been late
		case acceptedSilence(a) && once.Verdict == Passed && passes(a.Segments):
			a = once
		case a.Verdict == Passed && acceptedSilence(once) && passes(how):
			once = a
		}
		once.Segments = how
		switch {
		case a.Verdict == NonStrict && once.Verdict == Passed:
			continue // keep the non-strict result, because the reply may depend on time
		case i > 0 && once.Verdict == Failed:
			once.Verdict = Inconsistent
			once.Note = fmt.Sprintf("the result depends on how the messages are divided into writes to the socket: %s with %s writes, failed with %s writes: %s", a.Verdict, ways[0], how, once.Note)
		}
		a = once
		// Do not run a failed case in further ways.
		if a.Verdict != Passed && a.Verdict != NonStrict {
			break
		}
	}
	return a
}

// keep returns the number of bytes up to which the next result keeps messages whole.
func (r *Runner) keep() int {
	if r.kept == nil {
		return maxKept
	}
	return max(1, maxKept-int(r.kept.Load()))
}

// acceptedSilence reports whether the case accepted that the server sent nothing, although the specification prefers a
// reply.
func acceptedSilence(a attempt) bool { return a.Verdict == NonStrict && a.Play.Accepted.Choice.For > 0 }

// answers reports whether a target answers the barrier request on a new connection.
func (r *Runner) answers(ctx context.Context, t target.Target, limit time.Duration) bool {
	return play.Peers(ctx, r.barrier, dialer(t, limit), probeOptions(limit)).Failure == nil
}

// died returns the error of a target that has crashed, or nil. f is the failure of the conversation, or nil. The exit of
// a process is noticed late, and waiting for it would make each failing case take [target.Died]'s 200 ms. A shared target
// that answers a new connection runs; if it crashes afterwards, findCrashingCases finds the case.
func (r *Runner) died(ctx context.Context, t target.Target, shared bool, f *play.Failure) error {
	connected := f == nil || f.Reason != play.Unreachable
	if shared && connected && !r.checkTarget && r.barrier != nil && r.answers(ctx, t, aliveTimeout) {
		return nil
	}
	return target.Died(t)
}

// perform runs a case once with the given division into writes.
func (r *Runner) perform(ctx context.Context, c *Case, shared *sharedTarget, how play.Segmentation, lag *schedulingDelay) attempt {
	begun, life := time.Now(), -1
	script := c.Script
	own := c.OwnServer || r.NewServerPerCase || c.observed()
	verdict := func(v Verdict, note string, p *play.Result) attempt {
		late := p != nil && (v == Failed || v == Inconclusive) && (p.Failure == nil || timed(script, p.Failure) > 0 || lag.since(begun) > maxLag || time.Since(begun) > slowCase)
		return attempt{Result: Result{Verdict: v, Note: note, Play: p, script: script}, generation: life, shared: !own, late: late}
	}
	if ctx.Err() != nil {
		return attempt{Result: Result{}.notRun(ctx), generation: -1}
	}
	var t target.Target
	var err error
	var observer *watch.Watcher
	if own {
		start := r.Start
		if c.observed() && r.StartProcess != nil {
			start = r.StartProcess
		}
		if t, err = start(ctx); err == nil {
			defer t.Stop()
			if t.Done() == nil {
				return verdict(Skipped, "the case needs a newly started server, and conform cannot start the server of --addr; use --exec", nil)
			}
			if c.Descriptors > 0 && !target.Dialer(t).Plain() {
				return verdict(Skipped, "the case opens connections that the server cannot accept, so their TLS handshake or login cannot end", nil)
			}
			if observer, err = c.observe(t); err != nil {
				return verdict(Skipped, err.Error(), nil)
			}
		}
	} else {
		t, life, err = shared.get()
	}
	switch {
	case ctx.Err() != nil:
		return attempt{Result: Result{}.notRun(ctx), generation: -1}
	case err != nil:
		return verdict(Unreachable, err.Error(), nil)
	}
	dial := dialer(t, r.Timeout)
	options := play.Options{Timeout: r.Timeout, Codec: codec.Options{Waive: r.Waive}, Keep: r.keep(), Large: r.large}
	ready, broken, err := r.ways.script(ctx, c, func(probe *transcript.Script) (error, bool) {
		probed, server := time.Now(), t
		if own { // the case needs its own server, so the probe needs one too
			if server, err = r.Start(ctx); err != nil {
				return err, false
			}
			defer server.Stop()
		}
		patient := options // use a long timeout, so that a way that works is not rejected on a busy machine
		patient.Timeout = max(r.Timeout, play.DefaultTimeout)
		p := play.Peers(ctx, probe, dialer(server, r.Timeout), patient)
		f := p.Failure
		if f == nil {
			return nil, true
		}
		reached := ctx.Err() == nil && f.Reason != play.Unreachable && r.died(ctx, server, !own, f) == nil
		return &probeFailure{p}, reached && (f.Waited == 0 || lag.since(probed) <= max(maxLag, f.Waited/maxDelayShare))
	})
	switch {
	case err != nil:
		return verdict(Inconclusive, err.Error(), nil)
	case broken != nil && r.Profile.lacksSetup(c) != "":
		return verdict(Skipped, r.Profile.lacksSetup(c), nil)
	case broken != nil:
		a := verdict(Inconclusive, fmt.Sprintf("the setup %q does not work on this target: %v", broken.name, broken.why), nil)
		a.setup = broken
		return a
	}
	script = ready
	from := time.Now()
	options.Segments = how
	if r.Virtual {
		options.Settle = virtualtime.Wait
		virtualtime.NextSecond()
	}
	if observer != nil {
		options.AtEnd = observer.AtEnd
	}
	var p *play.Result
	var note string
	if c.Program == "" {
		p = play.Peers(ctx, script, dial, options)
	} else {
		var able bool
		if p, note, able = r.performProgram(ctx, c, script, t.Addr(), dial, options); !able {
			return verdict(Skipped, note, p)
		}
	}
	f := p.Failure
	if f != nil && note == "" {
		note = f.Error()
	}
	if observer != nil && f == nil && ctx.Err() == nil {
		options.AtEnd = nil
		if note, err = observer.After(func() error { return play.Peers(ctx, script, dial, options).Err() }); err != nil && note == "" {
			note = "the conversation passed once, but not when it was repeated: " + err.Error()
		}
	}
	if ctx.Err() != nil {
		return attempt{Result: Result{}.notRun(ctx), generation: -1}
	}
	ended := func() (a attempt, yes bool) {
		err := r.died(ctx, t, life >= 0, f)
		switch {
		case errors.Is(err, target.ErrDied):
			a = verdict(Crashed, "", p)
			a.Crash = newCrash(err)
			a.Note = a.Crash.String()
		case err != nil: // the server could not listen on its port, so another program has replied
			a = verdict(Inconclusive, err.Error(), p)
		case life >= 0 && shared.generation() != life:
			a = verdict(Crashed, "the target crashed and was restarted", p)
			a.Crash = newCrash(shared.end(life))
		default:
			return attempt{}, false
		}
		return a, true
	}
	if !c.OwnServer && (f != nil || note != "" || r.checkTarget) { // a case with @alone may stop the server intentionally
		if a, yes := ended(); yes {
			return a
		}
	}
	limit := cmp.Or(r.Timeout, play.DefaultTimeout)
	unanswered := func(limit time.Duration) bool { return !r.answers(ctx, t, limit) && ctx.Err() == nil }
	// A late machine may also be the reason for a missing reply, so use a longer timeout then.
	if !c.OwnServer && r.barrier != nil && (f != nil && f.Waited > 0 || r.checkTarget) && unanswered(limit) && (lag.since(from) == 0 || unanswered(repeatFactor*limit)) {
		if a, yes := ended(); yes { // a process that prints a stack trace ends shortly after its connections are closed
			return a
		}
		if life >= 0 && !shared.restart(life) {
			life = -1
		}
		return verdict(Hung, fmt.Sprintf("after this case the target answered no request on a new connection within %v: %s", limit, cmp.Or(note, "the case itself passed")), p)
	}
	switch {
	case f == nil && note != "":
		return verdict(Failed, note, p)
	case f == nil && p.Grade == transcript.NonStrict:
		// If the machine was late, a silence proves nothing: the server may have sent the preferred
		// reply, which had not arrived yet.
		if t := p.Accepted.Choice.For; t > 0 && lag.since(from) > max(maxLag, t/maxDelayShare) {
			return verdict(Inconclusive, fmt.Sprintf("the machine that runs jobwire delayed it by up to %v, which is too long to check a silence of %v", lag.since(from).Round(time.Millisecond), t), p)
		}
		return verdict(NonStrict, fmt.Sprintf("expected %s, got %s, which the case also accepts (line %d of the case file)", p.Accepted.Expected(), p.Accepted.Got(), p.Accepted.Choice.Line), p)
	case f == nil:
		return verdict(Passed, "", nil)
	case f.Reason == play.Unsupported:
		return verdict(Skipped, note, p)
	case f.Reason == play.Unreachable && !c.OwnServer:
		return verdict(Unreachable, f.Err.Error(), p)
	}
	if t := timed(script, f); t > 0 && lag.since(from) > max(maxLag, t/maxDelayShare) {
		return verdict(Inconclusive, fmt.Sprintf("the machine that runs jobwire delayed it by up to %v, which is too long to check a time limit of %v: %s", lag.since(from).Round(time.Millisecond), t, note), p)
	}
	if f.Reason == play.TooLate {
		return verdict(Inconclusive, "the connection, the target or this machine is too slow for the case: "+note, p)
	}
	if setup := f.Step.Setup; setup != "" && !slices.ContainsFunc(script.Steps[:f.Index], func(st transcript.Step) bool { return st.Setup == "" }) {
		a := verdict(Inconclusive, fmt.Sprintf("the setup %q did not come about: %s", setup, note), p)
		a.setup = &brokenSetup{name: setup, play: p}
		return a
	}
	return verdict(Failed, note, p)
}

package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/internal/virtualtime"
	"jobwire/internal/watch"
	"jobwire/play"
)

// slowCase is the duration above which time counts as a possible reason for the failure of a case. A server may act at
// times that the case does not state, for example at the end of a time-to-run of 1 s.
const slowCase = 500 * time.Millisecond

// aliveTimeout limits the time in which a target that has not crashed answers a barrier request after a failed case.
const aliveTimeout = 200 * time.Millisecond

// repeatFactor is the factor by which a timeout is multiplied when the machine may have caused that there was no reply.
const repeatFactor = 5

// trial is one run of a case with one way to divide messages into writes.
type trial struct {
	*worker
	c        *Case
	how      play.Segmentation
	own      bool // the case has a server of its own
	target   target.Target
	observer *watch.Watcher
	options  play.Options
	script   *transcript.Script // the transcript of the case, with ways to its setups that work on the target
	begun    time.Time
	from     time.Time // the time at which the transcript began
	play     *play.Result
	note     string       // reason why the case did not pass, or ""
	broken   *brokenSetup // a setup that does not work on the target; the script ends before it
	lacking  *codec.Type  // a message that the target does not implement; the script ends before it
	missing  string       // a sentence about lacking
	wrong    *brokenSetup // a setup that works although the target does something wrong in it; or nil
}

// try runs a case once with the given division into writes.
func (w *worker) try(c *Case, how play.Segmentation) attempt {
	t := &trial{worker: w, c: c, how: how, own: w.ownServer(c), script: c.Script, begun: time.Now()}
	defer func() {
		if t.own && t.target != nil {
			t.target.Stop()
		}
	}()
	for _, step := range []func() *attempt{t.acquire, t.setup, t.perform, t.alive} {
		if w.ctx.Err() != nil {
			break
		}
		if a := step(); a != nil && w.ctx.Err() == nil {
			return *a
		}
	}
	if w.ctx.Err() != nil {
		return attempt{Result: Result{}.notRun(w.ctx)}
	}
	return *t.decide()
}

// verdict returns an attempt with a verdict.
func (t *trial) verdict(v verdict.Verdict, note string) *attempt {
	p, from := t.play, t.from
	if from.IsZero() { // a setup does not work
		from = t.begun
	}
	late := p != nil && (v == verdict.Failed || v == verdict.Inconclusive) &&
		(p.Failure == nil || timed(t.script, p.Failure) > 0 || t.delay.Since(from) > lateness.Acceptable ||
			time.Since(from) > slowCase)
	return &attempt{Result: Result{Verdict: v, Note: note, Play: p, script: t.script}, shared: !t.own, late: late}
}

// crashed returns the attempt of a case during which the target ended, with the error of the target.
func (t *trial) crashed(err error) *attempt {
	if !errors.Is(err, target.ErrDied) { // the server could not listen on its port, so another program has replied
		return t.verdict(verdict.Inconclusive, err.Error())
	}
	crash := newCrash(err)
	a := t.verdict(verdict.Crashed, crash.String())
	a.Crash = crash
	return a
}

// acquire starts the server of the case, or uses that of the worker.
func (t *trial) acquire() *attempt {
	if !t.own {
		server, err := t.start()
		if err != nil {
			return t.verdict(verdict.Unreachable, err.Error())
		}
		if err := t.ended(); err != nil { // after the case has run with another division into writes
			return t.crashed(err)
		}
		t.target = server
		return nil
	}
	start := t.Start
	if t.c.observed() && t.StartProcess != nil {
		start = t.StartProcess
	}
	server, err := start(t.ctx)
	if err != nil {
		return t.verdict(verdict.Unreachable, err.Error())
	}
	t.target = server
	if server.Done() == nil {
		return t.verdict(verdict.Skipped, "the case needs a newly started server, and conform cannot start the server of --addr; use --exec")
	}
	if t.c.Descriptors > 0 {
		if a := t.limitDescriptors(start); a != nil {
			return a
		}
	}
	if t.c.observed() {
		if t.observer, err = watch.New(t.target, t.c.Watch); err != nil {
			return t.verdict(verdict.Skipped, err.Error())
		}
	}
	return nil
}

// limitDescriptors replaces the server of the case by one that may open as many more file descriptors as the case says.
func (t *trial) limitDescriptors(start func(context.Context) (target.Target, error)) *attempt {
	if !target.Dialer(t.target).Plain() {
		return t.verdict(verdict.Skipped, "the case opens connections that the server cannot accept, so their TLS handshake or login cannot end")
	}
	usage, ok := watch.AtRest(t.target, -1)
	if !ok {
		return t.verdict(verdict.Skipped, watch.ErrNoProcess.Error())
	}
	limit := usage.Descriptors + t.c.Descriptors
	t.target.Stop()
	server, err := start(target.LimitDescriptors(t.ctx, limit))
	if err != nil {
		return t.verdict(verdict.Skipped, fmt.Sprintf("the server does not start if it may open only %d file descriptors: %v", limit, err))
	}
	t.target = server
	if got := watch.DescriptorLimit(server); got != limit {
		return t.verdict(verdict.Skipped, fmt.Sprintf("the server was started with a limit of %d file descriptors, and has changed it to %d", limit, got))
	}
	return nil
}

// setup finds ways to the setups of the case that work on the target.
func (t *trial) setup() *attempt {
	t.options = play.Options{Timeout: t.Timeout, Codec: codec.Options{Waive: t.Waive}, Keep: t.keep(), Large: t.large,
		Unique: t.unique}
	if t.Virtual {
		t.options.Settle = virtualtime.Wait
	}
	script, wrong, broken, err := t.ways.script(t.ctx, t.c, t.probe)
	switch {
	case wrong != nil && wrong.failsCase:
		t.play, t.script = wrong.failed.Result, wrong.failed.script
		return t.verdict(verdict.Failed, fmt.Sprintf("in the setup %q: %v", wrong.name, wrong.why))
	case wrong != nil:
		t.wrong = wrong
	}
	switch {
	case err != nil:
		return t.verdict(verdict.Inconclusive, err.Error())
	case broken != nil && t.Profile.lacksMessage(t.c, true) != "":
		return t.verdict(verdict.Skipped, t.Profile.lacksMessage(t.c, true))
	}
	t.broken = broken
	if script, t.lacking, t.missing = t.same.cut(script); t.lacking != nil {
		t.broken = nil // the case does not come to its step
	}
	t.script = t.silence.shorten(script)
	if t.wrong != nil {
		t.wrong.breaks.allow(t.script, &t.options)
	}
	if !slices.ContainsFunc(script.Steps, asserts) {
		return t.unfinished()
	}
	return nil
}

// asserts reports whether a step expects something of the target that is not part of a setup.
func asserts(st transcript.Step) bool {
	return st.Setup == "" && (st.From == codec.Server || st.Choices[0].Verb == transcript.Nothing)
}

// unfinished returns the attempt of a case that cannot run to its end, because a setup does not work or the target does
// not implement a message, or nil.
func (t *trial) unfinished() *attempt {
	if t.lacking != nil {
		a := t.verdict(verdict.Inferred, t.missing)
		a.lacking = t.lacking
		return a
	}
	if t.broken == nil {
		return nil
	}
	a := t.verdict(verdict.Inconclusive,
		fmt.Sprintf("the setup %q does not work on this target: %v", t.broken.name, t.broken.why))
	a.setup = t.broken
	return a
}

// probe runs the probe of a setup, as a [probeFunc].
func (t *trial) probe(script *transcript.Script, known breaks) (error, bool) {
	options := t.options
	known.allow(script, &options)
	probed, server := time.Now(), t.target
	if t.own { // the case needs its own server, so the probe needs one too
		var err error
		if server, err = t.Start(t.ctx); err != nil {
			return err, false
		}
		defer server.Stop()
	}
	p := play.Peers(t.ctx, t.silence.shorten(script), dialer(server, t.Timeout), options)
	f := p.Failure
	if f == nil {
		return nil, true
	}
	t.silence.add(script, f)
	reached := t.ctx.Err() == nil && f.Reason != play.Unreachable && t.died(t.ctx, server, !t.own, f) == nil
	inTime := f.Waited == 0 || t.delay.Since(probed) <= max(lateness.Acceptable, f.Waited/maxDelayShare)
	return &probeFailure{Result: p, script: script}, reached && inTime
}

// perform performs the transcript of the case.
func (t *trial) perform() *attempt {
	t.from = time.Now()
	t.options.Segments = t.how
	if t.Virtual {
		virtualtime.NextSecond()
	}
	t.options.Watch(t.observer)
	dial := dialer(t.target, t.Timeout)
	if t.c.Program == "" {
		t.play = play.Peers(t.ctx, t.script, dial, t.options)
	} else {
		var able bool
		if t.play, t.note, able = t.performProgram(t.ctx, t.c, t.script, t.target.Addr(), dial, t.options); !able {
			return t.verdict(verdict.Skipped, t.note)
		}
	}
	f := t.play.Failure
	if f != nil && t.note == "" {
		t.note = f.Error()
	}
	if t.observer != nil && f == nil && t.ctx.Err() == nil {
		t.options.Watch(nil)
		var err error
		again := func() error { return play.Peers(t.ctx, t.script, dial, t.options).Err() }
		if t.note, err = t.observer.After(again); errors.Is(err, watch.ErrNoCost) {
			return t.verdict(verdict.Inconclusive, err.Error())
		} else if err != nil && t.note == "" {
			t.note = "the conversation passed once, but not when it was repeated: " + err.Error()
		}
	}
	return nil
}

// alive checks whether the target runs and answers, unless the case passed or may stop the server intentionally. If the
// memory of the target grows, alive waits, so that the case that made it grow is the one that exceeds the limit.
func (t *trial) alive() *attempt {
	f := t.play.Failure
	if t.c.OwnServer || f == nil && t.note == "" && !t.checkTarget && !target.Growing(t.target) {
		return nil
	}
	if err := t.died(t.ctx, t.target, !t.own, f); err != nil {
		return t.crashed(err)
	}
	if t.barrier == nil || !t.checkTarget && (f == nil || f.Waited == 0) {
		return nil
	}
	limit := cmp.Or(t.Timeout, play.DefaultTimeout)
	if t.answers(t.ctx, t.target, limit) {
		return nil
	}
	// A late machine may also be the reason for a missing reply, so use a longer timeout then.
	if t.delay.Since(t.from) > 0 && t.answers(t.ctx, t.target, repeatFactor*limit) {
		return nil
	}
	// A process that prints a stack trace ends shortly after its connections are closed.
	if err := t.died(t.ctx, t.target, !t.own, f); err != nil {
		return t.crashed(err)
	}
	return t.verdict(verdict.Hung, fmt.Sprintf(
		"after this case the target answered no request on a new connection within %v: %s", limit, cmp.Or(t.note, "the case itself passed")))
}

// decide returns the verdict on a target that runs.
func (t *trial) decide() *attempt {
	f, p, delay := t.play.Failure, t.play, t.delay.Since(t.from)
	late := func(limit time.Duration) bool {
		return limit > 0 && delay > max(lateness.Acceptable, limit/maxDelayShare)
	}
	delayed := fmt.Sprintf("the machine that runs jobwire delayed it by up to %v, which is too long to check ",
		delay.Round(time.Millisecond))
	switch {
	case f == nil && t.note != "":
		return t.verdict(verdict.Failed, t.note)
	case f == nil && t.broken == nil && t.lacking == nil && p.Grade == transcript.NonStrict:
		// If the machine was late, a silence proves nothing: the server may have sent the preferred
		// reply, which had not arrived yet.
		if silence := p.Accepted.Choice.For; late(silence) {
			return t.verdict(verdict.Inconclusive, fmt.Sprintf("%sa silence of %v", delayed, silence))
		}
		return t.verdict(verdict.NonStrict, fmt.Sprintf("expected %s, got %s, which the case also accepts (line %d of the case file)",
			p.Accepted.Expected(), p.Accepted.Got(), p.Accepted.Choice.Line))
	case f == nil && (t.broken != nil || t.lacking != nil):
		return t.unfinished()
	case f == nil:
		t.play = nil
		note := ""
		if w := t.wrong; w != nil {
			note = fmt.Sprintf("apart from what the target does wrong in the setup %q: %v", w.name, w.breaks)
		}
		return t.verdict(verdict.Passed, note)
	case f.Reason == play.Unsupported:
		return t.verdict(verdict.Skipped, t.note)
	case f.Reason == play.Unreachable && !t.c.OwnServer:
		return t.verdict(verdict.Unreachable, f.Err.Error())
	}
	if limit := timed(t.script, f); late(limit) {
		return t.verdict(verdict.Inconclusive, fmt.Sprintf("%sa time limit of %v: %s", delayed, limit, t.note))
	}
	if f.Reason == play.TooLate {
		return t.verdict(verdict.Inconclusive, "the connection, the target or this machine is too slow for the case: "+t.note)
	}
	if (unanswered(f).text != "" || f.Rule() != "") && t.sentBack() {
		a := t.verdict(verdict.Inconclusive,
			fmt.Sprintf("the target breaks a rule in the setup %q (%v); then: %s", t.wrong.name, t.wrong.why, t.note))
		a.setup, a.sentBack = t.wrong, true
		return a
	}
	inCase := func(st transcript.Step) bool { return st.Setup == "" }
	if setup := f.Step.Setup; setup != "" && !slices.ContainsFunc(t.script.Steps[:f.Index], inCase) {
		a := t.verdict(verdict.Inconclusive, fmt.Sprintf("the setup %q did not work: %s", setup, t.note))
		a.setup = &brokenSetup{name: setup, failed: &probeFailure{Result: p, script: t.script}}
		return a
	}
	return t.verdict(verdict.Failed, t.note)
}

// sentBack reports whether the last message of the case breaks a rule that the target breaks in a setup: the case
// may have sent an illegal value that the target had sent.
func (t *trial) sentBack() bool {
	last := lastRequest(t.c, t.play).event
	if t.wrong == nil || last == nil {
		return false
	}
	var e *codec.Error
	session := t.c.Script.Protocol.NewSession(codec.Options{Waive: t.Waive})
	_, err := session.Decode(codec.Peer, last.Frame.Raw, new(codec.Frame))
	return errors.As(err, &e) && t.wrong.breaks.contain(breakKey{rule: e.Rule})
}

// maxDelayShare limits the scheduling delay of this machine relative to the time for which an expectation waits: if the
// delay is longer than that time divided by maxDelayShare, the wait proves nothing.
const maxDelayShare = 4

// timed returns the duration on which a failure depends: the time limit that was exceeded or, if there is none, the
// shortest silence or delay in the steps up to the failure. It returns 0 if there is none. An invalid message does not
// depend on time.
func timed(script *transcript.Script, f *play.Failure) time.Duration {
	shortest := f.Waited
	if shortest > 0 || f.Rule() != "" {
		return shortest
	}
	note := func(d time.Duration) {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	for _, st := range script.Steps[:min(f.Index+1, len(script.Steps))] {
		note(st.After)
		for _, c := range st.Choices {
			note(c.For)
		}
	}
	return shortest
}

package conform

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// worker runs cases one after the other, on a server of its own. It starts the server when a case first needs it.
type worker struct {
	*session
	ctx    context.Context
	server target.Target
	err    error    // the reason why the server could not be started
	recent []recent // the cases that ran on the server last, oldest first

	// reports whether a case runs again on a new server when it notices the crash; nil: none does
	elusive func(*Crash) bool
}

// recent is a case that ran on the server of a worker.
type recent struct {
	index int
	to    time.Time // the end of the case
}

// crashWindow limits the time between the end of a case and the detection of a crash that the case has caused.
const crashWindow = 500 * time.Millisecond

// maxSuspects is the maximum number of cases that run again to find the cause of a crash.
const maxSuspects = 8

// note records that a case that began at from has run on the server.
func (w *worker) note(index int, from time.Time) {
	w.recent = slices.DeleteFunc(w.recent, func(c recent) bool { return c.to.Before(from.Add(-crashWindow)) })
	if len(w.recent) == maxSuspects {
		w.recent = w.recent[1:]
	}
	w.recent = append(w.recent, recent{index, time.Now()})
}

// start returns the worker's server, and starts it if it was never started.
func (w *worker) start() (target.Target, error) {
	if w.server == nil && w.err == nil {
		w.server, w.err = w.Start(w.ctx)
	}
	return w.server, w.err
}

// ended returns the error of a server that has crashed, or nil.
func (w *worker) ended() error {
	if w.server == nil {
		return nil
	}
	select {
	case <-w.server.Done(): // nil, and therefore never ready, if the end of the target cannot be observed
		return w.server.Err()
	default:
		return nil
	}
}

// restart starts the server again. If that fails, it tries once more; then the next case reports the error.
func (w *worker) restart() {
	w.recent = nil
	if w.err = w.server.Restart(); w.err != nil && w.ctx.Err() == nil {
		w.err = w.server.Restart()
	}
}

func (w *worker) stop() {
	if w.server != nil {
		w.server.Stop()
	}
}

// connectAgain runs a case again that could not connect to a target to which other cases have connected. If it cannot
// connect again, although the target accepts a connection afterwards, the result is inconclusive, and the run goes on.
func (w *worker) connectAgain(c *Case) attempt {
	a := w.runCase(c)
	if a.Verdict != verdict.Unreachable {
		return a
	}
	if t, err := w.start(); err == nil && target.Alive(w.ctx, t) == nil {
		a.Verdict = verdict.Inconclusive
		a.Note = "the target accepted no connection for this case, twice, and one after it: " + a.Note
	}
	return a
}

// retries is the maximum number of times that a case is repeated because the machine was too slow.
const retries = 2

// attempt is the result of running a case once in all ways, with the data that shows whether the case may have crashed
// the target.
type attempt struct {
	Result
	shared bool // the case used the server of the worker
	// time limits may have made the case fail: it missed one, the machine was slow, or the case took longer than slowCase
	late  bool
	alone bool // the case crashed a new server, on which no other case had run
	from  time.Time
}

// runCase runs a case once in each way to divide messages into writes.
func (w *worker) runCase(c *Case) (a attempt) {
	from := time.Now()
	why := w.Profile.lacks(c)
	if c.Program != "" && w.Programs[c.Program] == nil {
		why = "the case needs a program with this role (--program): " + c.Program
	}
	if why != "" {
		a.Verdict, a.Note = verdict.Skipped, why
	} else {
		a = w.runWays(c, w.segmentations(c))
	}
	a.Case, a.from, a.Took = c, from, time.Since(from)
	if w.Command != "" {
		a.Command = w.Command + " --run " + c.selector()
	}
	if w.OmitPlay {
		a.Play, a.script = nil, nil
	}
	if a.Play != nil {
		w.kept.Add(int64(a.Play.Cut(w.keep())))
	}
	return a
}

// segmentations returns the ways to divide the messages of a case into writes. The case runs once in each way.
func (w *worker) segmentations(c *Case) []play.Segmentation {
	switch {
	case c.Segments != nil:
		return []play.Segmentation{*c.Segments}
	case len(w.Segments) == 0 || c.observed():
		return []play.Segmentation{play.Plain}
	}
	return w.Segments
}

// runWays runs a case in each of the ways, until it fails in one.
func (w *worker) runWays(c *Case, ways []play.Segmentation) (a attempt) {
	for i, how := range ways {
		if relayed := c.Program != "" && i > 0; how == play.Coalesced &&
			(relayed || slices.Contains(ways[:i], play.Plain) && !play.Joins(a.script)) {
			continue // the messages would be written as before: a relay does not combine those of the program or the server
		}
		once := w.runWay(c, how)
		passes := func(how play.Segmentation) bool { return w.try(c, how).Verdict == verdict.Passed }
		switch { // if only other writes led to the preferred reply, check the silence again: the reply may have been late
		case acceptedSilence(a) && once.Verdict == verdict.Passed && passes(a.Segments):
			a = once
		case a.Verdict == verdict.Passed && acceptedSilence(once) && passes(how):
			once = a
		}
		once.Segments = how
		switch {
		case a.Verdict == verdict.NonStrict && once.Verdict == verdict.Passed:
			continue // keep the non-strict result, because the reply may depend on time
		case i > 0 && once.Verdict == verdict.Failed:
			once.Verdict = verdict.Inconsistent
			once.Note = fmt.Sprintf("the result depends on how the messages are divided into writes to the socket: "+
				"%s with %s writes, failed with %s writes: %s", a.Verdict, ways[0], how, once.Note)
		}
		if a = once; !a.Verdict.Passes() {
			break
		}
	}
	return a
}

// runWay runs a case in one way. On a busy machine the result may say nothing, the preferred reply may be late, or the
// processor slow: then the case runs again.
func (w *worker) runWay(c *Case, how play.Segmentation) (a attempt) {
	for try := 0; ; try++ {
		a = w.try(c, how)
		if a.Verdict == verdict.Crashed && a.shared && w.elusive != nil && w.elusive(a.Crash) {
			w.restart()
			a = w.try(c, how)
			a.alone = a.Verdict == verdict.Crashed
		}
		late := a.Verdict == verdict.Inconclusive && a.setup == nil
		unsure := try == 0 && (acceptedSilence(a) || a.Verdict == verdict.Failed && c.compares())
		if !late && !unsure || try == retries {
			return a
		}
	}
}

// acceptedSilence reports whether the case accepted that the server sent nothing, although the specification prefers a
// reply.
func acceptedSilence(a attempt) bool {
	return a.Verdict == verdict.NonStrict && a.Play.Accepted.Choice.For > 0
}

// answers reports whether a target answers the barrier request on a new connection.
func (s *session) answers(ctx context.Context, t target.Target, limit time.Duration) bool {
	return play.Peers(ctx, s.barrier, dialer(t, limit), probeOptions(limit)).Failure == nil
}

// died returns the error of a target that has crashed, or nil. f is the failure of the conversation, or nil. The exit
// of a process is noticed late, and waiting for it would make each failing case take [target.Died]'s 200 ms. The server
// of a worker that has just sent another reply than expected, or answers a new connection, runs; if it crashes
// afterwards, findCause finds the case.
func (s *session) died(ctx context.Context, t target.Target, shared bool, f *play.Failure) error {
	replied := f != nil && (f.Reason == play.Mismatched || f.Reason == play.Broken)
	connected := f == nil || f.Reason != play.Unreachable
	if shared && !s.checkTarget && !target.Growing(t) &&
		(replied || connected && s.barrier != nil && s.answers(ctx, t, aliveTimeout)) {
		return nil
	}
	return target.Died(t)
}

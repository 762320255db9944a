package triage

import (
	"fmt"
	"time"

	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// A fault counts as reproduced if it appears in minReproductions of at most tries attempts.
const (
	tries            = 5
	minReproductions = 3
)

// examine reproduces and minimizes a candidate, and reports a finding if the failure is reproducible, new, and absent
// from the reference server.
func (e *examiner) examine(candidate *Candidate) {
	if candidate.Fault.Oracle == exec.Memory {
		defer e.leaks.Add(-1)
	}
	e.replay.timeout = e.cfg.Timeout
	e.replay.setClock(candidate.Log.Clock)
	e.replay.steady = candidate.Log.Steady
	result, fault := e.resultOf(candidate)
	if result == settled && fault != nil && !candidate.Fault.Same(fault) {
		result = notReproduced // what was examined is another failure, which may have another cause
	}
	e.replay.setClock(0)
	if e.stopped() && result != settled {
		result = interrupted
	}
	e.mu.Lock()
	e.queue.examined(candidate.of, result)
	e.mu.Unlock()
}

// resultOf examines a candidate, first on a server that inputs share. It returns the result, and the failure that was
// reproduced.
func (e *examiner) resultOf(candidate *Candidate) (outcome, *exec.Fault) {
	e.run.Doing("reproducing")
	defer func() {
		e.replay.asObserved = false
		e.replay.unshare()
	}()
	if candidate.of.fromLog {
		return e.resultFromLog(candidate)
	}
	if e.replay.share(candidate.Fault); e.replay.shared {
		if found := e.single(candidate.last(), candidate.Fault); candidate.Fault.Same(found.fault) {
			if result := e.examineInput(candidate, &found); result != notReproduced {
				return result, found.fault
			}
		}
		e.replay.unshare()
	}
	found := e.alone(candidate)
	switch {
	case found.fault != nil:
		return e.examineInput(candidate, &found), found.fault
	case candidate.Fault.Oracle == exec.Memory || e.cfg.Fixed: // at a fixed address the server still has the names of the earlier inputs
		return notReproduced, nil
	}
	return needsLog, nil
}

// resultFromLog is resultOf for a failure that did not appear with the last input alone: it repeats the log.
func (e *examiner) resultFromLog(candidate *Candidate) (outcome, *exec.Fault) {
	found := e.fromLog(candidate)
	switch {
	case found.fault == nil:
		e.run.Logf("not reproduced: %s, after %s; the last: %s", candidate.Fault, counted(len(candidate.Log.Entries)),
			candidate.last())
		return notReproduced, nil
	case found.sequence == nil:
		return e.examineInput(candidate, &found), found.fault
	case !candidate.of.sequences:
		return deferred, found.fault
	}
	e.run.Logf("reproduced with %s: %s", counted(len(found.sequence)), found.fault)
	return e.examineSequence(candidate, &found), found.fault
}

// examineInput minimizes an input that causes a failure, tries it on new servers, and reports the finding.
func (e *examiner) examineInput(candidate *Candidate, found *reproduction) outcome {
	in, got := found.in, found.fault
	e.run.Logf("reproduced with a sequence of %s: %s", steps(len(in.Steps)), got)
	if e.isDisputed(in, got) {
		return settled
	}
	if inputFree(got) && e.duplicate(candidate, in, got) { // the fault alone determines the key
		return settled
	}
	e.run.Doing("minimizing")
	small, known := e.minimize(candidate, in, got)
	if known {
		e.run.Logf("a duplicate: %s", got)
		return settled
	}
	e.replay.timeout = e.cfg.Timeout
	shared := e.replay.shared
	e.replay.unshare()
	n, of, last := e.count(small, got)
	if last == nil && shared {
		return notReproduced // the input needs the messages that precede each input on such a server
	}
	if last == nil && small != in {
		e.run.Logf("the minimized message sequence causes this failure only %d of %d times: %s", n, of, got)
		small = in
		n, of, last = e.count(in, got)
	}
	switch {
	case e.stopped():
		return interrupted
	case last == nil:
		e.run.Logf("not counted as reproduced, because it appeared only %d of %d times: %s", n, of, got)
		return notReproduced
	case e.isDisputed(small, last):
		return settled
	case e.stopped():
		return interrupted
	}
	v := e.disclosureOf(small, last)
	return e.report(candidate, &Finding{Key: key(e.cfg.Protocol, small, v), cause: e.causeOf(small, v), Fault: v,
		Input: small, Shown: n, Tried: of, Inputs: 1, Log: candidate.Log})
}

// causeOf returns the cause of the fault of a minimized input. If a simpler form of the input shows another wrong reply
// at the same step or before, it returns the cause of that one: the server's state was wrong before the fault appeared.
func (e *examiner) causeOf(small *input.Input, v *exec.Fault) cause {
	if v.Oracle != exec.Law {
		return causeOf(e.cfg.Protocol, small, v)
	}
	// The step of a fault is known only if the messages are sent one after the other.
	try := func(in *input.Input, until int) {
		if first := e.replay.test(v)(in); first != nil && first.Oracle == exec.Law && first.Step <= until {
			small, v = in, first
		}
	}
	if small.Mode != input.OneByOne {
		in := small.Clone()
		in.Mode = input.OneByOne
		try(in, len(in.Steps))
	}
	for i := range small.Steps {
		for _, in := range withSimplerType(e.cfg.Protocol, small, i) {
			try(in, v.Step)
		}
	}
	return causeOf(e.cfg.Protocol, small, v)
}

// examineSequence examines a failure that needs several inputs one after the other. Its finding has the log of these
// inputs, which can be replayed.
func (e *examiner) examineSequence(candidate *Candidate, found *reproduction) outcome {
	fd := &Finding{Key: key(e.cfg.Protocol, found.in, found.fault)}
	if !found.fault.Timed {
		fd.Key += "|after other inputs"
	}
	if e.isKnown(candidate, fd) {
		e.run.Logf("a duplicate: %s", found.fault)
		return settled
	}
	shows := func(l *replayer) func() *exec.Fault {
		return func() *exec.Fault {
			v, _ := l.entries(found.sequence, found.fault)
			return v
		}
	}
	n, of, last := e.repeat(found.fault, shows(e.replay))
	if last == nil {
		e.run.Logf("not counted as reproduced, because it appeared only %d of %d times: %s", n, of, found.fault)
		return notReproduced
	}
	if e.cfg.Reference != nil {
		ref := e.reference()
		defer ref.discard()
		if v := shows(ref)(); found.fault.Same(v) {
			e.run.Logf("not counted, because the reference server fails in the same way: %s", v)
			e.update(func(c *Counts) { c.ReferenceFails++ })
			return settled
		}
	}
	shown := *last
	shown.Conn, shown.Step = -1, -1
	log := *candidate.Log
	log.Entries = found.sequence
	fd.Fault, fd.Shown, fd.Tried, fd.Inputs, fd.Log = &shown, n, of, len(found.sequence), &log
	if fd.Input = input.TraitsOf(e.cfg.Protocol).Join(found.sequence); shown.Timed {
		fd.cause = causeOf(e.cfg.Protocol, fd.Input, &shown)
	}
	return e.report(candidate, fd)
}

// isDisputed reports whether the reference server has the fault too. If so, it counts the candidate as such.
func (e *examiner) isDisputed(in *input.Input, v *exec.Fault) bool {
	if !e.disputed(in, v) {
		return false
	}
	e.run.Logf("not counted, because the reference server fails in the same way: %s", v)
	e.update(func(c *Counts) { c.ReferenceFails++ })
	return true
}

// minimizeTimeout is the timeout of a reply while an input is minimized. Each attempt that still causes a hang takes
// this long.
const minimizeTimeout = 150 * time.Millisecond

// minimize returns the smallest input that it finds with which the fault appears. As soon as the input has no messages
// that the fault does not need, minimize compares it with the findings, and known reports that it is one of them.
func (e *examiner) minimize(candidate *Candidate, in *input.Input, got *exec.Fault) (small *input.Input, known bool) {
	test := e.replay.test(got)
	budget := e.cfg.Minimize
	switch got.Oracle {
	case exec.HangConn, exec.HangAll, exec.Law: // count later runs the minimized input with the full timeout
		e.replay.timeout = min(e.replay.timeout, minimizeTimeout)
		budget /= 2
	case exec.Framing, exec.Disclosure:
		budget /= 2
	}
	// Reserve half of the remaining time for reproducing the minimized input.
	until := time.Now().Add(e.left() / 2)
	last := got
	m := minimizer{best: in, budget: budget, proto: e.cfg.Protocol,
		stop: func() bool { return e.stopped() || known || time.Now().After(until) },
		holds: func(d *input.Input) bool {
			v := test(d)
			if !got.Same(v) {
				return false
			}
			last = v
			return true
		},
		fewest: func(d *input.Input) { known = !inputFree(last) && e.duplicate(candidate, d, last) }}
	return m.minimize(), known
}

// disputed reports whether the reference server has the fault too. The oracle may then be wrong.
func (e *examiner) disputed(in *input.Input, v *exec.Fault) bool {
	if e.cfg.Reference == nil {
		return false
	}
	ref := e.reference()
	defer ref.discard()
	for range 2 {
		if v.Same(ref.test(v)(in)) {
			return true
		}
	}
	return false
}

// reference returns a replayer that runs inputs on the reference server.
func (e *examiner) reference() *replayer {
	cfg := e.cfg
	cfg.Known, cfg.Fixed = input.Known{}, false
	l := e.replayer(&cfg)
	l.servers = &e.references
	l.asObserved, l.steady = e.replay.asObserved, e.replay.steady
	return l
}

// count runs an input several times, like repeat. A memory leak is tried once, because each attempt consists of many
// executions.
func (e *examiner) count(in *input.Input, v *exec.Fault) (n, of int, last *exec.Fault) {
	if v.Oracle == exec.Memory {
		if last = e.replay.grows(in); last != nil {
			n = 1
		}
		return n, 1, last
	}
	test := e.replay.test(v)
	return e.repeat(v, func() *exec.Fault { return test(in) })
}

// repeat calls a test several times. It returns how often the fault v appeared, the number of attempts, and the last
// fault, which is nil if the fault did not appear in minReproductions attempts. It stops as soon as the result is
// certain. The last attempt runs on a server with normal clock speed.
func (e *examiner) repeat(v *exec.Fault, test func() *exec.Fault) (n, of int, last *exec.Fault) {
	clock := e.replay.clock
	defer e.replay.setClock(clock)
	for of < tries && n < minReproductions && of-n <= tries-minReproductions && !e.stopped() {
		if n == minReproductions-1 {
			e.replay.setClock(0)
		}
		of++
		if got := test(); v.Same(got) {
			if n++; n == minReproductions {
				last = got
			}
		}
	}
	return n, of, last
}

// duplicate reports whether the fault of an input is already a finding, and if so, assigns the candidate to it.
func (e *examiner) duplicate(candidate *Candidate, in *input.Input, got *exec.Fault) bool {
	fd := &Finding{Key: key(e.cfg.Protocol, in, got)}
	if e.isUnproved(fd.Key) && e.disclosureOf(in, got).Proved {
		return false // this input proves more than the input of the finding
	}
	return e.isKnown(candidate, fd)
}

// report completes and reports the finding of a reproduced candidate, unless it is a duplicate.
func (e *examiner) report(candidate *Candidate, fd *Finding) outcome {
	fd.Reproduced = true
	if e.isKnown(candidate, fd) {
		e.run.Logf("a duplicate: %s", fd.Fault)
		return settled
	}
	if e.cfg.First && !e.first.CompareAndSwap(false, true) {
		return interrupted
	}
	fd.Name = nameOf(e.cfg.Protocol, fd)
	e.replay.setClock(0)
	if fd.Of == nil {
		e.update(func(c *Counts) { c.Findings++ })
	}
	if e.describe(fd); e.cfg.Found != nil {
		e.cfg.Found(fd)
	}
	e.mu.Lock()
	e.assign(candidate.of, fd)
	e.mu.Unlock()
	if e.cfg.First {
		e.run.End()
	}
	return settled
}

// steps returns the text for a number of steps.
func steps(n int) string {
	if n == 1 {
		return "1 message or action"
	}
	return fmt.Sprintf("%d messages and actions", n)
}

// counted returns the text for a number of message sequences.
func counted(n int) string {
	if n == 1 {
		return "1 message sequence"
	}
	return fmt.Sprintf("%d message sequences", n)
}

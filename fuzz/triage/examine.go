package triage

import (
	"fmt"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"time"
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
	e.run.Doing("reproducing")
	e.replay.timeout = e.cfg.Timeout
	e.replay.setClock(candidate.Log.Clock)
	defer e.replay.setClock(0)
	in, got := e.reproduce(candidate)
	if e.stopped() {
		e.again(candidate)
		return
	}
	if got == nil {
		e.run.Logf("not reproduced: %s, after %s; the last: %s", candidate.Fault, counted(len(candidate.Log.Entries)), candidate.last())
		e.update(func(c *Counts) { c.NotReproduced++ })
		return
	}
	e.run.Logf("reproduced with a sequence of %s: %s", steps(len(in.Steps)), got)
	if e.disputed(in, got) {
		e.run.Logf("not counted, because the reference server fails in the same way: %s", got)
		e.update(func(c *Counts) { c.ReferenceFails++ })
		return
	}
	if e.duplicate(candidate, in, got) {
		return
	}
	e.run.Doing("minimizing")
	small := e.minimize(in, got)
	e.replay.timeout = e.cfg.Timeout
	n, of, last := e.count(small, got)
	if last == nil && small != in {
		e.run.Logf("the minimized message sequence causes this failure only %d of %d times: %s", n, of, got)
		small = in
		n, of, last = e.count(in, got)
	}
	switch {
	case e.stopped():
		e.again(candidate)
	case last == nil:
		e.run.Logf("not counted as reproduced, because it appeared only %d of %d times: %s", n, of, got)
		e.update(func(c *Counts) { c.NotReproduced++ })
	case e.disputed(small, last):
		e.run.Logf("not counted, because the reference server fails in the same way: %s", last)
		e.update(func(c *Counts) { c.ReferenceFails++ })
	case e.stopped():
		e.again(candidate)
	default:
		e.report(candidate, small, e.disclosureOf(small, last), n, of)
	}
}

// again returns a candidate to the queue because its examination was not completed.
func (t *Triage) again(candidate *Candidate) {
	t.mu.Lock()
	t.waiting = append(t.waiting, candidate)
	t.mu.Unlock()
}

// minimizeTimeout is the timeout of a reply while an input is minimized. Each attempt that still causes a hang takes
// this long.
const minimizeTimeout = 150 * time.Millisecond

// minimize returns the smallest input that it finds with which the fault appears.
func (e *examiner) minimize(in *input.Input, got *exec.Fault) *input.Input {
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
	stop := func() bool { return e.stopped() || time.Now().After(until) }
	return Minimize(e.cfg.Protocol, in, budget, stop, func(d *input.Input) bool { return got.Same(test(d)) })
}

// disputed reports whether the reference server has the fault too. The oracle may then be wrong.
func (e *examiner) disputed(in *input.Input, v *exec.Fault) bool {
	if e.cfg.Reference == nil {
		return false
	}
	ref := e.reference()
	defer ref.close()
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
	cfg.Start, cfg.Known, cfg.Fixed = cfg.Reference, input.Known{}, false
	return e.replayer(&cfg)
}

// count runs an input several times. It returns how often the fault appeared, the number of attempts, and the last
// fault, which is nil if the fault did not appear in minReproductions attempts. It stops as soon as the result is
// certain. The last attempt runs on a server with normal clock speed. A memory leak is tried once, because each attempt
// consists of many executions.
func (e *examiner) count(in *input.Input, v *exec.Fault) (n, of int, last *exec.Fault) {
	if v.Oracle == exec.Memory {
		if last = e.replay.grows(in); last != nil {
			n = 1
		}
		return n, 1, last
	}
	test := e.replay.test(v)
	clock := e.replay.clock
	defer e.replay.setClock(clock)
	for of < tries && n < minReproductions && of-n <= tries-minReproductions && !e.stopped() {
		if n == minReproductions-1 {
			e.replay.setClock(0)
		}
		of++
		if got := test(in); v.Same(got) {
			if n++; n == minReproductions {
				last = got
			}
		}
	}
	return n, of, last
}

// duplicate reports whether the fault is already a finding. It detects this before the input is minimized only if the
// fault alone determines the key.
func (e *examiner) duplicate(candidate *Candidate, in *input.Input, got *exec.Fault) bool {
	if !inputFree(got) {
		return false
	}
	fd := &Finding{Key: key(e.cfg.Protocol, in, got)}
	if e.isUnproved(fd.Key) && e.disclosureOf(in, got).Proved {
		return false // this input proves more than the input of the finding
	}
	return e.isKnown(candidate, fd)
}

// report reports a finding for a reproduced candidate, unless the finding is a duplicate.
func (e *examiner) report(candidate *Candidate, in *input.Input, v *exec.Fault, shown, tried int) {
	fd := &Finding{Key: key(e.cfg.Protocol, in, v), cause: causeOf(e.cfg.Protocol, in, v), Fault: v, Input: in, Shown: shown,
		Tried: tried, Reproduced: true, Inputs: 1, Log: candidate.Log, signatures: map[string]bool{candidate.signature: true}}
	if e.isKnown(candidate, fd) {
		e.run.Logf("a duplicate: %s", v)
		return
	}
	if e.cfg.First && !e.first.CompareAndSwap(false, true) {
		e.again(candidate)
		return
	}
	fd.Name = nameOf(e.cfg.Protocol, fd)
	e.replay.setClock(0)
	if fd.Of == nil {
		e.update(func(c *Counts) { c.Findings++ })
	}
	e.describe(fd)
	if e.cfg.Found != nil {
		e.cfg.Found(fd)
	}
	e.mu.Lock()
	e.setOutcome(candidate)
	e.mu.Unlock()
	if e.cfg.First {
		e.run.End()
	}
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

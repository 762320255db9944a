package triage

import (
	"time"

	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/reduce"
)

// reproduce repeats the log of a candidate on new servers and reduces it to the inputs that the failure needs. It
// returns one input that causes the failure, with the fault, or nil if the failure does not appear again.
func (e *examiner) reproduce(candidate *Candidate) (*input.Input, *exec.Fault) {
	v := candidate.Fault
	if v.Oracle == exec.Memory {
		return e.reproduceLeak(candidate)
	}
	if in, got := e.single(candidate.last(), v); got != nil {
		return in, got
	}
	if e.cfg.Fixed {
		return nil, nil // the earlier inputs cannot be repeated, because the server still has their names
	}
	shows := func(entries []input.Entry) (*exec.Fault, int) { return e.replay.entries(entries, v) }
	if v.Oracle == exec.Descriptors {
		shows = func(entries []input.Entry) (*exec.Fault, int) {
			if e.replay.leaksDescriptors(entries) {
				return v, len(entries)
			}
			return nil, 0
		}
	}
	entries, got := e.reduce(candidate, shows)
	if len(entries) == 0 {
		return nil, nil
	}
	if len(entries) == 1 {
		if in, got := e.single(entries[0].Input, v); got != nil {
			return in, got
		}
	}
	in := input.TraitsOf(e.cfg.Protocol).Join(input.Inputs(entries))
	if again := e.replay.test(got)(in); again != nil && matches(again, v) {
		return in, again
	}
	return nil, nil
}

// single runs one input in each variant in which it may have caused the failure: unchanged, with the preamble, and with
// several messages in one write. It runs some variants several times, because the result may depend on chance. It
// returns the variant that causes the failure, with the fault, or nil.
func (e *examiner) single(in *input.Input, v *exec.Fault) (*input.Input, *exec.Fault) {
	if len(in.Steps) == 0 {
		return nil, nil
	}
	test := e.replay.test(v)
	forms := input.TraitsOf(e.cfg.Protocol).Alone(in)
	last := forms[len(forms)-1]
	forms = append(forms, last)
	if d := last.Together(input.Pipelined); d != nil {
		joined := last.Together(input.Joined)
		forms = append(forms, joined, d, joined, d)
	}
	for _, d := range forms {
		if e.stopped() {
			break
		}
		if got := test(d); got != nil && matches(got, v) {
			return d, got
		}
	}
	return nil, nil
}

// reduce returns the entries of a log that a failure needs, with the fault, or nil if the failure does not appear.
// shows runs entries on a new server, and returns the fault and the number of entries that it has run.
func (e *examiner) reduce(candidate *Candidate, shows func([]input.Entry) (*exec.Fault, int)) ([]input.Entry, *exec.Fault) {
	var best []input.Entry
	var fault *exec.Fault
	repeat := 1 // number of attempts with the same entries
	once := func(entries []input.Entry) bool {
		if len(entries) == 0 || e.stopped() {
			return false
		}
		got, n := shows(entries)
		if got == nil || !matches(got, candidate.Fault) {
			return false
		}
		best, fault = entries[:n], got
		return true
	}
	holds := func(entries []input.Entry) bool {
		for range repeat {
			if once(entries) {
				return true
			}
		}
		return false
	}
	all := candidate.Log.Entries
	shown := false
	for n := max(2, len(all)-candidate.From); !shown; n *= 2 {
		part := all[max(0, len(all)-n):]
		if shown = holds(part) || holds(input.Together(part, input.Pipelined)) || holds(input.Together(part, input.Joined)); n >= len(all) {
			break
		}
	}
	if !shown && candidate.Fault.Ends() { // after memory corruption, a server does not always crash
		repeat = maxCrashReplays
		shown = holds(all)
	}
	if !shown {
		return nil, nil
	}
	end := time.Now().Add(min(e.left()/2, e.cfg.Minimize))
	stop := func() bool { return e.stopped() || time.Now().After(end) }
	// First try the last entry alone. The failure often needs only this entry.
	if last := best[len(best)-1:]; len(best) > 1 && holds(last) {
		return best, fault
	}
	reduce.List(best, stop, func(entries []input.Entry) bool { return holds(entries) })
	if len(best) > maxJoined {
		return nil, nil
	}
	return best, fault
}

// maxCrashReplays is how many times a log is repeated if no server crashes.
const maxCrashReplays = 8

// maxJoined is the number of inputs that can be combined to one input.
const maxJoined = 40

// reproduceLeak finds, by bisection, the input of a candidate that leaks memory. It returns the input and the fault, or
// nil if no memory leaks.
func (e *examiner) reproduceLeak(candidate *Candidate) (*input.Input, *exec.Fault) {
	l, entries := e.replay, candidate.Log.Entries
	if !l.leaks(entries) {
		return nil, nil
	}
	for len(entries) > 1 && !e.stopped() {
		half, rest := entries[:len(entries)/2], entries[len(entries)/2:]
		if entries = half; !l.leaks(half) {
			entries = rest
		}
	}
	l.leakRuns = 0
	return entries[0].Input, l.leaksMemory(entries[0].Input)
}

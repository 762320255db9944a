package triage

import (
	"slices"
	"time"

	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/reduce"
)

// reproduction is an input, or a sequence of inputs, that causes a failure on a new server.
type reproduction struct {
	in    *input.Input
	fault *exec.Fault

	// Entries with which the failure appears, if it does not appear with one input that contains all their messages. in is
	// then the last of them.
	sequence []input.Entry
}

// alone repeats the last input of a candidate on new servers: first thoroughly, and then as the worker ran it. It returns
// what causes the same failure again or, if nothing does, a related failure. The result has no fault if no such failure
// appears.
func (e *examiner) alone(candidate *Candidate) (r reproduction) {
	if candidate.Fault.Oracle == exec.Memory {
		return e.reproduceLeak(candidate)
	}
	for _, e.replay.asObserved = range []bool{false, true} {
		if r = e.single(candidate.last(), candidate.Fault); r.fault != nil || e.stopped() {
			break
		}
	}
	return r
}

// fromLog is like alone, but repeats the log of the candidate and reduces it to the inputs that the failure needs.
func (e *examiner) fromLog(candidate *Candidate) (r reproduction) {
	for _, e.replay.asObserved = range []bool{false, true} {
		if r = e.fromLogInMode(candidate); r.fault != nil || e.stopped() {
			break
		}
	}
	return r
}

// fromLogInMode is fromLog in one mode of the replayer.
func (e *examiner) fromLogInMode(candidate *Candidate) reproduction {
	v := candidate.Fault
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
		return reproduction{}
	}
	if len(entries) == 1 {
		if single := e.single(entries[0].Input, v); single.fault != nil {
			return single
		}
	} else if joined := e.joined(entries, v); joined.fault != nil {
		return joined
	}
	if !candidate.of.sequences {
		return reproduction{in: candidate.last(), fault: got, sequence: entries}
	}
	entries = e.minimizeSequence(slices.Clone(entries), got)
	if joined := e.joined(entries, v); joined.fault != nil {
		return joined
	}
	return reproduction{in: entries[len(entries)-1].Input, fault: got, sequence: entries}
}

// joined runs the inputs of entries as one input. It returns the input if it causes the failure v.
func (e *examiner) joined(entries []input.Entry, v *exec.Fault) reproduction {
	mode := e.replay.asObserved
	for _, e.replay.asObserved = range []bool{false, mode} {
		if len(entries) > maxJoined {
			break
		}
		in := input.TraitsOf(e.cfg.Protocol).Join(entries)
		if again := e.replay.test(v)(in); again != nil && related(again, v) {
			return reproduction{in: in, fault: again}
		}
	}
	e.replay.asObserved = mode
	return reproduction{}
}

// minimizeSequence removes the steps of the inputs of entries that the failure v does not need.
func (e *examiner) minimizeSequence(entries []input.Entry, v *exec.Fault) []input.Entry {
	end := time.Now().Add(min(e.left()/4, e.cfg.Minimize))
	stop := func() bool { return e.stopped() || time.Now().After(end) }
	for i := len(entries) - 1; i >= 0; i-- {
		whole := entries[i].Input
		reduce.List(whole.Steps, stop, func(steps []input.Step) bool {
			before := entries[i].Input
			less := whole.Clone()
			less.Steps = steps
			entries[i].Input = less
			if got, _ := e.replay.entries(entries, v); v.Same(got) {
				return true
			}
			entries[i].Input = before
			return false
		})
	}
	return entries
}

// single runs one input in each variant in which it may have caused the failure: without its pauses, which take most of
// the time and which few failures need, unchanged, with the preamble, and with several messages in one write. It runs some variants several times, because the result may depend on chance. It
// returns the first variant that causes the same failure or, if none does, the first that causes a related one.
func (e *examiner) single(in *input.Input, v *exec.Fault) (found reproduction) {
	if len(in.Steps) == 0 {
		return found
	}
	test := e.replay.test(v)
	var forms []*input.Input
	if in.Waits() > 0 {
		forms = append(forms, in.WithoutPauses())
	}
	forms = append(forms, input.TraitsOf(e.cfg.Protocol).Alone(in)...)
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
		got := test(d)
		if v.Same(got) {
			return reproduction{in: d, fault: got}
		}
		if found.fault == nil && got != nil && related(got, v) {
			found = reproduction{in: d, fault: got}
		}
	}
	return found
}

// reduce returns the entries of a log that a failure needs, with the fault, or nil if the failure does not appear.
// shows runs entries on a new server, and returns the fault and the number of entries that it has run.
func (e *examiner) reduce(candidate *Candidate, shows func([]input.Entry) (*exec.Fault, int)) ([]input.Entry,
	*exec.Fault) {
	var best []input.Entry
	var fault *exec.Fault
	repeat := 1 // number of attempts with the same entries
	once := func(entries []input.Entry) bool {
		if len(entries) == 0 || e.stopped() {
			return false
		}
		got, n := shows(entries)
		if got == nil || !related(got, candidate.Fault) {
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
		if shown = holds(part) || holds(input.Together(part, input.Pipelined)) ||
			holds(input.Together(part, input.Joined)); n >= len(all) {
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
	return best, fault
}

// maxCrashReplays is how many times a log is repeated if no server crashes.
const maxCrashReplays = 8

// maxJoined is the number of inputs that can be combined to one input.
const maxJoined = 40

// reproduceLeak finds, by bisection, the input of a candidate that leaks memory.
func (e *examiner) reproduceLeak(candidate *Candidate) reproduction {
	l, entries := e.replay, candidate.Log.Entries
	if !l.leaks(entries) {
		return reproduction{}
	}
	for len(entries) > 1 && !e.stopped() {
		half, rest := entries[:len(entries)/2], entries[len(entries)/2:]
		if entries = half; !l.leaks(half) {
			entries = rest
		}
	}
	l.leakRuns = 0
	return reproduction{in: entries[0].Input, fault: l.leaksMemory(entries[0].Input)}
}

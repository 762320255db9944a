package fuzz

import (
	"slices"
	"time"
)

// reproduce runs what a server was sent before a failure on new servers, and removes from it what the failure does not need. It
// returns one input that causes the failure, or nil.
func (t *examiner) reproduce(m *candidate) (*Input, *Fault) {
	v := m.fault
	if v.Oracle == Memory {
		return t.reproduceLeak(m)
	}
	if c, got := t.single(m.last(), v); got != nil {
		return c, got
	}
	if t.f.cfg.Fixed {
		return nil, nil // what came before cannot be repeated without its names
	}
	shows := func(entries []Entry) (*Fault, int) { return t.replay.entries(entries, v) }
	if v.Oracle == Descriptors {
		shows = func(entries []Entry) (*Fault, int) {
			if t.replay.leaksDescriptors(entries) {
				return v, len(entries)
			}
			return nil, 0
		}
	}
	entries, got := t.reduce(m, shows)
	if len(entries) == 0 {
		return nil, nil
	}
	if len(entries) == 1 {
		if c, got := t.single(entries[0].Input, v); got != nil {
			return c, got
		}
	}
	c := traitsOf(t.f.cfg.Protocol).join(inputs(entries))
	if again := t.replay.test(got)(c); again != nil && again.matches(v) {
		return c, again
	}
	return nil, nil
}

// single runs one input in the forms that it may have had, a few times, because much depends on chance.
func (t *examiner) single(c *Input, v *Fault) (*Input, *Fault) {
	if len(c.Steps) == 0 {
		return nil, nil
	}
	test := t.replay.test(v)
	forms := traitsOf(t.f.cfg.Protocol).alone(c)
	last := forms[len(forms)-1]
	forms = append(forms, last)
	if ahead := last.pipelined(); ahead != nil {
		forms = append(forms, ahead, ahead)
	}
	for _, d := range forms {
		if t.f.stopped() {
			break
		}
		if got := test(d); got != nil && got.matches(v) {
			return d, got
		}
	}
	return nil, nil
}

// reduce returns the entries of a log that a failure needs. shows runs entries and returns the fault and how many entries it took.
func (t *examiner) reduce(m *candidate, shows func([]Entry) (*Fault, int)) ([]Entry, *Fault) {
	f := t.f
	var best []Entry
	var fault *Fault
	holds := func(entries []Entry) bool {
		if len(entries) == 0 || f.stopped() {
			return false
		}
		got, n := shows(entries)
		if got == nil || !got.matches(m.fault) {
			return false
		}
		best, fault = entries[:n], got
		return true
	}
	all := m.log.Entries
	shown := false
	for n := max(2, len(all)-m.from); !shown; n *= 2 {
		part := all[max(0, len(all)-n):]
		if shown = holds(part) || holds(pipelined(part)); n >= len(all) {
			break
		}
	}
	if !shown {
		return nil, nil
	}
	end := time.Now().Add(min(f.left()/2, f.cfg.Minimize))
	stop := func() bool { return f.stopped() || time.Now().After(end) }
	// The failure may need the last entry alone, and it may have been noticed late.
	if last := best[len(best)-1:]; len(best) > 1 && holds(last) {
		return best, fault
	}
	ddmin(best, stop, func(entries []Entry) bool { return holds(entries) })
	if len(best) > maxJoined {
		return nil, nil
	}
	return best, fault
}

// maxJoined is how many inputs of a log one input may join.
const maxJoined = 40

// ddmin removes parts of a list as long as the condition is true of the rest: halves at first, then smaller parts, and single
// elements at last. It returns the smallest list.
func ddmin[E any](list []E, stop func() bool, holds func([]E) bool) []E {
	for n := (len(list) + 1) / 2; n > 0 && len(list) > 1 && !stop(); {
		smaller := false
		for at := len(list) - n; at > -n && !stop(); at -= n {
			from := max(0, at)
			if less := slices.Delete(slices.Clone(list), from, min(at+n, len(list))); len(less) > 0 && holds(less) {
				list, smaller = less, true
				at = min(at, len(list))
			}
		}
		if n == 1 && !smaller {
			break
		}
		n = max(1, n/2)
	}
	return list
}

// reproduceLeak returns the input, of those that were repeated together, that leaks memory alone.
func (t *examiner) reproduceLeak(m *candidate) (*Input, *Fault) {
	entries := m.log.Entries
	for len(entries) > 1 && !t.f.stopped() {
		half := entries[:len(entries)/2]
		if entries = entries[len(half):]; t.replay.growth(half) > t.replay.growth(entries) {
			entries = half
		}
	}
	t.replay.leakRuns = 0
	if v := t.replay.grows(entries[0].Input); v != nil {
		return entries[0].Input, v
	}
	return nil, nil
}

package fuzz

import (
	"fmt"
	"slices"
	"time"
)

// locate finds those of many conversations that bring a fault about: one, or a few that it
// takes together.
func (f *Fuzzer) locate(done []*Conv, whole *Fault) (*Conv, *Fault) {
	const most = 3000
	if len(done) > most {
		done = done[len(done)-most:]
	}
	switch whole.Oracle {
	case Exit, Signal, Sanitizer, HangAll, Disturbed:
	case Processor:
		return f.spinner(done)
	default:
		return nil, nil // who saw it was alone with it
	}
	return f.reduce(done, whole)
}

// guilty returns the one of many suspects who is seen to end the server, or nil: holding all of them on one
// server takes less time than each on one of its own.
func (f *Fuzzer) guilty(suspects []*suspicion, whole *Fault) (*Conv, *Fault) {
	if whole == nil || !whole.ends() || len(suspects) < 2 || f.cfg.Fixed {
		return nil, nil
	}
	var convs []*Conv
	for _, s := range suspects {
		convs = append(convs, s.conv)
	}
	v, n := f.lab.sequence(convs, whole)
	if v == nil || !alike(v, whole) {
		return nil, nil
	}
	return convs[n-1], brought(suspects[n-1].fault, whole)
}

// To find those that count, all conversations may be held so often, for the time it takes, but no longer.
const (
	someHolds = 20
	holdsFor  = 2 * time.Minute
)

// reduce leaves out what a fault does not take, of conversations held one after the other on a fresh
// server, and makes one of those that are left. It is nil if the fault does not show, or takes many.
func (f *Fuzzer) reduce(done []*Conv, whole *Fault) (*Conv, *Fault) {
	if len(done) == 0 {
		return nil, nil
	}
	shown, behind := whole, 0
	shows := func(convs []*Conv) bool {
		v, n := f.lab.sequence(convs, whole)
		if v == nil || !alike(v, whole) {
			return false
		}
		shown, behind = v, n
		return true
	}
	start := time.Now()
	if !shows(done) {
		done = hurried(done)
		if start = time.Now(); !shows(done) {
			return nil, nil
		}
	}
	done = done[:behind]
	if last := done[behind-1:]; behind > 1 && shows(last) {
		return last[0], shown
	}
	// On a slow machine, holding all of them may take so long that nothing else would be tried.
	end := time.Now().Add(max(f.cfg.Minimise, 25*time.Second, min(holdsFor, someHolds*time.Since(start))))
	// Where the last does not show it alone, the server may have lived on for a while.
	least, enough := 0, len(done) // so few do not show it; so many do
	for enough-least > 1 && time.Now().Before(end) && !f.stopped() {
		if n := (least + enough) / 2; shows(done[:n]) {
			enough = n
		} else {
			least = n
		}
	}
	done = done[:enough]
	if last := done[enough-1:]; shows(last) {
		return last[0], shown
	}
	for n := (len(done) + 1) / 2; n > 0 && len(done) > 1 && time.Now().Before(end) && !f.stopped(); {
		smaller := false
		for at := 0; at < len(done) && time.Now().Before(end) && !f.stopped(); {
			without := slices.Delete(slices.Clone(done), at, min(at+n, len(done)))
			if len(without) > 0 && shows(without) {
				done, smaller = without, true
			} else {
				at += n
			}
		}
		if n == 1 && !smaller {
			break
		}
		n = max(1, n/2)
		if n == 1 && len(done) > 64 {
			break
		}
	}
	if len(done) == 1 {
		return done[0], shown
	}
	if len(done) > 40 {
		return nil, nil
	}
	return dialectOf(f.cfg.Protocol).join(done), shown
}

// hurried returns conversations with messages sent ahead, where there are any.
func hurried(convs []*Conv) []*Conv {
	all := slices.Clone(convs)
	for i, c := range all {
		if d := c.hurried(); d != nil {
			all[i] = d
		}
	}
	return all
}

// nth returns the prefix of one of many conversations.
func nth(i int) string { return fmt.Sprintf("z%0*x.", len(place)-2, i) }

// onOthers is how long a sequence goes past conversations that show other faults than the one that is
// looked for: each that is not answered takes all patience.
const onOthers = 20 * time.Second

// sequence performs conversations one after the other on a fresh server, each with names of its
// own, until the fault shows that is looked for. It returns how many that took.
func (l *lab) sequence(convs []*Conv, whole *Fault) (v *Fault, n int) {
	if l.ready() != nil {
		return nil, 0
	}
	l.used = true
	l.x.ask()
	// The end of a process is seen by whoever comes next, so nobody has to wait for what else may be wrong.
	l.x.thorough = !whole.ends()
	defer func() { l.x.thorough = true }()
	lost := time.Duration(0)
	for i, c := range convs {
		start := time.Now()
		r := l.x.perform(c, nth(i))
		if r.Fault == nil && !ended(l.t) {
			continue
		}
		v = verdict(l.t, r.Fault)
		lost += time.Since(start)
		if ended(l.t) || alike(v, whole) || v.Oracle == HangAll || lost > onOthers {
			return v, i + 1
		}
	}
	l.x.ask()
	return verdict(l.t, nil), len(convs)
}

// said is the oracles that judge what the server says.
var said = []string{Disclosure, Framing, Law}

// confirmBeside looks for what others said that a fault takes: data of theirs is given to somebody
// else only if they sent some.
func (f *Fuzzer) confirmBeside(s *suspicion) bool {
	v := s.fault
	if f.cfg.Fixed || len(s.beside) == 0 || s.conv.waits() > 0 || !slices.Contains(said, v.Oracle) || f.dismissed(s.conv, v) {
		return false
	}
	f.tally("examining with others")
	for n := 1; n < 2*len(s.beside) && !f.stopped(); n *= 2 {
		last := s.beside[max(0, len(s.beside)-n):]
		if c, v := f.reduce(append(slices.Clone(last), s.conv), v); c != nil {
			return f.dismissed(c, v) || f.confirm(c, v)
		}
	}
	return false
}

package fuzz

import (
	"fmt"
	"slices"
	"time"
)

// bisect finds the input, or the few inputs together, of many that cause a fault.
func (f *Fuzzer) bisect(done []*Input, whole *Fault) (*Input, *Fault) {
	const most = 3000
	if len(done) > most {
		done = done[len(done)-most:]
	}
	switch whole.Oracle {
	case Exit, Signal, Sanitizer, HangAll, Disturbed:
	case Processor:
		return f.findSpin(done)
	default:
		return nil, nil // the observed input was alone on the server
	}
	return f.reduce(done, whole)
}

// culprit returns the one of several observed inputs that crashes the server, or nil. Running all of them on one server
// takes less time than running each on a new one.
func (f *Fuzzer) culprit(observations []*observation, whole *Fault) (*Input, *Fault) {
	if whole == nil || !whole.ends() || len(observations) < 2 || f.cfg.Fixed {
		return nil, nil
	}
	var inputs []*Input
	for _, s := range observations {
		inputs = append(inputs, s.input)
	}
	v, n := f.replayer.sequence(inputs, whole)
	if v == nil || !alike(v, whole) {
		return nil, nil
	}
	return inputs[n-1], explainedBy(observations[n-1].fault, whole)
}

// All inputs may run this often to find those that are needed, but no longer than this.
const (
	someHolds = 20
	holdsFor  = 2 * time.Minute
)

// reduce removes inputs that a fault does not need, and joins the rest into one input. It returns nil if the fault does
// not appear or needs many inputs.
func (f *Fuzzer) reduce(done []*Input, whole *Fault) (*Input, *Fault) {
	if len(done) == 0 {
		return nil, nil
	}
	shown, behind := whole, 0
	shows := func(inputs []*Input) bool {
		v, n := f.replayer.sequence(inputs, whole)
		if v == nil || !alike(v, whole) {
			return false
		}
		shown, behind = v, n
		return true
	}
	start := time.Now()
	if !shows(done) {
		done = pipelined(done)
		if start = time.Now(); !shows(done) {
			return nil, nil
		}
	}
	done = done[:behind]
	if last := done[behind-1:]; behind > 1 && shows(last) {
		return last[0], shown
	}
	// On a slow machine, one run of all of them may take so long that nothing else would be tried.
	end := time.Now().Add(min(f.left()/2, max(f.cfg.Minimize, 25*time.Second, min(holdsFor, someHolds*time.Since(start)))))
	// If the last input is not enough, the fault may have appeared late.
	least, enough := 0, len(done) // numbers of inputs that are too few, and enough
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
	return traitsOf(f.cfg.Protocol).join(done), shown
}

// pipelined returns the inputs with pipelined messages where possible.
func pipelined(inputs []*Input) []*Input {
	all := slices.Clone(inputs)
	for i, c := range all {
		if d := c.pipelined(); d != nil {
			all[i] = d
		}
	}
	return all
}

// nth returns the prefix of the i-th of many inputs.
func nth(i int) string { return fmt.Sprintf("z%0*x.", len(placeholder)-2, i) }

// onOthers is how long a sequence continues after inputs that show other faults.
const onOthers = 20 * time.Second

// sequence runs inputs one after the other on a new server, each with names of its own, until the expected fault
// appears. It returns how many inputs that took.
func (l *replayer) sequence(inputs []*Input, whole *Fault) (v *Fault, n int) {
	if l.ready() != nil {
		return nil, 0
	}
	l.used = true
	l.x.ping()
	// The next input notices a crash, so there is no need to check the server after each.
	l.x.thorough = !whole.ends()
	defer func() { l.x.thorough = true }()
	lost := time.Duration(0)
	for i, c := range inputs {
		start := time.Now()
		r := l.x.execute(c, nth(i))
		if r.Fault == nil && !ended(l.t) {
			continue
		}
		if v = verdict(l.t, r.Fault); l.ctx.Err() != nil || v == nil {
			return nil, 0 // the run has ended
		}
		l.observe(v, inputs[:i+1])
		lost += time.Since(start)
		if ended(l.t) || alike(v, whole) || v.Oracle == HangAll || lost > onOthers {
			return v, i + 1
		}
	}
	l.x.ping()
	v = verdict(l.t, nil)
	l.observe(v, inputs)
	return v, len(inputs)
}

// said are the oracles that judge what the server sends.
var said = []string{Disclosure, Framing, Law}

// confirmBeside looks for other inputs that a fault needs: a server can send the data of one client to another one only
// if a client sent some.
func (f *Fuzzer) confirmBeside(s *observation) bool {
	v := s.fault
	if f.cfg.Fixed || len(s.beside) == 0 || s.input.waits() > 0 || !slices.Contains(said, v.Oracle) || f.dismissed(s.input, v) {
		return false
	}
	f.tally("reproducing")
	for n := 1; n < 2*len(s.beside) && !f.stopped(); n *= 2 {
		last := s.beside[max(0, len(s.beside)-n):]
		if c, v := f.reduce(append(slices.Clone(last), s.input), v); c != nil {
			return f.dismissed(c, v) || f.confirm(c, v)
		}
	}
	return false
}

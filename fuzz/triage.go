package fuzz

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// class returns the message type of a step, or the rule that it breaks.
func class(p *codec.Protocol, s *Step) string {
	sess := p.NewSession(codec.Options{})
	name := s.Verb.String()
	var err error
	switch {
	case s.Verb == transcript.Raw:
		var f codec.Frame
		if _, err = sess.Decode(codec.Peer, s.Bytes, &f); f.Type != nil {
			name = f.Type.Name
		}
	case s.Type != nil:
		name = s.Type.Name
		m := codec.Message{Type: s.Type, CRLF: s.CRLF}
		for _, a := range s.Args {
			m.Args = append(m.Args, a.Value)
		}
		_, err = sess.Append(nil, codec.Peer, &m)
	}
	if e, ok := err.(*codec.Error); ok {
		return string(e.Rule)
	}
	return name
}

// provisionalKey returns the key of an observation that has not been examined.
func provisionalKey(p *codec.Protocol, c *Input, f *Fault) string {
	key := f.Oracle + " " + string(f.Rule) + " " + f.Law
	switch {
	case f.Oracle == Memory || f.Oracle == Descriptors:
		for i := range c.Steps {
			key += " " + class(p, &c.Steps[i])
		}
	case f.Oracle != Framing && f.Step >= 0 && f.Step < len(c.Steps):
		key += " " + class(p, &c.Steps[f.Step])
		if f.Law == closedLaw {
			key += fmt.Sprint(sizeClass(&c.Steps[f.Step]))
		}
	}
	return key
}

// How often a fault must appear in how many attempts to count as reproduced.
const (
	tries = 5
	shows = 3
)

// examine reproduces observations.
func (f *Fuzzer) examine(observations []*observation, whole *Fault, done []*Input) {
	f.tally("reproducing")
	if c, v := f.culprit(observations, whole); c != nil && (f.dismissed(c, v) || f.confirm(c, v)) {
		return
	}
	var doubted []string
	for _, s := range observations {
		v := explainedBy(s.fault, whole)
		if f.dismissed(s.input, v) {
			continue
		}
		if f.confirm(s.input, v) {
			return // the others are consequences
		}
		key := provisionalKey(f.cfg.Protocol, s.input, v)
		f.logf("not reproduced: %s (duplicates have the key %s), at message or action %d of: %s", v, key, v.Step+1, s.input)
		doubted = append(doubted, key)
	}
	if f.stopped() {
		return // a fault that did not appear in time means nothing
	}
	if whole == nil {
		if !slices.ContainsFunc(observations, f.confirmBeside) && !f.stopped() {
			f.backoff(doubted...)
		}
		return
	}
	for _, s := range observations {
		if f.quick[provisionalKey(f.cfg.Protocol, s.input, whole)] {
			return
		}
	}
	law, oracle := whole.Oracle+" of many "+whole.Law, whole.Oracle+" of many"
	if !f.cfg.Fixed && !f.suppressed(law, maxMisses) && !f.suppressed(oracle, maxMissesWhole) {
		if c, v := f.bisect(done, whole); c != nil && (f.dismissed(c, v) || f.confirm(c, v)) {
			return
		}
		f.logf("not reproduced: %s, after %d message sequences; last output of the server: %.2000q", whole, len(done), whole.Output)
		doubted = append(doubted, law, oracle)
	}
	if !f.stopped() {
		f.backoff(doubted...)
	}
}

// explainedBy returns an observed fault with what happened to the server as a whole: after a crash, all connections
// report faults.
func explainedBy(v, whole *Fault) *Fault {
	if whole == nil || !whole.ends() {
		return v
	}
	return &Fault{Oracle: whole.Oracle, Rule: whole.Rule, Law: whole.Law, Text: whole.Text, Output: whole.Output, Signal: whole.Signal, Conn: v.Conn, Step: v.Step}
}

// dismissed reports whether an observation is a duplicate, or is suppressed.
func (f *Fuzzer) dismissed(c *Input, v *Fault) bool {
	key := provisionalKey(f.cfg.Protocol, c, v)
	if f.quick[key] || f.bucketFull(c, v) {
		f.again.Add(1)
		f.penalize(c, v)
		return true
	}
	return f.suppressed(key, maxMisses)
}

// penalize makes the step that caused a fault less frequent.
func (f *Fuzzer) penalize(c *Input, v *Fault) {
	if v.Step >= 0 && v.Step < len(c.Steps) {
		f.corpus.penalize(class(f.cfg.Protocol, &c.Steps[v.Step]))
	}
}

// confirm runs an input on new servers. If the fault appears, it is minimized and reported.
func (f *Fuzzer) confirm(c *Input, v *Fault) bool {
	test := f.replayer.test(v.Oracle)
	f.replayer.patience = f.cfg.Patience
	key := provisionalKey(f.cfg.Protocol, c, v)
	c, got := f.reproduce(c, v, test)
	if got == nil || f.stopped() {
		return false
	}
	if other := provisionalKey(f.cfg.Protocol, c, got); other != key {
		if f.quick[other] {
			f.again.Add(1)
			f.note(func() { f.quick[key] = true })
			return true
		}
	}
	f.logf("reproduced with a sequence of %s: %s", steps(len(c.Steps)), got)
	if got.Oracle == Memory && f.disputed(c, got) {
		f.logf("not counted, because the reference server fails in the same way: %s", got)
		f.note(func() { f.stats.ReferenceFails++ })
		return false
	}
	f.tally("minimizing")
	hold := func(d *Input) bool { return got.same(test(d)) }
	budget := f.cfg.Minimize
	switch got.Oracle {
	case HangConn, HangAll:
		f.replayer.patience = min(f.replayer.patience, 300*time.Millisecond)
	case Law:
		f.replayer.patience = min(f.replayer.patience, 500*time.Millisecond)
		budget /= 2
	case Framing, Disclosure:
		budget /= 2
	}
	// The rest of the time is for reproducing the minimized input.
	until := time.Now().Add(f.left() / 2)
	stop := func() bool { return f.stopped() || time.Now().After(until) }
	m := &minimizer{best: c, holds: hold, stop: stop, budget: budget, proto: f.cfg.Protocol}
	small := m.minimize()
	f.replayer.patience = f.cfg.Patience
	n, of, last := f.count(small, got, test)
	if n < shows && small != c {
		f.logf("the minimized message sequence causes this failure only %d of %d times: %s", n, of, got)
		small = c
		n, of, last = f.count(c, got, test)
	}
	if f.stopped() {
		return false
	}
	if n < shows {
		f.logf("not counted as reproduced, because it appeared only %d of %d times: %s", n, of, got)
		return false
	}
	disputed := f.disputed(small, last)
	if f.stopped() {
		return false
	}
	if disputed {
		f.logf("not counted, because the reference server fails in the same way: %s", last)
		f.suppress(key, provisionalKey(f.cfg.Protocol, small, last))
		f.note(func() { f.stats.ReferenceFails++ })
		return true
	}
	f.note(func() { f.quick[key], f.quick[provisionalKey(f.cfg.Protocol, small, last)] = true, true })
	f.penalize(small, last)
	f.tell(small, last, n, of)
	return true
}

// reproduce runs an observed input until the fault appears, a few times, because much depends on chance. It returns the input as
// it was run then, which may be with pipelined messages.
func (f *Fuzzer) reproduce(c *Input, v *Fault, test func(*Input) *Fault) (*Input, *Fault) {
	ways := traitsOf(f.cfg.Protocol).alone(c)
	last := ways[len(ways)-1]
	ways = append(ways, last)
	if ahead := last.pipelined(); ahead != nil {
		ways = append(ways, ahead, ahead)
	}
	var other *Fault
	for _, d := range ways {
		got := test(d)
		if got != nil && alike(got, v) {
			return d, got
		}
		if got != nil {
			other = got
		}
	}
	if other != nil {
		f.logf("the repeated messages caused a different failure: expected %s; got %s", v, other)
	} else {
		f.logf("the repeated messages did not cause the failure again: %s", v)
	}
	return nil, nil
}

// disputed reports whether the reference server has the fault too. Then the oracle is as likely to be wrong.
func (f *Fuzzer) disputed(c *Input, v *Fault) bool {
	if f.cfg.Reference == nil {
		return false
	}
	ref := f.reference()
	defer ref.close()
	for range 2 {
		if v.same(ref.test(v.Oracle)(c)) {
			return true
		}
	}
	return false
}

// reference returns a replayer with the reference server.
func (f *Fuzzer) reference() *replayer {
	cfg := f.cfg
	cfg.Start, cfg.Known, cfg.Fixed = f.cfg.Reference, Known{}, false
	return &replayer{cfg: &cfg, ctx: f.replayer.ctx, patience: f.cfg.Patience}
}

// alike reports whether two faults may be the same one: a crash may look like a hang at first.
func alike(a, b *Fault) bool {
	group := map[string]int{Exit: 1, Signal: 1, Sanitizer: 1, HangAll: 1, HangConn: 1, Disturbed: 1, Law: 2, Framing: 2, Disclosure: 2}
	return a.Oracle == b.Oracle || group[a.Oracle] != 0 && group[a.Oracle] == group[b.Oracle]
}

// count returns how often a fault appears, until that is often enough or cannot be any more.
func (f *Fuzzer) count(c *Input, v *Fault, test func(*Input) *Fault) (n, of int, last *Fault) {
	for of < tries && n < shows && of-n <= tries-shows {
		of++
		if got := test(c); v.same(got) {
			n++
			last = got
		}
	}
	return n, of, last
}

// steps returns a number of steps in words.
func steps(n int) string {
	if n == 1 {
		return "1 message or action"
	}
	return fmt.Sprintf("%d messages and actions", n)
}

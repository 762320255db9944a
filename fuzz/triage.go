package fuzz

import (
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// class tells alike steps apart from others, coarsely: by the type, or the rule that is broken.
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

// quickKey tells suspicions apart before anything is known of them.
func quickKey(p *codec.Protocol, c *Conv, f *Fault) string {
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

// Confirmation: how often a finding has to show.
const (
	tries = 5
	shows = 3
)

// examine finds out whether suspicions hold, and of what.
func (f *Fuzzer) examine(suspects []*suspicion, whole *Fault, done []*Conv) {
	f.tally("examining")
	if c, v := f.guilty(suspects, whole); c != nil && (f.dismissed(c, v) || f.confirm(c, v)) {
		return
	}
	var doubted []string
	for _, s := range suspects {
		v := brought(s.fault, whole)
		if f.dismissed(s.conv, v) {
			continue
		}
		if f.confirm(s.conv, v) {
			return // the others have only seen it
		}
		key := quickKey(f.cfg.Protocol, s.conv, v)
		f.logf("not confirmed: %s, by %s, in step %d of %s", v, key, v.Step, s.conv)
		doubted = append(doubted, key)
	}
	if whole == nil {
		if !slices.ContainsFunc(suspects, f.confirmBeside) {
			f.doubt(doubted...)
		}
		return
	}
	for _, s := range suspects {
		if f.quick[quickKey(f.cfg.Protocol, s.conv, whole)] {
			return
		}
	}
	law, oracle := whole.Oracle+" of many "+whole.Law, whole.Oracle+" of many"
	if !f.cfg.Fixed && !f.rests(law, maxDoubts) && !f.rests(oracle, maxDoubtsWhole) {
		if c, v := f.locate(done, whole); c != nil && (f.dismissed(c, v) || f.confirm(c, v)) {
			return
		}
		f.logf("not confirmed: %s, behind %d conversations; last words: %.2000q", whole, len(done), whole.Words)
		doubted = append(doubted, law, oracle)
	}
	f.doubt(doubted...)
}

// brought returns a fault in the light of what the server as a whole has: where it ends, all that
// were connected have noticed; where depends on each.
func brought(v, whole *Fault) *Fault {
	if whole == nil || !whole.ends() {
		return v
	}
	return &Fault{Oracle: whole.Oracle, Rule: whole.Rule, Law: whole.Law, Text: whole.Text, Words: whole.Words, Conn: v.Conn, Step: v.Step}
}

// dismissed reports whether a suspicion is a finding already, or has been doubted often.
func (f *Fuzzer) dismissed(c *Conv, v *Fault) bool {
	key := quickKey(f.cfg.Protocol, c, v)
	if f.quick[key] || f.habitual(c, v) {
		f.again.Add(1)
		f.shun(c, v)
		return true
	}
	return f.rests(key, maxDoubts)
}

// shun has the step that brought a fault about come less often.
func (f *Fuzzer) shun(c *Conv, v *Fault) {
	if v.Step >= 0 && v.Step < len(c.Steps) {
		f.pool.shun(class(f.cfg.Protocol, &c.Steps[v.Step]))
	}
}

// confirm performs a conversation on fresh servers. If the fault shows, it is made smaller and
// told.
func (f *Fuzzer) confirm(c *Conv, v *Fault) bool {
	test := f.lab.test(v.Oracle)
	f.lab.patience = f.cfg.Patience
	key := quickKey(f.cfg.Protocol, c, v)
	c, got := f.reproduce(c, v, test)
	if got == nil {
		return false
	}
	if other := quickKey(f.cfg.Protocol, c, got); other != key {
		if f.quick[other] {
			f.again.Add(1)
			f.note(func() { f.quick[key] = true })
			return true
		}
	}
	f.logf("%s shows again, in %d steps", got, len(c.Steps))
	if got.Oracle == Memory && f.disputed(c, got) {
		f.logf("disputed: %s", got)
		f.note(func() { f.stats.Disputed++ })
		return false
	}
	f.tally("making it smaller")
	hold := func(d *Conv) bool { return got.same(test(d)) }
	budget := f.cfg.Minimise
	switch got.Oracle {
	case HangConn, HangAll:
		f.lab.patience = min(f.lab.patience, 300*time.Millisecond)
	case Law:
		f.lab.patience = min(f.lab.patience, 500*time.Millisecond)
		budget /= 2
	case Framing, Disclosure:
		budget /= 2
	}
	m := &minimiser{best: c, holds: hold, stop: f.stopped, budget: budget, proto: f.cfg.Protocol}
	small := m.minimise()
	f.lab.patience = f.cfg.Patience
	n, of, last := f.count(small, got, test)
	if n < shows && small != c {
		f.logf("%s shows %d of %d times, made smaller", got, n, of)
		small = c
		n, of, last = f.count(c, got, test)
	}
	if n < shows {
		f.logf("%s shows %d of %d times", got, n, of)
		return false
	}
	if f.disputed(small, last) {
		f.logf("disputed: %s", last)
		f.letBe(key, quickKey(f.cfg.Protocol, small, last))
		f.note(func() { f.stats.Disputed++ })
		return true
	}
	f.note(func() { f.quick[key], f.quick[quickKey(f.cfg.Protocol, small, last)] = true, true })
	f.shun(small, last)
	f.tell(small, last, n, of)
	return true
}

// reproduce performs a conversation that is suspected until the fault shows, a few times, since much is a
// matter of chance. It returns it as it was performed then: also with messages sent ahead, as the
// suspected one may have been.
func (f *Fuzzer) reproduce(c *Conv, v *Fault, test func(*Conv) *Fault) (*Conv, *Fault) {
	ways := dialectOf(f.cfg.Protocol).alone(c)
	last := ways[len(ways)-1]
	ways = append(ways, last)
	if ahead := last.hurried(); ahead != nil {
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
		f.logf("%s is %s alone", v, other)
	} else {
		f.logf("%s does not show alone", v)
	}
	return nil, nil
}

// disputed reports whether the server that is held to be right has the fault too: then who
// objects is as likely to be wrong.
func (f *Fuzzer) disputed(c *Conv, v *Fault) bool {
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

// reference returns a lab with the server that is held to be right.
func (f *Fuzzer) reference() *lab {
	cfg := f.cfg
	cfg.Start, cfg.Known, cfg.Fixed = f.cfg.Reference, Known{}, false
	return &lab{cfg: &cfg, ctx: f.lab.ctx, patience: f.cfg.Patience}
}

// alike reports whether one fault may be the other, seen otherwise: a death looks like a hang at
// first.
func alike(a, b *Fault) bool {
	group := map[string]int{Exit: 1, Signal: 1, Sanitizer: 1, HangAll: 1, HangConn: 1, Disturbed: 1, Law: 2, Framing: 2, Disclosure: 2}
	return a.Oracle == b.Oracle || group[a.Oracle] != 0 && group[a.Oracle] == group[b.Oracle]
}

// count tells how often a fault shows, until that is often enough, or cannot be any more.
func (f *Fuzzer) count(c *Conv, v *Fault, test func(*Conv) *Fault) (n, of int, last *Fault) {
	for of < tries && n < shows && of-n <= tries-shows {
		of++
		if got := test(c); v.same(got) {
			n++
			last = got
		}
	}
	return n, of, last
}

package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/play"
)

// setupWays determines, once for each target, which way to each setup works on the target.
type setupWays struct {
	setups *transcript.Setups
	lock   chan struct{}    // full while ways are being tested; protects the fields below
	chosen transcript.Ways  // index of the way that works or is being tested, by setup
	found  map[string]bool  // setups for which a working way is known
	failed map[string]error // reason why no way works, by setup
	// setups whose ways are being tested, with the number of others that were being tested before
	pending map[string]int
	probed  map[string]probeResult        // certain results of probes, by setup and the ways that the probe uses
	breaks  map[string]breaks             // what the target does wrong in a setup that works nevertheless, by setup
	shown   map[breakKey]*Case            // the case that fails because of a break, also when it is repeated
	scripts map[string]*transcript.Script // scripts of probes, by setup and all chosen ways
}

func newSetupWays(s *transcript.Setups) *setupWays {
	return &setupWays{
		setups: s, lock: make(chan struct{}, 1), chosen: transcript.Ways{}, found: map[string]bool{},
		failed: map[string]error{}, pending: map[string]int{}, probed: map[string]probeResult{},
		scripts: map[string]*transcript.Script{}, breaks: map[string]breaks{}, shown: map[breakKey]*Case{},
	}
}

// probeFunc runs the probe of a setup, in which the target may do what it is known to do wrong, and returns the
// reason for the probe's failure, or nil. ok is false if the result says nothing about the target.
type probeFunc func(script *transcript.Script, known breaks) (why error, ok bool)

// probeResult is the result of a probe.
type probeResult struct {
	why    error  // why the setup does not work if nothing may be wrong, or nil
	breaks breaks // what the target does wrong in the setup, which works nevertheless; nil: not tested
}

// probeFailure is the error of a failed probe.
type probeFailure struct {
	*play.Result
	script *transcript.Script
	reply  bool // the reply itself is accepted in place of the expected one, and not only the break of the rule
}

func (f *probeFailure) Error() string { return f.Failure.Error() }

// breaks are failures of a setup that works nevertheless: the target breaks a rule about the form of messages, which
// can be waived, or sends another reply, which is then accepted in steps of setups.
type breaks []*probeFailure

// maxBreaks is the maximum number of breaks in a setup.
const maxBreaks = 4

// breakKey identifies a break: the rule or, if a reply is accepted, the types of the request and of the reply, too.
type breakKey struct {
	rule           codec.RuleID
	request, reply *codec.Type // reply is nil for bytes that are not a message of a type
}

func (f *probeFailure) key() breakKey {
	if f.reply {
		return replyKey(f.script, f.Failure.Index, f.Failure.Event)
	}
	return breakKey{rule: f.Failure.Rule()}
}

// replyKey identifies what the target sent at the i-th step of a script.
func replyKey(script *transcript.Script, i int, e *play.Event) breakKey {
	k := breakKey{request: awaited(script, i)[0], reply: e.Frame.Type}
	if e.Err != nil {
		k.rule = e.Err.Rule
	}
	return k
}

func (b breaks) contain(k breakKey) bool {
	return slices.ContainsFunc(b, func(f *probeFailure) bool { return f.key() == k })
}

// allow changes the options of a conversation so that the target may do what it is known to do wrong: break the rules
// anywhere, and send the other replies in setups.
func (b breaks) allow(script *transcript.Script, o *play.Options) {
	for _, f := range b {
		if !f.reply {
			o.Codec.Waive = append(slices.Clip(o.Codec.Waive), f.Failure.Rule())
		}
	}
	o.Accept = func(i int, e *play.Event) bool {
		k := replyKey(script, i, e)
		return script.Steps[i].Setup != "" && k.request != nil && b.contain(k)
	}
}

// String names the rules and replies.
func (b breaks) String() string {
	var all []string
	for _, f := range b {
		switch k := f.key(); {
		case f.reply:
			all = append(all, fmt.Sprintf("the reply to %s: %v", k.request.Name, f))
		default:
			all = append(all, string(k.rule))
		}
	}
	return strings.Join(all, ", ")
}

// otherReply reports whether the target sent another reply than the expected one that is not an error, and without
// whose values the conversation can go on.
func (f *probeFailure) otherReply() bool {
	e := f.Failure.Event
	if e == nil || e.Verb > transcript.Raw || e.Err != nil && e.Err.Fatal {
		return false
	}
	if t := e.Frame.Type; t != nil && t.Does == codec.Refuse {
		return false
	}
	if f.script == nil || awaited(f.script, f.Failure.Index)[0] == nil {
		return false
	}
	needed := func(c transcript.Choice) bool {
		return c.Verb != transcript.Send || c.Type == e.Frame.Type || slices.ContainsFunc(c.Args, f.unknown)
	}
	return !slices.ContainsFunc(f.Failure.Step.Choices, needed)
}

// unknown reports whether an argument of the expected reply is a value that no message to the target had before.
func (f *probeFailure) unknown(a transcript.Arg) bool {
	same := func(sent transcript.Arg) bool { return sent.Kind == transcript.Name && sent.Name == a.Name }
	return a.Kind == transcript.Name && !slices.ContainsFunc(f.script.Steps[:f.Failure.Index], func(st transcript.Step) bool {
		return st.From == codec.Peer && slices.ContainsFunc(st.Choices[0].Args, same)
	})
}

// brokenSetup describes a setup of a case that did not work.
type brokenSetup struct {
	name      string
	why       error         // reason; nil if the setup failed while the case ran
	failed    *probeFailure // the conversation in which it failed; nil if there is none
	failsCase bool          // the setup works, but the case fails because of what the target does wrong in it
	breaks    breaks        // what the target does wrong in a setup that works nevertheless
}

// script returns the script of a case with ways to its setups that work on the target. If a setup does not work, the
// script ends before the first step that uses it, and script returns a description of that setup, too. If a setup
// works although the target does something wrong in it, flawed describes it, and this does not count for the case.
// One case for each break, and every case about the rule, fails because of it: flawed.failsCase is set.
func (w *setupWays) script(ctx context.Context, c *Case, try probeFunc) (sc *transcript.Script, flawed,
	broken *brokenSetup, err error) {
	if len(c.Script.Setups)+len(c.Script.Checks) == 0 {
		return c.Script, nil, nil, nil
	}
	select {
	case w.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	}
	defer func() { <-w.lock }()
	all := slices.Concat(c.Script.Setups, c.Script.Checks)
	for _, name := range all {
		if _, _, err := w.find(ctx, name, try); err != nil {
			return nil, nil, nil, err
		}
	}
	if sc, err = c.Script.With(maps.Clone(w.chosen)); err != nil {
		return nil, nil, nil, err
	}
	for _, name := range all {
		for _, f := range w.breaks[name] {
			key := f.key()
			if flawed == nil {
				flawed = &brokenSetup{name: name, why: f, failed: f}
			}
			flawed.breaks = append(flawed.breaks, f)
			if w.shown[key] == nil && strictness(c.Level) < strictness(codec.Interpretation) {
				w.shown[key] = c
			}
			if w.shown[key] == c || slices.Contains(c.Rules, key.rule) {
				return sc, &brokenSetup{name: name, why: f, failed: f, failsCase: true}, nil, nil
			}
		}
	}
	part := *sc
	for _, name := range c.Script.Setups {
		if w.failed[name] == nil {
			continue
		}
		// A setup that only another setup uses is not named in the steps.
		i := max(0, slices.IndexFunc(sc.Steps, func(st transcript.Step) bool { return st.Setup == name }))
		if broken == nil || i < len(part.Steps) {
			broken, part.Steps = &brokenSetup{name: name, why: w.failed[name]}, sc.Steps[:i]
		}
	}
	if broken == nil {
		return sc, flawed, nil, nil
	}
	errors.As(broken.why, &broken.failed)
	return &part, flawed, broken, nil
}

// A result of find or probe depends on the setups whose ways are still being tested, because probes of other setups use
// them. Such a result has the lowest depth of these setups, or one of these values.
const (
	final  = 1 << 10 // the result does not change
	unsure = -1      // the machine may have been late, so the result says nothing
)

// find tests the ways to a setup until one works. It returns nil, or the reason why no way works, and what this depends
// on. It skips a way whose probe needs a setup that does not work.
func (w *setupWays) find(ctx context.Context, name string, try probeFunc) (why error, depends int, err error) {
	depth, pending := w.pending[name]
	switch {
	case w.found[name]:
		return nil, final, nil
	case w.failed[name] != nil:
		return w.failed[name], final, nil
	case pending:
		return nil, depth, nil
	}
	depth, depends = len(w.pending), final
	w.pending[name] = depth
	defer delete(w.pending, name)
	// Try all ways twice, because probes may fail on a busy machine, and the second time with what the target does wrong.
	for _, allow := range []bool{false, true} {
		preferred := true // all previous ways certainly do not work
		for way := range w.setups.Named(name).Ways {
			w.chosen[name] = way
			failure, on, err := w.probe(ctx, name, allow, try)
			if err != nil {
				return nil, unsure, err
			}
			if on == unsure {
				if failure, on, err = w.probe(ctx, name, allow, try); err != nil {
					return nil, unsure, err
				}
			}
			certain := on >= depth // all that the result depends on has been tested with this way
			switch {
			case failure == nil && certain:
				w.found[name] = preferred
				return nil, final, nil
			case failure == nil: // the way works with the ways of other setups that are being tested
				return nil, on, nil
			}
			preferred = preferred && certain
			if !certain {
				depends = min(depends, on)
			}
			if why == nil {
				why = failure
			}
		}
	}
	delete(w.chosen, name)
	if depends == final && why != nil {
		w.failed[name] = why
	}
	return why, depends, ctx.Err()
}

// probeScript returns the script of the probe of a setup with the chosen ways.
func (w *setupWays) probeScript(name string) (*transcript.Script, error) {
	key := fmt.Sprint(name, w.chosen)
	if w.scripts[key] == nil {
		sc, err := w.setups.Probe(name, w.chosen)
		if err != nil {
			return nil, err
		}
		w.scripts[key] = sc
	}
	return w.scripts[key], nil
}

// probe runs the probe of a setup with the chosen way and returns the reason for its failure, or nil, and what this
// depends on. If allow is set, the target may do something wrong if the setup works nevertheless.
func (w *setupWays) probe(ctx context.Context, name string, allow bool, try probeFunc) (why error, depends int,
	err error) {
	probe, err := w.probeScript(name)
	if err != nil {
		return nil, unsure, err
	}
	depends = final
	for _, needs := range probe.Setups {
		why, on, err := w.find(ctx, needs, try)
		if err != nil || why != nil {
			return why, on, err
		}
		depends = min(depends, on)
	}
	if probe, err = w.probeScript(name); err != nil { // use the ways that find has just chosen
		return nil, unsure, err
	}
	key := fmt.Sprint(name, w.chosen[name])
	for _, needs := range slices.Sorted(slices.Values(probe.Setups)) {
		key += fmt.Sprint(" ", needs, w.chosen[needs])
	}
	w.breaks[name] = nil
	known := w.breaksOf(probe)
	result, ok := w.probed[key]
	if !ok {
		if result.why, ok = try(probe, known); ok {
			w.probed[key] = result
		}
	}
	if why = result.why; ok && allow && why != nil {
		if result.breaks == nil {
			if result.breaks, ok = broken(probe, known, why, try); ok {
				w.probed[key] = result
			}
		}
		if w.breaks[name] = result.breaks; len(result.breaks) > 0 {
			if why, depends, err = w.prove(ctx, name, depends, try); why != nil {
				w.breaks[name] = nil
			}
		}
	}
	if !ok {
		depends = unsure
	}
	return why, depends, err
}

// breaksOf returns what the target does wrong in the setups of a script.
func (w *setupWays) breaksOf(script *transcript.Script) (all breaks) {
	for _, name := range script.Setups {
		all = append(all, w.breaks[name]...)
	}
	return all
}

// broken returns what the target does wrong in a setup whose probe passes nevertheless. It returns an empty list if the
// probe does not pass. why is the reason why the probe fails if only what is known does not count.
func broken(probe *transcript.Script, known breaks, why error, try probeFunc) (found breaks, ok bool) {
	for range 2 * maxBreaks {
		var f *probeFailure
		if !errors.As(why, &f) {
			break
		}
		if f.Failure.Rule() == "" || found.contain(f.key()) {
			if !f.otherReply() {
				break
			}
			// The rule cannot be waived for this reply.
			found = slices.DeleteFunc(found, func(w *probeFailure) bool { return w.key() == f.key() })
			if f = (&probeFailure{f.Result, f.script, true}); found.contain(f.key()) {
				break
			}
		}
		found = append(found, f)
		if why, ok = try(probe, slices.Concat(known, found)); !ok || why == nil {
			return found, ok
		}
	}
	return breaks{}, true
}

// prove returns the reason why a setup in which the target sends another reply does not lead to its state, or nil.
// depends is what the result of the probe depends on.
func (w *setupWays) prove(ctx context.Context, name string, depends int, try probeFunc) (error, int, error) {
	others := slices.IndexFunc(w.breaks[name], func(f *probeFailure) bool { return f.reply })
	if others < 0 {
		return nil, depends, nil
	}
	why := error(w.breaks[name][others])
	proof, err := w.setups.Proof(name, w.chosen)
	if err != nil || proof == nil {
		return why, depends, err
	}
	for _, needs := range proof.Setups {
		missing, on, err := w.find(ctx, needs, try)
		if err != nil || missing != nil {
			return why, min(depends, on), err
		}
		depends = min(depends, on)
	}
	if proof, err = w.setups.Proof(name, w.chosen); err != nil {
		return why, unsure, err
	}
	failed, ok := try(proof, w.breaksOf(proof))
	if !ok {
		return why, unsure, nil
	}
	if failed == nil {
		return nil, depends, nil
	}
	return why, depends, nil
}

package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/play"
)

// setupWays determines, once for each target, which way to each setup works on the target.
type setupWays struct {
	setups  *transcript.Setups
	lock    chan struct{}                 // full while ways are being tested; protects the fields below
	chosen  transcript.Ways               // index of the way that works or is being tested, by setup
	found   map[string]bool               // setups for which a working way is known
	failed  map[string]error              // reason why no way works, by setup
	pending map[string]int                // setups whose ways are being tested, with the number of others that were being tested before
	probed  map[string]probeResult        // certain results of probes, by setup and the ways that the probe uses
	breaks  map[string][]*probeFailure    // how the target breaks rules in a setup that works without them, by setup
	shown   map[codec.RuleID]*Case        // the case that fails because of a waived rule, also when it is repeated
	scripts map[string]*transcript.Script // scripts of probes, by setup and all chosen ways
}

func newSetupWays(s *transcript.Setups) *setupWays {
	return &setupWays{
		setups: s, lock: make(chan struct{}, 1), chosen: transcript.Ways{}, found: map[string]bool{},
		failed: map[string]error{}, pending: map[string]int{}, probed: map[string]probeResult{},
		scripts: map[string]*transcript.Script{}, breaks: map[string][]*probeFailure{}, shown: map[codec.RuleID]*Case{},
	}
}

// probeFunc runs the probe of a setup, during which the target may break the waived rules, and returns the reason for its
// failure, or nil. ok is false if the result says nothing about the target.
type probeFunc func(script *transcript.Script, waive []codec.RuleID) (why error, ok bool)

// probeResult is the result of a probe.
type probeResult struct {
	why    error           // why the setup does not work if all rules count, or nil
	breaks []*probeFailure // how the target breaks the rules without which the setup works; nil: not tested
}

// rules returns the rules that the target breaks.
func rules(breaks []*probeFailure) (all []codec.RuleID) {
	for _, f := range breaks {
		all = append(all, f.Failure.Rule())
	}
	return all
}

// maxWaived is the maximum number of rules that a setup may break.
const maxWaived = 4

// probeFailure is the error of a failed probe.
type probeFailure struct{ *play.Result }

func (f *probeFailure) Error() string { return f.Failure.Error() }

// brokenSetup describes a setup of a case that did not work.
type brokenSetup struct {
	name  string
	why   error        // reason; nil if the setup failed while the case ran
	play  *play.Result // the run in which it failed; nil if there is none
	wrong bool         // the setup works without the rules that the target breaks, and the case fails because of them

	waive []codec.RuleID // of a setup that works without them
}

// script returns the script of a case with ways to its setups that work on the target. If a setup does not work, the script
// ends before the first step that uses it, and script returns a description of that setup, too. If a setup works without
// rules that the target breaks, wrong describes it; these rules do not count for the case. One case for each such rule, and
// every case about the rule, fails because of it: wrong.wrong is set.
func (w *setupWays) script(ctx context.Context, c *Case, try probeFunc) (sc *transcript.Script, wrong, broken *brokenSetup, err error) {
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
			rule := f.Failure.Rule()
			if wrong == nil {
				wrong = &brokenSetup{name: name, why: f, play: f.Result}
			}
			wrong.waive = append(wrong.waive, rule)
			if w.shown[rule] == nil && strictness(c.Level) < strictness(codec.Interpretation) {
				w.shown[rule] = c
			}
			if w.shown[rule] == c || slices.Contains(c.Rules, rule) {
				return sc, &brokenSetup{name: name, why: f, play: f.Result, wrong: true}, nil, nil
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
		return sc, wrong, nil, nil
	}
	if f := (*probeFailure)(nil); errors.As(broken.why, &f) {
		broken.play = f.Result
	}
	return &part, wrong, broken, nil
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
	// Try all ways twice, because probes may fail on a busy machine, and the second time without the rules that the target
	// breaks.
	for _, waive := range []bool{false, true} {
		preferred := true // all previous ways certainly do not work
		for way := range w.setups.Named(name).Ways {
			w.chosen[name] = way
			failure, on, err := w.probe(ctx, name, waive, try)
			if err != nil {
				return nil, unsure, err
			}
			if on == unsure {
				if failure, on, err = w.probe(ctx, name, waive, try); err != nil {
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
// depends on. If waive is set, the probe may break rules about the form of messages.
func (w *setupWays) probe(ctx context.Context, name string, waive bool, try probeFunc) (why error, depends int, err error) {
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
	var waived []codec.RuleID
	for _, needs := range slices.Sorted(slices.Values(probe.Setups)) {
		key += fmt.Sprint(" ", needs, w.chosen[needs])
		if needs != name {
			waived = append(waived, rules(w.breaks[needs])...)
		}
	}
	result, ok := w.probed[key]
	if !ok {
		if result.why, ok = try(probe, waived); ok {
			w.probed[key] = result
		}
	}
	if why, w.breaks[name] = result.why, nil; ok && waive && why != nil {
		if result.breaks == nil {
			if result.breaks, ok = broken(probe, waived, why, try); ok {
				w.probed[key] = result
			}
		}
		if w.breaks[name] = result.breaks; len(result.breaks) > 0 {
			why = nil
		}
	}
	if !ok {
		depends = unsure
	}
	return why, depends, nil
}

// broken returns how the target breaks rules in a setup that works without them. It returns an empty list if the setup does
// not work without them either. why is the reason why the setup does not work if only the rules waived do not count.
func broken(probe *transcript.Script, waived []codec.RuleID, why error, try probeFunc) (breaks []*probeFailure, ok bool) {
	for range maxWaived {
		var f *probeFailure
		if !errors.As(why, &f) || f.Failure.Rule() == "" || slices.Contains(rules(breaks), f.Failure.Rule()) {
			break
		}
		breaks = append(breaks, f)
		if why, ok = try(probe, slices.Concat(waived, rules(breaks))); !ok || why == nil {
			return breaks, ok
		}
	}
	return []*probeFailure{}, true
}

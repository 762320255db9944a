package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	probed  map[string]error              // certain results of probes, nil for success, by setup and the ways that the probe uses
	scripts map[string]*transcript.Script // scripts of probes, by setup and all chosen ways
}

func newSetupWays(s *transcript.Setups) *setupWays {
	return &setupWays{
		setups: s, lock: make(chan struct{}, 1), chosen: transcript.Ways{}, found: map[string]bool{},
		failed: map[string]error{}, pending: map[string]int{}, probed: map[string]error{},
		scripts: map[string]*transcript.Script{},
	}
}

// probeFunc runs the probe of a setup and returns the reason for its failure, or nil. ok is false if the result says
// nothing about the target.
type probeFunc func(*transcript.Script) (why error, ok bool)

// probeFailure is the error of a failed probe.
type probeFailure struct{ *play.Result }

func (f *probeFailure) Error() string { return f.Failure.Error() }

// brokenSetup describes a setup of a case that did not work.
type brokenSetup struct {
	name string
	why  error        // reason; nil if the setup failed while the case ran
	play *play.Result // the run in which it failed; nil if there is none
}

// script returns the script of a case with ways to its setups that work on the target. If a setup does not work, the script
// ends before the first step that uses it, and script returns a description of that setup, too.
func (w *setupWays) script(ctx context.Context, c *Case, try probeFunc) (*transcript.Script, *brokenSetup, error) {
	if len(c.Script.Setups)+len(c.Script.Checks) == 0 {
		return c.Script, nil, nil
	}
	select {
	case w.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	defer func() { <-w.lock }()
	for _, name := range slices.Concat(c.Script.Setups, c.Script.Checks) {
		if _, _, err := w.find(ctx, name, try); err != nil {
			return nil, nil, err
		}
	}
	sc, err := c.Script.With(maps.Clone(w.chosen))
	if err != nil {
		return nil, nil, err
	}
	var broken *brokenSetup
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
		return sc, nil, nil
	}
	if f := (*probeFailure)(nil); errors.As(broken.why, &f) {
		broken.play = f.Result
	}
	return &part, broken, nil
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
	for range 2 { // try all ways twice, because probes may fail on a busy machine
		preferred := true // all previous ways certainly do not work
		for way := range w.setups.Named(name).Ways {
			w.chosen[name] = way
			failure, on, err := w.probe(ctx, name, try)
			if err != nil {
				return nil, unsure, err
			}
			if on == unsure {
				if failure, on, err = w.probe(ctx, name, try); err != nil {
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
// depends on.
func (w *setupWays) probe(ctx context.Context, name string, try probeFunc) (why error, depends int, err error) {
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
	why, ok := w.probed[key]
	if !ok {
		if why, ok = try(probe); ok {
			w.probed[key] = why
		}
	}
	if !ok {
		depends = unsure
	}
	return why, depends, nil
}

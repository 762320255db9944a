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
	pending map[string]bool               // setups whose ways are being tested; probes of other setups may use these setups
	probed  map[string]error              // certain results of probes, nil for success, by setup and the ways that the probe uses
	scripts map[string]*transcript.Script // scripts of probes, by setup and all chosen ways
}

func newSetupWays(s *transcript.Setups) *setupWays {
	return &setupWays{
		setups: s, lock: make(chan struct{}, 1), chosen: transcript.Ways{}, found: map[string]bool{},
		failed: map[string]error{}, pending: map[string]bool{}, probed: map[string]error{},
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

// script returns the script of a case with ways to its setups that work on the target. If a setup does not work, script
// returns a description of that setup instead.
func (w *setupWays) script(ctx context.Context, c *Case, try probeFunc) (*transcript.Script, *brokenSetup, error) {
	if len(c.Script.Setups) == 0 {
		return c.Script, nil, nil
	}
	select {
	case w.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	defer func() { <-w.lock }()
	for _, name := range c.Script.Setups {
		why, final, err := w.find(ctx, name, try)
		if err != nil {
			return nil, nil, err
		}
		if why != nil && final {
			broken := &brokenSetup{name: name, why: why}
			if f := (*probeFailure)(nil); errors.As(why, &f) {
				broken.play = f.Result
			}
			return nil, broken, nil
		}
	}
	sc, err := c.Script.With(maps.Clone(w.chosen))
	return sc, nil, err
}

// find tests the ways to a setup until one works. It returns nil, or the reason why no way works. It skips a way whose
// probe needs a setup that does not work. final is false if the result may change, because it depends on a setup that
// is still being tested or on a probe that says nothing about the target.
func (w *setupWays) find(ctx context.Context, name string, try probeFunc) (why error, final bool, err error) {
	switch {
	case w.found[name]:
		return nil, true, nil
	case w.failed[name] != nil:
		return w.failed[name], true, nil
	case w.pending[name]:
		return nil, false, nil
	}
	w.pending[name] = true
	defer delete(w.pending, name)
	final = true
	for range 2 { // try all ways twice, because probes may fail on a busy machine
		preferred := true // all previous ways certainly do not work
		for way := range w.setups.Named(name).Ways {
			w.chosen[name] = way
			failure, certain, err := w.probe(ctx, name, try)
			if err != nil {
				return nil, false, err
			}
			if !certain { // the machine may have been late, so test the way again
				if failure, certain, err = w.probe(ctx, name, try); err != nil {
					return nil, false, err
				}
			}
			if failure == nil && certain {
				w.found[name] = preferred
				return nil, true, nil
			}
			preferred = preferred && certain
			final = final && certain
			if why == nil {
				why = failure
			}
		}
	}
	delete(w.chosen, name)
	if final {
		w.failed[name] = why
	}
	return why, final, ctx.Err()
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

// probe runs the probe of a setup with the chosen way and returns the reason for its failure, or nil. certain is false
// if the result may change.
func (w *setupWays) probe(ctx context.Context, name string, try probeFunc) (why error, certain bool, err error) {
	probe, err := w.probeScript(name)
	if err != nil {
		return nil, false, err
	}
	certain = true
	for _, needs := range probe.Setups {
		why, final, err := w.find(ctx, needs, try)
		if err != nil || why != nil {
			return why, final, err
		}
		certain = certain && (final || needs == name)
	}
	if probe, err = w.probeScript(name); err != nil { // use the ways that find has just chosen
		return nil, false, err
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
	if why == nil && ok {
		return nil, true, nil
	}
	return why, certain && ok, nil
}

package conform

import (
	"context"
	"errors"
	"maps"
	"sync"

	"jobwire/codec/transcript"
	"jobwire/play"
)

// setupWays finds out, once for each target, which way to each setup works on it.
type setupWays struct {
	setups  *transcript.Setups
	mu      sync.Mutex
	chosen  transcript.Ways  // the way that works or is being tested
	found   map[string]bool  // setups for which a way works
	failed  map[string]error // why no way to a setup works, by the name of the setup
	pending map[string]bool  // setups whose ways are being tested; the probe of another setup may use them
}

func newSetupWays(s *transcript.Setups) *setupWays {
	return &setupWays{
		setups: s, chosen: transcript.Ways{}, found: map[string]bool{}, failed: map[string]error{}, pending: map[string]bool{},
	}
}

// probeFunc runs the probe of a setup and returns why it failed, or nil. ok is false if the result says nothing about the
// target.
type probeFunc func(*transcript.Script) (why error, ok bool)

// probeFailure is the reason why the probe of a setup failed.
type probeFailure struct{ *play.Result }

func (f *probeFailure) Error() string { return f.Failure.Error() }

// brokenSetup is a setup of a case that did not work.
type brokenSetup struct {
	name string
	why  error        // nil if the setup failed in the case itself
	play *play.Result // the run in which it failed; nil if there is none
}

// script returns the script of the case with the ways to its setups that work on the target, or otherwise a setup that does
// not work.
func (w *setupWays) script(ctx context.Context, c *Case, try probeFunc) (*transcript.Script, *brokenSetup, error) {
	if len(c.Script.Setups) == 0 {
		return c.Script, nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
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

// find tests the ways to a setup until one works, and returns why none works. It does not test a way whose probe uses a
// setup that does not work. The result is not final if it depends on a setup whose ways are still being tested, or on a
// probe that says nothing about the target.
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
	for range 2 { // a busy machine may miss a time limit
		preferred := true // no way before this one works
		for way := range w.setups.Named(name).Ways {
			w.chosen[name] = way
			failure, certain, err := w.probe(ctx, name, try)
			if err != nil {
				return nil, false, err
			}
			if !certain { // the machine may have been late: test the way again
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

// probe runs the probe of a setup with the chosen way and returns why it failed.
func (w *setupWays) probe(ctx context.Context, name string, try probeFunc) (why error, certain bool, err error) {
	probe, err := w.setups.Probe(name, w.chosen)
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
	if probe, err = w.setups.Probe(name, w.chosen); err != nil { // with the ways that were found
		return nil, false, err
	}
	why, ok := try(probe)
	if why == nil && ok {
		return nil, true, nil
	}
	return why, certain && ok, nil
}

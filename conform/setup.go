package conform

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"jobwire/codec/transcript"
)

// setupWays finds out, once for a target, which way to each setup works on it.
type setupWays struct {
	setups *transcript.Setups
	mu     sync.Mutex
	chosen transcript.Ways
	failed map[string]string // why no way to a setup works, by its name
	known  map[string]bool   // setups that were tried
}

func newSetupWays(s *transcript.Setups) *setupWays {
	return &setupWays{setups: s, chosen: transcript.Ways{}, failed: map[string]string{}, known: map[string]bool{}}
}

// script returns the script of the case with the ways to its setups that work on the target, or why one of its setups
// does not work. try performs a transcript and returns why it failed; it reports false if that says nothing about the
// target.
func (w *setupWays) script(ctx context.Context, c *Case, try func(*transcript.Script) (why string, ok bool)) (*transcript.Script, string, error) {
	if len(c.Script.Setups) == 0 {
		return c.Script, "", nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range c.Script.Setups {
		if err := w.find(ctx, name, true, try); err != nil {
			return nil, "", err
		}
		if why := w.failed[name]; why != "" {
			return nil, fmt.Sprintf("the setup %q does not work on this target: %s", name, why), nil
		}
	}
	sc, err := c.Script.With(maps.Clone(w.chosen))
	return sc, "", err
}

// find tries the ways to a setup until one works. If its probe uses other setups, it finds ways to those too; that none
// works is final only of the outermost, since the fault may be in the setup that uses it.
func (w *setupWays) find(ctx context.Context, name string, outermost bool, try func(*transcript.Script) (string, bool)) error {
	if w.known[name] {
		return nil
	}
	w.known[name] = true
	setup := w.setups.Named(name)
	first, certain := "", true
	for round := 0; round < 2; round++ { // a busy machine may miss a time limit
		for way := range setup.Ways {
			w.chosen[name] = way
			probe, err := w.setups.Probe(name, w.chosen)
			if err != nil {
				return err
			}
			for _, needs := range probe.Setups {
				if err := w.find(ctx, needs, false, try); err != nil {
					return err
				}
			}
			if probe, err = w.setups.Probe(name, w.chosen); err != nil {
				return err
			}
			why, ok := try(probe)
			if why == "" && ok {
				return nil
			}
			certain = certain && ok
			if first == "" {
				first = why
			}
		}
	}
	if delete(w.chosen, name); certain && outermost {
		w.failed[name] = first
	} else {
		w.known[name] = false // to be tried again
	}
	return ctx.Err()
}

package fuzz

import (
	"context"
	"fmt"

	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// Replay runs the inputs of a log on a new server, in order, until the server ends or hangs. It calls failed for each
// fault that an oracle reports, with the number of the input, counted from 1. It returns an error if the server cannot
// be started or ctx is canceled.
func Replay(ctx context.Context, cfg Config, log *input.Log, failed func(n int, v *exec.Fault)) error {
	f := newFuzzer(cfg)
	f.stopped = func() bool { return ctx.Err() != nil }
	f.triage = newTriage(ctx, f)
	l := f.triage.onlyExaminer.replay
	if log.Clock > 1 && cfg.StartFast == nil {
		return fmt.Errorf("the clock of the server of this log ran %d times as fast: add --fast-clock=%[1]d", log.Clock)
	}
	l.setClock(log.Clock)
	defer f.triage.ending.Wait()
	defer l.close()
	if err := f.calibrate(ctx); err != nil {
		return err
	}
	if err := l.ready(); err != nil {
		return err
	}
	l.used, l.x.Thorough = true, false
	for i, e := range log.Entries {
		r := l.x.Execute(e.Input, e.Prefix)
		if r.Fault == nil && !exec.Ended(l.t) {
			continue
		}
		if v := exec.Verdict(l.t, r.Fault); v != nil && ctx.Err() == nil {
			if failed(i+1, v); v.Ends() || v.MaybeCrashed() {
				return nil
			}
		}
	}
	if v := l.atEnd(nil); v != nil && ctx.Err() == nil {
		failed(len(log.Entries), v)
	}
	return ctx.Err()
}

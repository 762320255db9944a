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
	if log.Clock > 1 && cfg.StartFast == nil {
		return fmt.Errorf("the clock of the server of this log ran %d times as fast: add --fast-clock=%[1]d", log.Clock)
	}
	f := newFuzzer(cfg)
	if err := f.calibrate(ctx); err != nil {
		return err
	}
	return f.newTriage(ctx).ReplayLog(log, failed)
}

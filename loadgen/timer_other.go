//go:build !linux

package loadgen

import (
	"context"
	"time"
)

// preciseTimer waits as sleep does.
type preciseTimer struct{}

func newPreciseTimer() preciseTimer { return preciseTimer{} }

func (preciseTimer) wait(ctx context.Context, d time.Duration) bool { return sleep(ctx, d) }

func (preciseTimer) close() {}

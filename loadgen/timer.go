package loadgen

import (
	"context"
	"time"
)

// coarseTimer is a timer with the precision of time.Timer.
type coarseTimer struct{ t *time.Timer }

func newCoarseTimer() coarseTimer { return coarseTimer{time.NewTimer(time.Hour)} }

// wait returns true after d, or false if ctx is done earlier.
func (c coarseTimer) wait(ctx context.Context, d time.Duration) bool {
	c.t.Reset(d)
	select {
	case <-c.t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c coarseTimer) close() { c.t.Stop() }

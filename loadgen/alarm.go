package loadgen

import (
	"context"
	"time"
)

// coarse is an alarm made of Go's timers.
type coarse struct{ t *time.Timer }

func newCoarse() coarse { return coarse{time.NewTimer(time.Hour)} }

func (c coarse) wait(ctx context.Context, d time.Duration) bool {
	c.t.Reset(d)
	select {
	case <-c.t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c coarse) close() { c.t.Stop() }

package target

import (
	"context"
	"sync/atomic"
	"time"
)

type stopsKey struct{}

// WithStops returns a context for programs: n counts how often, ten times per second, a signal was seen to have stopped
// them (SIGSTOP). It works on Linux only.
func WithStops(ctx context.Context, n *atomic.Int64) context.Context {
	return context.WithValue(ctx, stopsKey{}, n)
}

// WatchStops counts for [WithStops] until the process ends, and done is closed.
func WatchStops(ctx context.Context, pid int, done <-chan struct{}) {
	n, ok := ctx.Value(stopsKey{}).(*atomic.Int64)
	if !ok {
		return
	}
	go func() {
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if stopped(pid) {
					n.Add(1)
				}
			case <-done:
				return
			}
		}
	}()
}

package audit

import (
	"context"
	"sync/atomic"
	"time"
)

// A client that measures a timeout itself reports a time-out if the machine is so busy that a reply reaches it too late. Such a
// failure is not the client's. maxLateness is the time that may be lost during a task whose failure counts; a delay of one tick of
// up to minLateness is normal.
const (
	maxLateness = 100 * time.Millisecond
	minLateness = 5 * time.Millisecond
)

// lateness measures how much time is lost because this machine wakes a waiting goroutine too late.
type lateness struct{ lost atomic.Int64 }

// measureLateness measures until ctx ends.
func measureLateness(ctx context.Context) *lateness {
	l := &lateness{}
	go func() {
		t := time.NewTimer(tick)
		defer t.Stop()
		for begun := time.Now(); ; begun = time.Now() {
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
			if by := time.Since(begun) - tick; by > minLateness {
				l.lost.Add(int64(by))
			}
			t.Reset(tick)
		}
	}()
	return l
}

// total returns the time that was lost so far.
func (l *lateness) total() time.Duration { return time.Duration(l.lost.Load()) }

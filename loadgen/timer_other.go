//go:build !linux

package loadgen

// preciseTimer waits with the precision of a coarseTimer.
type preciseTimer struct{ coarseTimer }

func newPreciseTimer() *preciseTimer { return &preciseTimer{newCoarseTimer()} }

//go:build !linux

package loadgen

// preciseTimer waits.
type preciseTimer struct{ coarseTimer }

func newPreciseTimer() *preciseTimer { return &preciseTimer{newCoarseTimer()} }

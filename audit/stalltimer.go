package audit

import "time"

// tick is the unit of a stallTimer.
const tick = 10 * time.Millisecond

// stallTimer is a time limit that counts ticks. Ticks that are delayed because the machine is busy count only once, so
// that a program is not reported as hanging while it hardly runs.
type stallTimer struct {
	*time.Ticker
	left int
}

// newStallTimer returns a running timer with a limit.
func newStallTimer(limit time.Duration) *stallTimer {
	s := &stallTimer{Ticker: time.NewTicker(tick)}
	s.restart(limit)
	return s
}

func (s *stallTimer) restart(limit time.Duration) { s.left = int(limit / tick) }

// over is called after each tick, and reports whether the time limit has expired.
func (s *stallTimer) over() bool {
	s.left--
	return s.left <= 0
}

package audit

import "time"

// tick is what stallTimer is counted in.
const tick = 10 * time.Millisecond

// stallTimer is a time limit that passes no faster than this machine keeps up with: ticks that come
// late count once, so that a program is not blamed for hanging where hardly anything runs.
type stallTimer struct {
	*time.Ticker
	left int
}

func newStallTimer(limit time.Duration) *stallTimer {
	p := &stallTimer{Ticker: time.NewTicker(tick)}
	p.restart(limit)
	return p
}

func (p *stallTimer) restart(limit time.Duration) { p.left = int(limit / tick) }

// over reports, after a tick, whether that was the last.
func (p *stallTimer) over() bool {
	p.left--
	return p.left <= 0
}

package audit

import "time"

// tick is what patience is counted in.
const tick = 10 * time.Millisecond

// patience is a time limit that passes no faster than this machine keeps up with: ticks that come
// late count once, so that a program is not blamed for hanging where hardly anything runs.
type patience struct {
	*time.Ticker
	left int
}

func newPatience(limit time.Duration) *patience {
	p := &patience{Ticker: time.NewTicker(tick)}
	p.restart(limit)
	return p
}

func (p *patience) restart(limit time.Duration) { p.left = int(limit / tick) }

// over reports, behind a tick, whether that was the last.
func (p *patience) over() bool {
	p.left--
	return p.left <= 0
}

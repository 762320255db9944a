// Package lateness measures how late this machine wakes a waiting goroutine. A process that gets little CPU time cannot
// distinguish a slow program from its own delays.
package lateness

import (
	"context"
	"sync"
	"time"
)

const (
	tick    = 10 * time.Millisecond
	minLost = 5 * time.Millisecond // a delay of one tick of up to minLost is normal

	// Acceptable is the longest delay that is normal for a machine that is not busy. Since ignores such delays.
	Acceptable = 20 * time.Millisecond
)

// Meter measures delays. Its zero value has measured none.
type Meter struct {
	mu   sync.Mutex
	lost time.Duration
	long []delay // delays longer than Acceptable, oldest first; a delay is removed when a later one is equal or longer
}

type delay struct {
	at time.Time
	by time.Duration
}

// Measure measures until ctx ends.
func Measure(ctx context.Context) *Meter {
	m := new(Meter)
	go func() {
		t := time.NewTimer(tick)
		defer t.Stop()
		for begun := time.Now(); ; {
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
			now := time.Now()
			m.Note(now, now.Sub(begun)-tick)
			begun = now
			t.Reset(tick)
		}
	}()
	return m
}

// Note adds a delay that ended at the given time.
func (m *Meter) Note(at time.Time, by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by > minLost {
		m.lost += by
	}
	if by <= Acceptable {
		return
	}
	for len(m.long) > 0 && m.long[len(m.long)-1].by <= by {
		m.long = m.long[:len(m.long)-1]
	}
	m.long = append(m.long, delay{at, by})
}

// Lost returns the sum of all delays so far of more than 5 ms each.
func (m *Meter) Lost() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// Since returns the longest delay since time t, or 0 if no delay was longer than Acceptable.
func (m *Meter) Since(t time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, late := range m.long {
		if !late.at.Before(t) {
			return late.by
		}
	}
	return 0
}

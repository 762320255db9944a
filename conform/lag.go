package conform

import (
	"sync"
	"time"

	"jobwire/codec/transcript"
	"jobwire/play"
)

const (
	lagTick = 10 * time.Millisecond
	maxLag  = 20 * time.Millisecond // what is bearable whatever the times

	// shareOfWait is how much of the time that an expectation waits this machine may
	// be late before the wait proves nothing: a quarter.
	shareOfWait = 4
)

// lagMeter measures how late this machine wakes who waits: a process that hardly gets
// to run cannot tell a slow target from itself.
type lagMeter struct {
	mu   sync.Mutex
	seen []lateness // those beyond maxLag, oldest first, without those that a later one has reached
	quit chan struct{}
	gone chan struct{}
}

type lateness struct {
	at time.Time
	by time.Duration
}

func watchLag() *lagMeter {
	m := &lagMeter{quit: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(m.gone)
		t := time.NewTimer(lagTick)
		defer t.Stop()
		due := time.Now().Add(lagTick)
		for {
			select {
			case <-t.C:
			case <-m.quit:
				return
			}
			now := time.Now()
			m.note(now, now.Sub(due))
			due = now.Add(lagTick)
			t.Reset(lagTick)
		}
	}()
	return m
}

func (m *lagMeter) note(at time.Time, by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by <= maxLag {
		return
	}
	for len(m.seen) > 0 && m.seen[len(m.seen)-1].by <= by {
		m.seen = m.seen[:len(m.seen)-1]
	}
	m.seen = append(m.seen, lateness{at, by})
}

// since returns the worst lateness since a moment, or 0 if it was bearable.
func (m *lagMeter) since(t time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, late := range m.seen {
		if !late.at.Before(t) {
			return late.by
		}
	}
	return 0
}

func (m *lagMeter) stop() {
	close(m.quit)
	<-m.gone
}

// timed returns the time that a failure depends on: the limit that was exceeded, or else the shortest silence or delay in
// the steps before it, which a case uses to let one connection act before another. It is 0 if there is none.
func timed(script *transcript.Script, f *play.Failure) time.Duration {
	shortest := f.Waited
	if shortest > 0 {
		return shortest
	}
	note := func(d time.Duration) {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	for _, st := range script.Steps[:min(f.Index+1, len(script.Steps))] {
		note(st.After)
		for _, c := range st.Choices {
			note(c.For)
		}
	}
	return shortest
}

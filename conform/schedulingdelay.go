package conform

import (
	"sync"
	"time"

	"jobwire/codec/transcript"
	"jobwire/play"
)

const (
	delayTick = 10 * time.Millisecond
	maxLag    = 20 * time.Millisecond // delays up to maxLag are always acceptable

	// maxDelayShare limits the scheduling delay relative to the time for which an expectation waits: if the delay is
	// longer than that time divided by maxDelayShare, the wait proves nothing.
	maxDelayShare = 4
)

// schedulingDelay measures scheduling delays: how late this machine wakes a waiting goroutine. A process that gets
// little CPU time cannot distinguish a slow target from its own delays.
type schedulingDelay struct {
	mu   sync.Mutex
	seen []lateness // delays longer than maxLag, oldest first; a delay is removed when a later one is equal or longer
	quit chan struct{}
	gone chan struct{}
}

type lateness struct {
	at time.Time
	by time.Duration
}

func measureSchedulingDelay() *schedulingDelay {
	m := &schedulingDelay{quit: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(m.gone)
		t := time.NewTimer(delayTick)
		defer t.Stop()
		expected := time.Now().Add(delayTick)
		for {
			select {
			case <-t.C:
			case <-m.quit:
				return
			}
			now := time.Now()
			m.note(now, now.Sub(expected))
			expected = now.Add(delayTick)
			t.Reset(delayTick)
		}
	}()
	return m
}

func (m *schedulingDelay) note(at time.Time, by time.Duration) {
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

// since returns the longest delay since time t, or 0 if no delay was longer than maxLag.
func (m *schedulingDelay) since(t time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, late := range m.seen {
		if !late.at.Before(t) {
			return late.by
		}
	}
	return 0
}

func (m *schedulingDelay) stop() {
	close(m.quit)
	<-m.gone
}

// timed returns the duration on which a failure depends: the time limit that was exceeded or, if there is none, the
// shortest silence or delay in the steps up to the failure. It returns 0 if there is none. An invalid message does not
// depend on time.
func timed(script *transcript.Script, f *play.Failure) time.Duration {
	shortest := f.Waited
	if shortest > 0 || f.Rule() != "" {
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

package loadgen

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Schedule says when jobs are due in an open loop.
type Schedule struct {
	Steps   []Step
	Poisson bool // at random, so many on average; else evenly
}

// Step is a part of a schedule: from a rate to another, in jobs a second, over a time. The last
// goes on for ever if its time is 0.
type Step struct {
	From, To float64
	For      time.Duration
}

// lateness is how far behind its own schedule the generator was, which has nothing to do
// with the server.
type lateness struct {
	mu         sync.Mutex // not the meter's, which is held while it waits for connections
	count      int64
	sum, worst time.Duration
	skipped    int64 // jobs that were due while too many were under way
}

// rateAt returns the rate at a time since the beginning.
func (s *Schedule) rateAt(t time.Duration) float64 {
	for _, st := range s.Steps {
		if st.For == 0 {
			return st.From
		}
		if t < st.For {
			return st.From + (st.To-st.From)*float64(t)/float64(st.For)
		}
		t -= st.For
	}
	return s.Steps[len(s.Steps)-1].To
}

// pace starts jobs by the schedule, if there is one, over all clients in turn, until the
// function that it returns is called.
func (r *run) pace(ctx context.Context, m *meter) (stop func()) {
	if r.cfg.Rate == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.keepPace(ctx, m)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (r *run) keepPace(ctx context.Context, m *meter) {
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, 1))
	clock := newAlarm()
	defer clock.close()
	began := r.clock()
	due := time.Duration(0)
	for turn := 0; ; turn++ {
		rate := r.cfg.Rate.rateAt(due)
		gap := 1 / rate
		if r.cfg.Rate.Poisson {
			gap = rnd.ExpFloat64() / rate
		}
		due += time.Duration(gap * float64(time.Second))
		if wait := began + int64(due) - r.clock(); wait > 0 {
			if !clock.wait(ctx, time.Duration(wait)) {
				return
			}
		} else if ctx.Err() != nil {
			return
		}
		if !r.claim() {
			return
		}
		c := r.clients[turn%len(r.clients)]
		c.mu.Lock()
		c.now = r.clock()
		m.paced(time.Duration(c.now-began) - due)
		if !c.start(began + int64(due)) {
			m.skip()
		}
		c.flush()
		c.mu.Unlock()
	}
}

func (m *meter) paced(late time.Duration) {
	m.pacing.mu.Lock()
	defer m.pacing.mu.Unlock()
	m.pacing.count++
	m.pacing.sum += late
	m.pacing.worst = max(m.pacing.worst, late)
}

func (m *meter) skip() {
	m.pacing.mu.Lock()
	defer m.pacing.mu.Unlock()
	m.pacing.skipped++
}

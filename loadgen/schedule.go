package loadgen

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Schedule says when jobs are submitted in an open loop.
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

// lateness is how much later than scheduled the generator submitted jobs, which has nothing to do
// with the server.
type lateness struct {
	mu         sync.Mutex // not the meter's, which is held while it waits for connections
	count      int64
	sum, worst time.Duration
	skipped    int64 // jobs whose time came while too many were in flight
}

// begin forgets how late jobs of the warm-up were.
func (l *lateness) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.sum, l.worst = 0, 0, 0
}

// mean returns the average rate between two times since the beginning, in jobs a second with three
// decimals.
func (s *Schedule) mean(from, to time.Duration) float64 {
	jobs := 0.0
	begin := time.Duration(0)
	for i, st := range s.Steps {
		end := begin + st.For
		if st.For == 0 || i == len(s.Steps)-1 && to > end {
			end = max(to, end)
		}
		if a, b := max(from, begin), min(to, end); a < b {
			if st.For > 0 && b > begin+st.For { // the last step's final rate goes on
				jobs += s.rateAt(b) * (b - max(a, begin+st.For)).Seconds()
				b = begin + st.For
			}
			if a < b {
				jobs += (st.rateAt(a-begin) + st.rateAt(b-begin)) / 2 * (b - a).Seconds()
			}
		}
		begin = end
	}
	return math.Round(jobs/(to-from).Seconds()*1e3) / 1e3
}

// rateAt returns the step's rate at a time since it began.
func (st Step) rateAt(t time.Duration) float64 {
	if st.For == 0 {
		return st.From
	}
	return st.From + (st.To-st.From)*float64(t)/float64(st.For)
}

// rateAt returns the rate at a time since the beginning.
func (s *Schedule) rateAt(t time.Duration) float64 {
	for _, st := range s.Steps {
		if st.For == 0 || t < st.For {
			return st.rateAt(t)
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
	clock := newPreciseTimer()
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

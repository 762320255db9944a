package loadgen

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Schedule says when jobs are submitted in an open loop.
type Schedule struct {
	Steps   []Step
	Poisson bool // at random, so many on average; else evenly
}

// Step is a part of a schedule: from a rate to another, in jobs a second, over a time. The last
// has no end if its time is 0.
type Step struct {
	From, To float64
	For      time.Duration
}

// lateness is how much later than scheduled the generator submitted jobs, in nanoseconds. The server has no part in it.
type lateness struct {
	mu      sync.Mutex // not the meter's, which is locked while it waits for connections
	hist    *hdrhistogram.Histogram
	gaps    gaps
	skipped int64 // jobs whose time came while too many were in flight
}

// begin forgets how late jobs of the warm-up were.
func (l *lateness) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hist.Reset()
	l.gaps = gaps{}
}

// add adds the jobs of a batch that was submitted at a time since the beginning.
func (l *lateness) add(at time.Duration, late []int64, skipped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ns := range late {
		l.gaps.add(at)
		l.hist.RecordValue(min(max(ns, lowest), highest))
	}
	l.skipped += skipped
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

// highest returns the highest rate of all steps.
func (s *Schedule) highest() (rate float64) {
	for _, st := range s.Steps {
		rate = max(rate, st.From, st.To)
	}
	return rate
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
	return background(ctx, func(ctx context.Context) { r.submitScheduled(ctx, m) })
}

// Limits of the batches of an open loop. To wake up and to write costs more than to submit several jobs, so the jobs of a short time are
// submitted together.
const (
	minBatchInterval = 50 * time.Microsecond  // least time between two batches
	mostStep         = 250 * time.Microsecond // the same from the rate fullRate on
	fullRate         = 100_000                // jobs per second
	maxBatch         = 256                    // jobs that one client submits in one write
)

// batchInterval returns the least time between two batches at a rate in jobs per second.
func batchInterval(rate float64) time.Duration {
	return min(max(minBatchInterval, time.Duration(rate/fullRate*float64(mostStep))), mostStep)
}

// arrivals are the times of the jobs of a schedule.
type arrivals struct {
	*Schedule
	rand *rand.Rand
	next time.Duration // of the next job, since the beginning
}

func (s *Schedule) arrivals(seed uint64) *arrivals {
	a := &arrivals{Schedule: s, rand: rand.New(rand.NewPCG(seed, 1))}
	a.advance()
	return a
}

// advance computes the time of the next job.
func (a *arrivals) advance() {
	gap := 1 / a.rateAt(a.next)
	if a.Poisson {
		gap *= a.rand.ExpFloat64()
	}
	a.next += time.Duration(gap * float64(time.Second))
}

// submitScheduled submits jobs at their times. Those of the same time go to one client, or to several if they are many.
func (r *run) submitScheduled(ctx context.Context, m *meter) {
	clock := newPreciseTimer()
	defer clock.close()
	jobs := r.cfg.Rate.arrivals(r.cfg.Seed)
	began, last, turn := r.clock(), -mostStep, 0
	late := make([]int64, 0, maxBatch)
	for {
		now := time.Duration(r.clock() - began)
		if wait := max(jobs.next, last+batchInterval(jobs.rateAt(last))) - now; wait > 0 {
			if !clock.wait(ctx, wait) {
				return
			}
			now = time.Duration(r.clock() - began)
		} else if ctx.Err() != nil {
			return
		}
		for last = now; jobs.next <= now; turn++ {
			late = late[:0]
			skipped := int64(0)
			c := r.available(&turn)
			c.mu.Lock()
			c.now = r.clock()
			at := time.Duration(c.now - began)
			for jobs.next <= now && len(late) < maxBatch {
				if full := len(c.pool.free) == 0; full && int64(len(late)) > skipped {
					break // others may have room
				}
				if r.claimJobs(1) == 0 {
					c.flush()
					c.mu.Unlock()
					m.pacing.add(at, late, skipped)
					return
				}
				if late = append(late, c.now-began-int64(jobs.next)); !c.start(began + int64(jobs.next)) {
					skipped++
				}
				jobs.advance()
			}
			c.flush()
			c.mu.Unlock()
			m.pacing.add(at, late, skipped)
		}
	}
}

// available returns the next client that may have another job in flight, and sets turn to it. If there is none, it is the next one.
func (r *run) available(turn *int) *ClientConn {
	for n := range r.clients {
		c := r.clients[(*turn+n)%len(r.clients)]
		c.mu.Lock()
		free := !c.closed && len(c.pool.free) > 0
		c.mu.Unlock()
		if free {
			*turn += n
			return c
		}
	}
	return r.clients[*turn%len(r.clients)]
}

package loadgen

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Schedule is the arrival schedule of an open loop: the steps follow each other, and the last one lasts until the end
// of the run.
type Schedule struct {
	Steps   []Step
	Poisson bool // jobs arrive at random times (a Poisson process) with the rates of the steps; false: at equal intervals
}

// Step is a part of a schedule in which the rate changes linearly from From to To, in jobs per second, over the time
// For. A last step with For 0 has the constant rate From and no end.
type Step struct {
	From, To float64
	For      time.Duration
}

// lateness measures the delay between the scheduled time and the submission of jobs, in nanoseconds. The load
// generator causes this delay, not the server.
type lateness struct {
	mu      sync.Mutex // separate from meter.mu, which is locked while the meter waits for connections
	hist    *hdrhistogram.Histogram
	gaps    gaps
	skipped int64 // jobs that were not submitted, because too many were in flight at their scheduled time
}

// begin discards the measurements of the warm-up.
func (l *lateness) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hist.Reset()
	l.gaps = gaps{}
}

// add adds the jobs of a batch. at is the time of the submission since the start of the schedule, late the delay of
// each job in nanoseconds, skipped the number of these jobs that were not submitted.
func (l *lateness) add(at time.Duration, late []int64, skipped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ns := range late {
		l.gaps.add(at)
		l.hist.RecordValue(min(max(ns, lowest), highest))
	}
	l.skipped += skipped
}

// mean returns the average rate between two times since the start of the schedule, in jobs per second, rounded to
// three decimals.
func (s *Schedule) mean(from, to time.Duration) float64 {
	if from >= to {
		return s.rateAt(from)
	}
	jobs := 0.0
	begin := time.Duration(0)
	for i, st := range s.Steps {
		end := begin + st.For
		if st.For == 0 || i == len(s.Steps)-1 && to > end {
			end = max(to, end)
		}
		if a, b := max(from, begin), min(to, end); a < b {
			if st.For > 0 && b > begin+st.For { // after its end, the last step continues with its final rate
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

// after returns the rest of the schedule after a time since its start.
func (s *Schedule) after(t time.Duration) *Schedule {
	rest := &Schedule{Poisson: s.Poisson}
	for _, st := range s.Steps {
		if st.For > 0 && t >= st.For {
			t -= st.For
			continue
		}
		st.From = st.rateAt(t)
		if st.For > 0 {
			st.For -= t
		}
		rest.Steps, t = append(rest.Steps, st), 0
	}
	if rest.Steps == nil { // the last step continues with its final rate
		last := s.Steps[len(s.Steps)-1].To
		rest.Steps = []Step{{From: last, To: last}}
	}
	return rest
}

// rateAt returns the rate in jobs per second at a time since the start of the step.
func (st Step) rateAt(t time.Duration) float64 {
	if st.For == 0 {
		return st.From
	}
	return st.From + (st.To-st.From)*float64(t)/float64(st.For)
}

// highest returns the highest rate of all steps, in jobs per second.
func (s *Schedule) highest() (rate float64) {
	for _, st := range s.Steps {
		rate = max(rate, st.From, st.To)
	}
	return rate
}

// rateAt returns the rate in jobs per second at a time since the start of the schedule.
func (s *Schedule) rateAt(t time.Duration) float64 {
	for _, st := range s.Steps {
		if st.For == 0 || t < st.For {
			return st.rateAt(t)
		}
		t -= st.For
	}
	return s.Steps[len(s.Steps)-1].To
}

// pace submits jobs according to the schedule, if there is one, in turn from all clients. The returned function stops
// it.
func (r *run) pace(ctx context.Context, m *meter) (stop func()) {
	if r.cfg.Rate == nil {
		return func() {}
	}
	timer := newTimer(r.clients[0].nc)
	return background(ctx, func(ctx context.Context) {
		defer timer.close()
		r.submitScheduled(ctx, m, timer)
	})
}

// Limits of the batches of an open loop. A wakeup and a write cost more CPU time than the submission of several jobs,
// so the jobs of a short time are submitted together.
const (
	minBatchInterval = 50 * time.Microsecond  // shortest time between two batches, at low rates
	mostStep         = 250 * time.Microsecond // shortest time between two batches, at fullRate and higher rates
	fullRate         = 100_000                // jobs per second
	maxBatch         = 256                    // jobs that one client submits in one write
)

// batchInterval returns the shortest time between two batches at a rate in jobs per second. It grows linearly with
// the rate, up to mostStep.
func batchInterval(rate float64) time.Duration {
	return min(max(minBatchInterval, time.Duration(rate/fullRate*float64(mostStep))), mostStep)
}

// arrivals generates the scheduled times of the jobs.
type arrivals struct {
	*Schedule
	rand *rand.Rand
	next time.Duration // scheduled time of the next job, since the start of the schedule
}

// arrivals returns the scheduled times of the jobs. seed determines the random times of a Poisson schedule.
func (s *Schedule) arrivals(seed uint64) *arrivals {
	a := &arrivals{Schedule: s, rand: rand.New(rand.NewPCG(seed, 1))}
	a.advance()
	return a
}

// advance computes the scheduled time of the next job.
func (a *arrivals) advance() {
	gap := 1 / a.rateAt(a.next)
	if a.Poisson {
		gap *= a.rand.ExpFloat64()
	}
	a.next += time.Duration(gap * float64(time.Second))
}

// submitScheduled submits jobs at their scheduled times until ctx is done or all jobs of the run are submitted. One
// client submits all jobs of a batch, unless it would have too many in flight or they are more than maxBatch.
func (r *run) submitScheduled(ctx context.Context, m *meter, timer *timer) {
	jobs := r.cfg.Rate.arrivals(r.cfg.Seed)
	began, last, turn := r.clock(), -mostStep, 0
	late := make([]int64, 0, maxBatch)
	for {
		now := time.Duration(r.clock() - began)
		if wait := max(jobs.next, last+batchInterval(jobs.rateAt(last))) - now; wait > 0 {
			if !timer.wait(ctx, wait) {
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
					break // another client may have fewer jobs in flight
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

// available returns the next client that can have another job in flight, starting with client *turn, and adjusts
// turn. If no client can, it returns client *turn.
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

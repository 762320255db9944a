package loadgen

import (
	"context"
	"sync"
	"time"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/schedule"
)

// lateness measures the delay between the scheduled time and the submission of jobs, in nanoseconds. The load
// generator causes this delay, not the server.
type lateness struct {
	mu      sync.Mutex // separate from meter.mu, which is locked while the meter waits for connections
	hist    *latency.Histogram
	gaps    schedule.Gaps
	skipped int64 // jobs that were not submitted, because too many were in flight at their scheduled time
}

// begin discards the measurements of the warm-up.
func (l *lateness) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hist.Reset()
	l.gaps = schedule.Gaps{}
}

// add adds the jobs of a batch. at is the time of the submission since the start of the schedule, late the delay of
// each job in nanoseconds, skipped the number of these jobs that were not submitted.
func (l *lateness) add(at time.Duration, late []int64, skipped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ns := range late {
		l.gaps.Add(at)
		latency.Record(l.hist, ns)
	}
	l.skipped += skipped
}

// Limits of the batches of an open loop. A wakeup and a write cost more CPU time than the submission of several jobs,
// so the jobs of a short time are submitted together.
const (
	minBatchInterval = 50 * time.Microsecond  // shortest time between two batches, at low rates
	mostStep         = 250 * time.Microsecond // shortest time between two batches, at fullRate and higher rates
	fullRate         = 100_000                // jobs per second
	maxBatch         = 256                    // jobs that one client submits in one write
	// shortest mean gap for which the independence of submissions is checked
	minGap = 4 * minBatchInterval
)

// batchInterval returns the shortest time between two batches at a rate in jobs per second. It grows linearly with
// the rate, up to mostStep.
func batchInterval(rate float64) time.Duration {
	return min(max(minBatchInterval, time.Duration(rate/fullRate*float64(mostStep))), mostStep)
}

// submitScheduled submits jobs at their scheduled times, in turn from all clients, until ctx is done or all jobs of the run are submitted. One
// client submits all jobs of a batch, unless it would have too many in flight or they are more than maxBatch.
func (r *run) submitScheduled(ctx context.Context, m *meter) {
	timer := newTimer(r.clients[0].nc)
	defer timer.close()
	jobs := r.cfg.Rate.Arrivals(r.cfg.Seed)
	began, last, turn := r.clock(), -mostStep, 0
	late := make([]int64, 0, maxBatch)
	for {
		now := time.Duration(r.clock() - began)
		if wait := max(jobs.Next, last+batchInterval(jobs.RateAt(last))) - now; wait > 0 {
			if !timer.wait(ctx, wait) {
				return
			}
			now = time.Duration(r.clock() - began)
		} else if ctx.Err() != nil {
			return
		}
		for last = now; jobs.Next <= now; turn++ {
			late = late[:0]
			skipped := int64(0)
			c := r.available(&turn)
			c.mu.Lock()
			c.now = r.clock()
			at := time.Duration(c.now - began)
			for jobs.Next <= now && len(late) < maxBatch {
				if full := len(c.pool.free) == 0; full && int64(len(late)) > skipped {
					break // another client may have fewer jobs in flight
				}
				if r.claimJobs(1) == 0 {
					c.flush()
					c.mu.Unlock()
					m.pacing.add(at, late, skipped)
					return
				}
				if late = append(late, c.now-began-int64(jobs.Next)); !c.start(began + int64(jobs.Next)) {
					skipped++
				}
				jobs.Advance()
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

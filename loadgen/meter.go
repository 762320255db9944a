package loadgen

import (
	"sync"
	"time"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
)

// Interval is what happened in one interval of a run.
type Interval struct {
	Start   time.Duration                // time since the start of the measured part; negative during the warm-up
	Length  time.Duration                // configured as Config.Interval; the last interval may be shorter
	Done    int64                        // jobs that ended in the interval
	Depth   int64                        // jobs in flight at the end of the interval
	Stages  latency.Histograms           // latencies; valid only during the call of Config.OnInterval
	Latency map[string]latency.Quantiles // percentiles by stage
	Account Account                      // counts since the start of the run
	// after the measured part: workers process the jobs that were queued in the measured part; these jobs are not counted
	// again
	Draining bool
	// after the measured part of an open loop: only the latencies of this interval are reported
	AfterWindow bool
}

// Rate returns the jobs per second of the interval.
func (i *Interval) Rate() float64 { return PerSecond(float64(i.Done), i.Length.Seconds()) }

// JobLatency returns the percentiles of the stage total or, if no job has ended in a way that is measured, of the stage
// created.
func (i *Interval) JobLatency() latency.Quantiles {
	if total := i.Latency[latency.Stages[latency.Total]]; total.Count > 0 {
		return total
	}
	return i.Latency[latency.Stages[latency.Created]]
}

// meter measures a run in progress.
type meter struct {
	r  *run
	mu sync.Mutex

	began    time.Time     // start of the measured part
	ended    time.Time     // end of the measured part
	measured bool          // the measured part has begun
	jobs     int64         // jobs that ended in the measured part
	late     int64         // jobs of an open loop that ended after the measured part
	cpu      machine.Usage // during the measured part: values at its start; after it: the difference

	last      time.Time          // end of the last interval
	now       latency.Histograms // latencies of the current interval
	total     latency.Histograms // latencies of the measured part
	intervals []Interval
	pacing    lateness
	steady    time.Duration // lowest mean latency of an interval of the measured part
	backlog   int64         // jobs in flight at the end of the measured part
}

func newMeter(r *run) *meter {
	return &meter{r: r, last: time.Now(), now: latency.New(), total: latency.New(),
		pacing: lateness{hist: latency.NewHistogram()}}
}

// begin starts the measured part and discards the latencies of the warm-up.
func (m *meter) begin() {
	m.interval() // end the last interval of the warm-up
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total.Reset()
	m.jobs = 0
	m.pacing.begin()
	for i := range m.intervals { // Start counts from now on, so that intervals of the warm-up are negative
		m.intervals[i].Start -= time.Since(m.r.base)
	}
	m.cpu = machine.ReadUsage()
	m.began = time.Now()
	m.last, m.measured = m.began, true
	m.r.cfg.PhaseChange()
}

// end ends the measured part. Later calls do nothing.
func (m *meter) end() {
	if !m.ended.IsZero() {
		return
	}
	m.interval()
	m.ended = m.last
	if m.backlog = m.r.inFlight(); m.steady == 0 {
		m.steady = time.Duration(m.total[latency.Total].Mean())
	}
	m.cpu = machine.ReadUsage().Since(m.cpu)
	m.r.cfg.PhaseChange()
}

// minJobsPerInterval is the number of jobs that an interval needs for its mean latency to count for meter.steady.
const minJobsPerInterval = 100

// interval ends the current interval and starts the next one.
func (m *meter) interval() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.now.Reset()
	done := m.r.collect(m.now)
	if !m.ended.IsZero() {
		m.draining(now, done)
		return
	}
	m.jobs += done
	m.total.Merge(m.now)
	iv := Interval{Start: m.last.Sub(m.r.base), Length: now.Sub(m.last), Done: done, Depth: m.r.inFlight(), Stages: m.now,
		Latency: m.now.Quantiles(), Account: m.r.ledger.account()}
	if m.measured {
		iv.Start = m.last.Sub(m.began)
		if mean := time.Duration(m.now[latency.Total].Mean()); done >= minJobsPerInterval && (m.steady == 0 || mean < m.steady) {
			m.steady = mean
		}
	}
	m.last = now
	if iv.Length < time.Millisecond && done == 0 {
		return
	}
	m.r.cfg.OnInterval(&iv)
	iv.Stages = latency.Histograms{}
	m.intervals = append(m.intervals, iv)
}

// draining reports an interval after the measured part to Config.OnInterval. The caller has locked the meter.
func (m *meter) draining(now time.Time, done int64) {
	iv := Interval{Start: m.last.Sub(m.began), Length: now.Sub(m.last), Done: done, Depth: m.r.inFlight(), Stages: m.now,
		Draining: true}
	m.last = now
	m.r.cfg.OnInterval(&iv)
}

// endDrain adds the latencies of the jobs of an open loop that were scheduled in the measured part and ended after
// it. These jobs waited longest: without them, a server that stalls near the end of the run would show lower
// latencies than it has.
func (m *meter) endDrain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.r.cfg.Rate == nil {
		return
	}
	m.now.Reset()
	if m.late = m.r.collect(m.now); m.late == 0 {
		return
	}
	m.total.Merge(m.now)
	m.r.cfg.OnInterval(&Interval{Start: m.ended.Sub(m.began), Length: time.Since(m.ended), Stages: m.now,
		AfterWindow: true})
}

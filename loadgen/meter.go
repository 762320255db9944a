package loadgen

import (
	"sync"
	"time"
)

// Interval is what happened between two ticks of a run.
type Interval struct {
	Start       time.Duration // since the measured part began; below zero during the warm-up
	Length      time.Duration
	Done        int64                // jobs that came to their end
	Depth       int64                // jobs under way at its end
	Stages      Histograms           // valid during the call of Config.Watch only
	Latency     map[string]Quantiles // by stage
	Account     Account
	Draining    bool // it is after the measured part: jobs that were queued in it are processed, which does not count
	AfterWindow bool // it is after the measured part of an open loop: only its latencies count
}

// Rate is in jobs a second.
func (i *Interval) Rate() float64 { return float64(i.Done) / i.Length.Seconds() }

// meter measures a run as it goes on.
type meter struct {
	r  *run
	mu sync.Mutex

	began    time.Time // the measured part
	ended    time.Time
	measured bool
	jobs     int64 // that ended in it
	late     int64 // that ended after it, in an open loop
	cpu      usage // what had been used when it began, then what it used

	last      time.Time // the last tick
	now       Histograms
	total     Histograms
	intervals []Interval
	pacing    lateness
	steady    time.Duration // the lowest mean latency of an interval of the measured part
	backlog   int64         // jobs under way then
}

func newMeter(r *run) *meter {
	return &meter{r: r, last: time.Now(), now: newHistograms(), total: newHistograms(), pacing: lateness{hist: newHistogram()}}
}

// begin starts the measured part: what was before does not count.
func (m *meter) begin() {
	m.interval()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total.reset()
	m.jobs = 0
	m.pacing.begin()
	for i := range m.intervals {
		m.intervals[i].Start -= time.Since(m.r.base)
	}
	m.cpu = usageNow()
	m.began = time.Now()
	m.last, m.measured = m.began, true
	m.edge()
}

// end ends the measured part.
func (m *meter) end() {
	if !m.ended.IsZero() {
		return
	}
	m.interval()
	m.ended = m.last
	if m.backlog = m.r.inFlight(); m.steady == 0 {
		m.steady = time.Duration(m.total[stageTotal].Mean())
	}
	m.cpu = usageNow().since(m.cpu)
	m.edge()
}

// minJobsPerInterval is the number of jobs from which their mean latency says something about an interval.
const minJobsPerInterval = 100

// interval takes stock of the time since it was last called.
func (m *meter) interval() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.now.reset()
	done := m.r.collect(m.now)
	if !m.ended.IsZero() {
		m.draining(now, done)
		return
	}
	m.jobs += done
	m.total.merge(m.now)
	iv := Interval{Start: m.last.Sub(m.r.base), Length: now.Sub(m.last), Done: done, Depth: m.r.inFlight(), Stages: m.now, Latency: m.now.quantiles(), Account: m.r.ledger.account()}
	if m.measured {
		iv.Start = m.last.Sub(m.began)
		if mean := time.Duration(m.now[stageTotal].Mean()); done >= minJobsPerInterval && (m.steady == 0 || mean < m.steady) {
			m.steady = mean
		}
	}
	m.last = now
	if iv.Length < time.Millisecond && done == 0 {
		return
	}
	if w := m.r.cfg.OnInterval; w != nil {
		w(&iv)
	}
	iv.Stages = Histograms{}
	m.intervals = append(m.intervals, iv)
}

// draining reports to Config.Watch that jobs are still processed. The caller holds the lock.
func (m *meter) draining(now time.Time, done int64) {
	iv := Interval{Start: m.last.Sub(m.began), Length: now.Sub(m.last), Done: done, Depth: m.r.inFlight(), Stages: m.now, Draining: true}
	m.last = now
	if w := m.r.cfg.OnInterval; w != nil {
		w(&iv)
	}
}

// endDrain adds the latencies of the jobs of an open loop that were scheduled in the measured part and
// ended after it. They are those that waited longest: without them a server
// that stalls towards the end would look the better for it.
func (m *meter) endDrain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.r.cfg.Rate == nil {
		return
	}
	m.now.reset()
	if m.late = m.r.collect(m.now); m.late == 0 {
		return
	}
	m.total.merge(m.now)
	if w := m.r.cfg.OnInterval; w != nil {
		w(&Interval{Start: m.ended.Sub(m.began), Length: time.Since(m.ended), Stages: m.now, AfterWindow: true})
	}
}

func (m *meter) edge() {
	if e := m.r.cfg.PhaseChange; e != nil {
		e()
	}
}

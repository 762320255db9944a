package loadgen

import (
	"context"
	"errors"
	"time"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/schedule"
)

// Result is the result of a run. [Recorder.Report] adds CPU times and converts it to a [Report].
type Result struct {
	Config  Config             // complete configuration, with the defaults filled in
	Took    time.Duration      // length of the measured part
	Jobs    int64              // number of jobs that ended in the measured part
	Latency latency.Histograms // latencies by stage
	Series  []Interval         // intervals of the warm-up and of the measured part
	Account Account
	CPU     time.Duration // CPU time of this process in the measured part; -1: not known
	Pauses  time.Duration // total time for which garbage collections stopped this process
	GCs     int64         // number of garbage collections
	// open loop with a random schedule only: whether the gaps between submissions were independent; nil if not checked
	Independence *schedule.Independence
	Late         latency.Quantiles // open loop only: delay between the scheduled time and the submission of a job
	Reconnects   int64             // reconnections of clients in the measured part
	AfterWindow  int64             // jobs of an open loop that ended after the measured part
	Linear       *Linearity        // result of Config.Check; nil if it was not set
	Err          error             // why the run ended early; nil if it did not

	Steady  time.Duration // lowest mean latency of an interval of the measured part
	Backlog int64         // jobs in flight at the end of the measured part
}

// Rate returns the jobs per second of the measured part, or 0 if it took no time.
func (r *Result) Rate() float64 { return PerSecond(float64(r.Jobs), r.Took.Seconds()) }

// PerSecond returns n divided by a number of seconds, or 0 if that is 0: then the rate is not known.
func PerSecond(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// result ends the measurement and returns the result of the run. err is the reason why the run ended early, or nil.
// Jobs in flight count as lost, or as censored if the user interrupted the run; unacknowledged submissions count
// separately.
func (m *meter) result(err error) *Result {
	if !m.measured {
		m.begin()
	}
	m.end()
	r := m.r
	res := &Result{Config: r.cfg, Took: m.ended.Sub(m.began), Jobs: m.jobs, Latency: m.total, Series: m.intervals,
		Account: r.ledger.account(),
		CPU:     m.cpu.CPU, Pauses: m.cpu.Pauses, GCs: m.cpu.GCs, Late: latency.QuantilesOf(m.pacing.hist),
		AfterWindow: m.late, Reconnects: r.reconnects.Load(), Steady: m.steady, Backlog: m.backlog, Err: err}
	if r.cfg.Rate != nil && r.cfg.Rate.Poisson {
		res.Independence = m.pacing.gaps.Independence(minGap)
	}
	if r.history != nil {
		res.Linear = r.history.check()
	}
	res.Account.Skipped = m.pacing.skipped
	inFlight := r.inFlight()
	res.Account.Unacknowledged = r.unacknowledged()
	res.Account.Submitted = r.submitted()
	inFlight -= res.Account.Unacknowledged
	if errors.Is(err, context.Canceled) {
		res.Account.Censored = inFlight
	} else {
		res.Account.Lost = inFlight
	}
	if res.Account.First == "" && res.Account.Lost+res.Account.Unacknowledged > 0 {
		res.Account.First = r.lastMessage()
	}
	return res
}

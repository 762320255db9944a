package loadgen

import (
	"context"
	"errors"
	"time"
)

// Result is what a run has shown.
type Result struct {
	Config      Config
	Took        time.Duration // the measured part
	Jobs        int64         // that came to their end in it
	Latency     Histograms
	Series      []Interval
	Account     Account
	CPU         time.Duration // of this process
	Pauses      time.Duration // for which the collector stopped it
	GCs         int64
	gaps        gaps       // between submissions of an open loop
	Late        Quantiles  // of an open loop: how long after their scheduled times jobs were submitted
	Reconnects  int64      // of clients, in the measured part
	AfterWindow int64      // jobs of an open loop that ended after the measured part
	Linear      *Linearity // if the history was kept
	Err         error      // why the run ended early

	steady  time.Duration // the lowest mean latency of an interval of the measured part
	backlog int64         // jobs under way at its end
}

// Rate is in jobs a second.
func (r *Result) Rate() float64 { return float64(r.Jobs) / r.Took.Seconds() }

func (m *meter) result(err error) *Result {
	if !m.measured {
		m.begin()
	}
	m.end()
	r := m.r
	res := &Result{Config: r.cfg, Took: m.ended.Sub(m.began), Jobs: m.jobs, Latency: m.total, Series: m.intervals, Account: r.ledger.account(),
		CPU: m.cpu.cpu, Pauses: m.cpu.pauses, GCs: m.cpu.gcs, Late: quantilesOf(m.pacing.hist), gaps: m.pacing.gaps, AfterWindow: m.late, Reconnects: r.again.Load(), steady: m.steady, backlog: m.backlog, Err: err}
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

package loadgen

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Report is a run as it is told, saved and compared. Its JSON is what bench writes; times in
// microseconds are null where they are not known, or too few samples carry them.
type Report struct {
	Protocol  string    `json:"protocol"`
	Scenario  string    `json:"scenario"`
	Target    string    `json:"target"`
	Share     string    `json:"share,omitempty"` // as "2/3": this run is a part of one
	Started   time.Time `json:"started"`         // the measured part
	Clients   int       `json:"clients"`
	Workers   int       `json:"workers"`
	Functions int       `json:"functions"`
	Window    int       `json:"window"` // jobs that each client has under way; 0 in an open loop
	Grabs     int       `json:"grabs"`  // requests for a job that each worker has outstanding
	Payload   string    `json:"payload"`
	Seed      uint64    `json:"seed"`
	Requested string    `json:"rate_requested,omitempty"` // of an open loop, as ParseSchedule reads it

	Jobs    int64   `json:"jobs"`    // that came to their end in the measured part
	Seconds float64 `json:"seconds"` // that it took
	Settled int64   `json:"settled"` // jobs of an open loop that came to their end behind it: of them only the latencies count
	Rate    float64 `json:"rate"`    // jobs a second

	Submitted     int64  `json:"submitted"` // warm-up included, as in all that follow
	Lost          int64  `json:"lost"`
	Unacked       int64  `json:"unacknowledged"`
	Duplicated    int64  `json:"duplicated"`
	Corrupted     int64  `json:"corrupted"`
	Redelivered   int64  `json:"redelivered"`
	AnsweredTwice int64  `json:"answered_twice"`
	Misdirected   int64  `json:"misdirected"`
	OutOfOrder    int64  `json:"out_of_order"`
	Refused       int64  `json:"refused"`
	Censored      int64  `json:"censored"`
	Skipped       int64  `json:"skipped"`       // due, but never submitted, since too many were under way
	Anomaly       string `json:"first_anomaly"` // the first of them, as a transcript
	Interrupted   bool   `json:"interrupted"`   // by its user; what it had shown until then is all here
	Error         string `json:"error"`         // why else the run ended early

	Linear *Linearity `json:"linear,omitempty"` // whether the server kept a first-in first-out queue, if that was checked

	Latency map[string]Quantiles `json:"latency_us"` // by stage

	CPU        PerJob `json:"cpu_us_per_job"`
	Processors int    `json:"processors"` // that the generator may use
	Cores

	Collections int64   `json:"gc_count"`
	Pauses      float64 `json:"gc_pauses_us"` // in all
	Pacing      *Pacing `json:"pacing_late_us"`
	Saturated   bool    `json:"saturated"`     // the generator was, so that the figures are its own
	Saturation  string  `json:"saturated_why"` // how that shows

	Objectives []Judgement     `json:"slo,omitempty"`
	Interval   float64         `json:"interval_seconds"`
	Series     []IntervalEntry `json:"intervals"`

	film   film
	steady time.Duration // the mean of those that ended in the measured part
}

// PerJob is processor time per job.
type PerJob struct {
	Generator Micros `json:"generator"`
	Target    Micros `json:"target"`
}

// Cores is how many processors were busy on average. Foreign is what neither end used.
type Cores struct {
	Generator *float64 `json:"generator_cpu"`
	Target    *float64 `json:"target_cpu"`
	Foreign   *float64 `json:"foreign_cpu"`
}

// Pacing is how late jobs of an open loop were submitted, for which the generator is to blame.
type Pacing struct {
	Mean Micros `json:"mean"`
	Max  Micros `json:"max"`
}

// IntervalEntry is one entry of the time series.
type IntervalEntry struct {
	Start   float64              `json:"start"` // in seconds since the measured part began
	Seconds float64              `json:"seconds"`
	Jobs    int64                `json:"jobs"`
	Depth   int64                `json:"depth"` // jobs under way at its end
	Latency map[string]Quantiles `json:"latency_us"`
}

// Rate is in jobs a second.
func (e *IntervalEntry) Rate() float64 { return float64(e.Jobs) / e.Seconds }

// Tape follows a run, for what its report tells beyond the result.
type Tape struct {
	Target    string
	Share     string
	Processor Processor
	Log       *Log // takes the latencies of every interval; may be nil
	Heat      bool // keep the distribution of every interval, for a page

	// Live is told of every interval, and whether it is one of the measured part. It may be nil.
	Live func(iv *Interval, measured bool)

	began, ended time.Time
	used         processorTime
	film         film
}

// Attach has a run tell the tape of what happens. The configuration's Watch and Edge are
// taken.
func (t *Tape) Attach(cfg *Config) {
	cfg.Edge = func() {
		now := t.Processor.now()
		if t.began.IsZero() {
			t.began, t.used = time.Now(), now
		} else {
			t.ended, t.used = time.Now(), now.since(t.used)
		}
	}
	cfg.Watch = func(iv *Interval) {
		measured := !t.began.IsZero() && t.ended.IsZero()
		if measured || iv.Settled {
			if t.Heat {
				t.film.expose(iv)
			}
			if t.Log != nil {
				t.Log.add(t.began.Add(iv.Start), iv)
			}
		}
		if t.Live != nil && !iv.Settled {
			t.Live(iv, measured)
		}
	}
}

// planOf is what a report tells of a run before it.
func planOf(cfg *Config) *Report {
	r := &Report{
		Protocol: cfg.Protocol.Name, Scenario: cfg.Scenario, Clients: cfg.Clients, Workers: cfg.Workers, Functions: cfg.Functions,
		Window: cfg.Window, Grabs: cfg.Grabs, Payload: cfg.Size.String(), Seed: cfg.Seed, Interval: cfg.Interval.Seconds(),
	}
	if cfg.Rate != nil {
		r.Window, r.Requested = 0, cfg.Rate.String()
	}
	return r
}

// Report tells of the run that the tape was attached to.
func (t *Tape) Report(res *Result) *Report {
	cfg, a := &res.Config, &res.Account
	r := planOf(cfg)
	r.Target, r.Share, r.Started = t.Target, t.Share, t.began.UTC().Round(time.Millisecond)
	r.Jobs, r.Seconds, r.Rate = res.Jobs, res.Took.Seconds(), res.Rate()
	r.Submitted, r.Lost, r.Duplicated, r.Corrupted, r.Redelivered = a.Submitted, a.Lost, a.Duplicated, a.Corrupted, a.Redelivered
	r.AnsweredTwice, r.Misdirected, r.OutOfOrder, r.Refused = a.AnsweredTwice, a.Misdirected, a.OutOfOrder, a.Refused
	r.Unacked, r.Censored, r.Skipped, r.Anomaly = a.Unacknowledged, a.Censored, res.Skipped, a.First
	r.Settled, r.steady = res.Settled, res.steady
	r.Linear = res.Linear
	r.Latency = quantiles(&res.Summary)
	r.Processors, r.Collections, r.Pauses = runtime.GOMAXPROCS(0), res.GCs, float64(micros(res.Pauses))
	switch {
	case errors.Is(res.Err, context.Canceled):
		r.Interrupted = true
	case res.Err != nil:
		r.Error = res.Err.Error()
	}
	if cfg.Rate != nil {
		r.Pacing = &Pacing{micros(res.LateAvg), micros(res.Late)}
	}
	r.film = t.film
	r.film.total = res.Latency
	r.processors(res.CPU, t.used)
	for i := range res.Series {
		iv := &res.Series[i]
		r.Series = append(r.Series, IntervalEntry{Start: iv.Start.Seconds(), Seconds: iv.Length.Seconds(), Jobs: iv.Done, Depth: iv.Depth, Latency: quantiles(&iv.Summary)})
	}
	r.Saturation = r.saturation()
	r.Saturated = r.Saturation != ""
	return r
}

// processors enters what each end used.
func (r *Report) processors(generator time.Duration, others processorTime) {
	cores := func(d time.Duration) *float64 {
		if d < 0 || r.Seconds == 0 {
			return nil
		}
		c := d.Seconds() / r.Seconds
		return &c
	}
	perJob := func(d time.Duration) Micros {
		if d < 0 || r.Jobs == 0 {
			return 0
		}
		return Micros(float64(d) / 1e3 / float64(r.Jobs))
	}
	r.CPU = PerJob{perJob(generator), perJob(others.program)}
	r.Cores = Cores{Generator: cores(generator), Target: cores(others.program)}
	if others.machine >= 0 {
		r.Cores.Foreign = cores(max(0, others.machine-generator-max(0, others.program)))
	}
}

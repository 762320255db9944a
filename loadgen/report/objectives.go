package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/internal/prose"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/schedule"
)

// Objective is a limit for a figure of the report, such as "p99<5ms" or "rate>1000".
type Objective struct {
	Text   string  // the objective in the format of ParseObjective
	Stage  string  // stage of the latency; "": the objective is about the rate
	Metric string  // name of the percentile, mean or max
	Limit  float64 // in microseconds, or in jobs per second
}

// SLOResult is the result of an objective: Passed, Failed, Invalid if the run does not show whether the objective was
// met, or Skipped if it could not be checked.
type SLOResult struct {
	Objective string  `json:"objective"`
	Result    Verdict `json:"result"`
	Why       string  `json:"why"`

	// Value is the measured figure, in microseconds or jobs per second. It is nil if it is not known.
	Value *float64 `json:"value,omitempty"`
}

// VerdictOf returns Passed or Failed.
func VerdictOf(passed bool) Verdict {
	if passed {
		return Passed
	}
	return Failed
}

// ParseObjective parses [STAGE.]METRIC<TIME or rate>NUMBER. METRIC is p50, p90, p95, p99, p99.9, p99.99, max or mean.
// STAGE is one of [Stages]; the default is total. NUMBER is in jobs per second.
func ParseObjective(text string) (*Objective, error) {
	o := &Objective{Text: text}
	fail := func(why string) (*Objective, error) {
		return nil, fmt.Errorf("%q: %s", text, why)
	}
	if number, ok := strings.CutPrefix(text, "rate>"); ok {
		v, err := schedule.ParseRate(number)
		if err != nil {
			return fail(err.Error())
		}
		o.Limit = v
		return o, nil
	}
	name, bound, ok := strings.Cut(text, "<")
	if !ok {
		return fail("expected an objective, as p99<5ms, queued.p99.9<20ms, max<1s or rate>1000")
	}
	o.Stage = latency.Stages[latency.Total]
	if stage, metric, ok := strings.Cut(name, "."); ok && slices.Contains(latency.Stages[:], stage) {
		o.Stage, name = stage, metric
	}
	o.Metric = name
	if latency.ColumnOf(name) == nil {
		return fail(fmt.Sprintf("expected one of %s, or one of these after a stage (%s) and a period, got %q",
			strings.Join(latency.ColumnNames(), ", "), strings.Join(latency.Stages[:], ", "), name))
	}
	d, err := time.ParseDuration(bound)
	if err != nil || d <= 0 {
		return fail(fmt.Sprintf("expected a positive time after \"<\", as 5ms or 200us, got %q", bound))
	}
	o.Limit = float64(d) / 1e3
	return o, nil
}

// Check checks the objectives and sets the results and the verdict of the report. If the report is that of one share
// of a load, the objectives are only recorded, because they are about the whole load: [Merge] checks them.
func (r *Report) Check(objectives []*Objective) {
	r.Objectives = nil
	for _, o := range objectives {
		if r.Share != nil {
			r.Objectives = append(r.Objectives, SLOResult{Objective: o.Text, Result: Skipped, Why: "'bench merge' checks it for all shares"})
			continue
		}
		r.Objectives = append(r.Objectives, o.Check(r))
	}
	r.Conclude()
}

// Check checks the objective. A latency that is too high makes the result Invalid instead of Failed if the load
// generator submitted jobs late by a relevant part of it.
func (o *Objective) Check(r *Report) SLOResult {
	j := SLOResult{Objective: o.Text}
	if o.Stage == "" && r.Seconds == 0 {
		j.Result, j.Why = Invalid, "the measured part took no time, so the rate is not known; make the run longer (--duration or --count)"
		return j
	}
	if o.Stage == "" { // an objective for the rate
		rate := r.Rate
		j.Result = VerdictOf(rate > o.Limit)
		j.Value, j.Why = &rate, fmt.Sprintf("measured %s jobs/s", FormatJobs(rate))
		return j
	}
	q := r.Latency[o.Stage]
	v := latency.ColumnOf(o.Metric).Of(&q)
	if v == 0 {
		j.Result = Invalid
		j.Why = fmt.Sprintf("too few samples: the run has %s, the percentile needs %s; make the run longer (--duration or --count)", prose.Grouped(q.Count), prose.Grouped(latency.ColumnOf(o.Metric).Samples))
		return j
	}
	value := float64(v)
	j.Result = VerdictOf(value < o.Limit)
	j.Value, j.Why = &value, fmt.Sprintf("measured %s", v)
	late := latency.Micros(0)
	if r.Pacing != nil {
		late = latency.ColumnOf(o.Metric).Of(r.Pacing)
	}
	if j.Result == Failed && o.Stage != latency.Stages[latency.Queued] && o.Stage != latency.Stages[latency.Run] && raises(late, v) {
		j.Result = Invalid
		j.Why += fmt.Sprintf(", and the load generator submitted jobs late by %s (%s), which is a part of this", late,
			o.Metric)
	}
	return j
}

// Samples returns the number of jobs that a run needs for the objective to be checked.
func (o *Objective) Samples() int64 {
	if o.Stage == "" {
		return 1
	}
	return latency.ColumnOf(o.Metric).Samples
}

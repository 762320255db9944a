package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

// Search finds the highest rate of an open loop that passes. All rates are in jobs per second.
type Search struct {
	From    float64 // first rate to try
	Slowest float64 // lowest rate to try
	// the search ends when the lowest rate that did not pass is at most 1+Precision times the highest that passed, such as
	// 0.05
	Precision float64
	Repeats   int // minimum number of trials at each of these two rates; the majority decides
	Trials    int // maximum number of trials in total

	// Try runs the load at a rate and returns the result. An error ends the search.
	Try func(ctx context.Context, rate float64) (Trial, error)

	// Tried, if it is not nil, is called after each trial with the result so far.
	Tried func(*LimitRange)
}

// Trial is the result of one run at one rate.
type Trial struct {
	Rate     float64 `json:"rate"`     // requested rate, in jobs per second
	Achieved float64 `json:"achieved"` // measured rate, in jobs per second
	Passed   bool    `json:"passed"`
	// reasons of the verdict if the trial did not pass, otherwise the measured values of the objectives
	Why string `json:"why"`

	// Saturated reports that the load generator was the bottleneck, not the target.
	Saturated bool `json:"saturated"`

	Objectives []report.SLOResult `json:"slo"`
}

// Result returns the verdict of the trial: Invalid if Saturated, otherwise Passed or Failed.
func (t *Trial) Result() report.Verdict {
	if t.Saturated {
		return report.Invalid
	}
	return report.VerdictOf(t.Passed)
}

// SearchReport is the result of a search in the form in which bench prints and saves it.
type SearchReport struct {
	version.Head
	Environment *machine.Environment `json:"environment,omitempty"` // machine of the load generator; nil: not known
	Protocol    string               `json:"protocol"`
	Scenario    string               `json:"scenario"`
	Target      string               `json:"target"`  // name of the server: its address or its command line
	Started     time.Time            `json:"started"` // start of the search
	SLO         []string             `json:"slo"`     // objectives that a rate must meet to pass
	// minimum length of a trial; slow trials last until they have enough samples
	Seconds float64 `json:"seconds_per_trial"`
	Error   string  `json:"error"` // why the search ended early; "" if it did not
	*LimitRange
}

// ParseSearch parses a report that WriteJSON has written. It returns nil if the text is not such a report.
func ParseSearch(text []byte) *SearchReport {
	var s SearchReport
	if err := json.Unmarshal(text, &s); err != nil || s.LimitRange == nil || len(s.Trials) == 0 {
		return nil
	}
	return &s
}

// LimitRange is the result of a search: the highest rate that passed and the lowest that did not, in jobs per second.
// 0: no rate passed, or all passed.
type LimitRange struct {
	Passed float64 `json:"passed_rate"`
	Failed float64 `json:"failed_rate"`
	// in a trial at the lowest rate that did not pass, the load generator was the bottleneck
	Saturated bool    `json:"saturated"`
	Trials    []Trial `json:"trials"` // all trials, in the order in which they ran
}

// fastest is the rate, in jobs per second, from which the search does not double the rate any more.
const fastest = 1e7

// Run doubles the rate until one does not pass, or halves it until one passes, and then bisects the interval between
// the two. Because the result of a single trial can be random, it repeats the trials at both ends of the interval; if
// the majority contradicts an earlier result, the search continues from there. On error, the result has the trials so
// far.
func (s *Search) Run(ctx context.Context) (*LimitRange, error) {
	b := &LimitRange{}
	for rate := s.From; len(b.Trials) < s.Trials && rate > 0; rate = s.next(b) {
		t, err := s.Try(ctx, rate)
		if err != nil {
			return b, err
		}
		b.Trials = append(b.Trials, t)
		b.between()
		if s.Tried != nil {
			s.Tried(b)
		}
	}
	return b, nil
}

// count returns the number of trials at a rate, and the number of those that passed.
func (l *LimitRange) count(rate float64) (trials, passed int) {
	for _, t := range l.Trials {
		if t.Rate == rate {
			trials++
			if t.Passed {
				passed++
			}
		}
	}
	return trials, passed
}

// between sets Failed to the lowest rate at which at most half of the trials passed, Passed to the highest tried rate
// below it, and Saturated.
func (l *LimitRange) between() {
	l.Passed, l.Failed = 0, 0
	for _, t := range l.Trials {
		if trials, passed := l.count(t.Rate); 2*passed <= trials && (l.Failed == 0 || t.Rate < l.Failed) {
			l.Failed = t.Rate
		}
	}
	for _, t := range l.Trials {
		if t.Rate > l.Passed && (l.Failed == 0 || t.Rate < l.Failed) {
			l.Passed = t.Rate
		}
	}
	l.Saturated = slices.ContainsFunc(l.Trials, func(t Trial) bool { return t.Rate == l.Failed && t.Saturated })
}

// next returns the next rate to try, or 0 if the search has ended.
func (s *Search) next(b *LimitRange) float64 {
	switch {
	case b.Failed == 0:
		if b.Passed >= fastest {
			return 0
		}
		return b.Passed * 2
	case b.Passed == 0:
		if b.Failed <= s.Slowest {
			return 0
		}
		return max(b.Failed/2, s.Slowest)
	case b.Failed > b.Passed*(1+s.Precision):
		if rate := roundRate(math.Sqrt(b.Passed * b.Failed)); rate > b.Passed && rate < b.Failed {
			return rate
		}
	}
	for _, end := range []float64{b.Passed, b.Failed} {
		if trials, _ := b.count(end); trials < s.Repeats {
			return end
		}
	}
	return 0
}

// roundRate rounds a rate to four significant digits; the measurement is not more precise.
func roundRate(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(v/unit) * unit
}

// Tried returns the number of trials at a rate with their verdicts, such as "3 trials: 1 passed, 2 invalid".
func (l *LimitRange) Tried(rate float64) string {
	var parts []string
	all := 0
	for _, v := range []report.Verdict{report.Passed, report.Failed, report.Invalid} {
		n := 0
		for i := range l.Trials {
			if t := &l.Trials[i]; t.Rate == rate && t.Result() == v {
				n++
			}
		}
		if all += n; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	if all == 0 {
		return "0 trials"
	}
	return prose.Count(all, "trial") + ": " + strings.Join(parts, ", ")
}

// Verdict returns Passed if a rate passed. If none did, it returns Invalid if the load generator was the bottleneck.
func (s *SearchReport) Verdict() report.Verdict {
	switch {
	case s.Error != "":
		return report.Failed
	case s.Passed == 0 && s.Saturated:
		return report.Invalid
	}
	return report.VerdictOf(s.Passed > 0)
}

// Answer returns the result of the search in sentences.
func (s *SearchReport) Answer() string {
	rate := func(v float64) string { return fmt.Sprintf("%s jobs/s (%s)", report.FormatJobs(v), s.Tried(v)) }
	text, objectives := "", strings.Join(s.SLO, " and ")
	switch {
	case s.Passed == 0:
		text = fmt.Sprintf("No rate passed with %s; the lowest that was tried is %s.", objectives, rate(s.Failed))
	case s.Failed == 0:
		text = fmt.Sprintf("The highest rate that passed with %s is %s; all rates passed.", objectives, rate(s.Passed))
	default:
		text = fmt.Sprintf("The highest rate that passed with %s is %s; the lowest that did not pass is %s.", objectives,
			rate(s.Passed), rate(s.Failed))
	}
	switch {
	case s.Saturated:
		text += " In the invalid trials, the load generator or its machine was the bottleneck, so the server may support a higher rate."
	case s.Failed > 0:
		text += " The load generator was not the bottleneck."
	}
	return text
}

// TrialOf returns the report of an open-loop run at a rate as a trial of a search.
func TrialOf(r *report.Report, rate float64) Trial {
	v, why := r.Conclusion()
	t := Trial{Rate: rate, Achieved: r.Rate, Passed: v == report.Passed, Saturated: v == report.Invalid, Objectives: r.Objectives}
	if v == report.Passed {
		for i := range r.Objectives {
			o := &r.Objectives[i]
			why = append(why, o.Objective+": "+o.Why)
		}
	}
	t.Why = strings.Join(why, "; ")
	return t
}

package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"jobwire/internal/prose"
	"jobwire/internal/version"
)

// Search is a search for the highest rate of an open loop that holds.
type Search struct {
	From      float64 // the rate to begin with, in jobs a second
	Slowest   float64 // the lowest rate worth trying
	Precision float64 // how far apart the bracket's ends may be, as 0.05 of the lower
	Repeats   int     // of each end of the bracket, of which most decide
	Trials    int     // at most

	// Try reports whether a rate passes, and if not, why.
	Try func(ctx context.Context, rate float64) (Trial, error)
}

// Trial is one rate that was tried.
type Trial struct {
	Rate     float64 `json:"rate"`
	Achieved float64 `json:"achieved"`
	Passed   bool    `json:"passed"`
	Why      string  `json:"why"` // the reasons of the verdict, or the figures of the objectives

	// Saturated: the load generator was the bottleneck, not the target.
	Saturated bool `json:"saturated"`

	Objectives []SLOResult `json:"slo"`
}

// Result returns the verdict of the trial.
func (t *Trial) Result() Verdict {
	if t.Saturated {
		return Invalid
	}
	return result(t.Passed)
}

// SearchReport is a search as it is shown and saved.
type SearchReport struct {
	Jobwire     version.Info `json:"jobwire"` // the build that made the report
	Environment *Environment `json:"environment,omitempty"`
	Protocol    string       `json:"protocol"`
	Scenario    string       `json:"scenario"`
	Target      string       `json:"target"`
	Started     time.Time    `json:"started"`
	SLO         []string     `json:"slo"`
	Seconds     float64      `json:"seconds_per_trial"` // at least: slow trials last until they have enough samples
	Error       string       `json:"error"`             // why the search ended early
	*LimitRange
}

// WriteJSON writes the report as one object.
func (s *SearchReport) WriteJSON(w io.Writer) error { return writeIndented(w, s) }

// ParseSearch reads a report that was saved. It returns nil if the text is not one.
func ParseSearch(text []byte) *SearchReport {
	var s SearchReport
	if err := json.Unmarshal(text, &s); err != nil || s.LimitRange == nil || len(s.Trials) == 0 {
		return nil
	}
	return &s
}

// LimitRange is what a search has found: a rate that passed and one that failed. 0 is none.
type LimitRange struct {
	Passed    float64 `json:"passed_rate"`
	Failed    float64 `json:"failed_rate"`
	Saturated bool    `json:"saturated"` // the one that failed did so for the generator's sake
	Trials    []Trial `json:"trials"`
}

// fastest is the highest rate that is tried.
const fastest = 1e7

// Run doubles the rate until one fails, or halves it until one holds, then narrows the
// bracket. Chance may have decided at its edges: so both ends are repeated, and where most
// trials say otherwise the search goes on from there.
func (s *Search) Run(ctx context.Context) (*LimitRange, error) {
	b := &LimitRange{}
	polls := map[float64]*rateTrials{}
	for rate := s.From; len(b.Trials) < s.Trials && rate > 0; rate = s.next(b, polls) {
		t, err := s.Try(ctx, rate)
		if err != nil {
			return b, err
		}
		b.Trials = append(b.Trials, t)
		if polls[rate] == nil {
			polls[rate] = &rateTrials{}
		}
		polls[rate].add(t.Passed)
		b.between(polls)
	}
	return b, nil
}

// rateTrials is what the trials of one rate said.
type rateTrials struct{ trials, passed int }

func (p *rateTrials) add(passed bool) {
	p.trials++
	if passed {
		p.passed++
	}
}

// between finds the bracket: the lowest rate most of whose trials failed, with whether one of these was
// invalid, and the highest below it most of whose trials passed.
func (b *LimitRange) between(polls map[float64]*rateTrials) {
	b.Passed, b.Failed = 0, 0
	for rate, p := range polls {
		if 2*p.passed <= p.trials && (b.Failed == 0 || rate < b.Failed) {
			b.Failed = rate
		}
	}
	for rate := range polls {
		if rate > b.Passed && (b.Failed == 0 || rate < b.Failed) {
			b.Passed = rate
		}
	}
	b.Saturated = slices.ContainsFunc(b.Trials, func(t Trial) bool { return t.Rate == b.Failed && t.Saturated })
}

// next is the rate to be tried; 0 is that the bracket stands.
func (s *Search) next(b *LimitRange, polls map[float64]*rateTrials) float64 {
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
		if polls[end].trials < s.Repeats {
			return end
		}
	}
	return 0
}

// roundRate rounds a rate to four digits: more say nothing.
func roundRate(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(v/unit) * unit
}

// WriteTrial writes a progress line about a trial.
func WriteTrial(w io.Writer, t *Trial) {
	fmt.Fprintf(w, "%10s jobs/s  %-7s  %s\n", prose.Grouped(int64(math.Round(t.Rate))), t.Result(), t.Why)
}

// WriteBracket writes the answer for people.
func WriteBracket(w io.Writer, b *LimitRange) error {
	rate := func(v float64) string {
		if v == 0 {
			return "none"
		}
		return prose.Grouped(int64(math.Round(v))) + " jobs/s"
	}
	_, err := fmt.Fprintf(w, "highest rate that passed  %s (%s)\nlowest rate that failed   %s (%s)\n",
		rate(b.Passed), b.tried(b.Passed), rate(b.Failed), b.tried(b.Failed))
	if b.Saturated {
		_, err = fmt.Fprintln(w, "At the lowest rate that failed, the load generator was the bottleneck, so the server may support\na higher rate. To see the reason, run bench with --rate and this rate.")
	}
	return err
}

// tried is how many trials a rate had, in words.
func (b *LimitRange) tried(rate float64) string {
	n := 0
	for _, t := range b.Trials {
		if t.Rate == rate {
			n++
		}
	}
	return plural(n, "trial")
}

// Answer is the result of the search in words.
func (s *SearchReport) Answer() string {
	rate := func(v float64) string { return fmt.Sprintf("%s jobs/s (%s)", formatJobs(v), s.tried(v)) }
	text, objectives := "", strings.Join(s.SLO, " and ")
	switch {
	case s.Passed == 0:
		text = fmt.Sprintf("No rate passed with %s; the lowest that failed is %s.", objectives, rate(s.Failed))
	case s.Failed == 0:
		text = fmt.Sprintf("The highest rate that passed with %s is %s; no rate failed.", objectives, rate(s.Passed))
	default:
		text = fmt.Sprintf("The highest rate that passed with %s is %s; the lowest that failed is %s.", objectives, rate(s.Passed), rate(s.Failed))
	}
	switch {
	case s.Saturated:
		text += " At the lowest rate that failed, the load generator or its machine was the bottleneck, so the server may support a higher rate."
	case s.Failed > 0:
		text += " The load generator was not the bottleneck."
	}
	return text
}

// Trial is the report of one open-loop run as a trial.
func (r *Report) Trial(rate float64) Trial {
	v, why := r.verdict()
	t := Trial{Rate: rate, Achieved: r.Rate, Passed: v == Passed, Saturated: v == Invalid, Objectives: r.Objectives}
	if v == Passed {
		for i := range r.Objectives {
			o := &r.Objectives[i]
			why = append(why, o.Objective+": "+o.Why)
		}
	}
	t.Why = strings.Join(why, "; ")
	return t
}

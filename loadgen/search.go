package loadgen

import (
	"context"
	"fmt"
	"io"
	"math"
)

// Search is a search for the highest rate of an open loop that holds.
type Search struct {
	From      float64 // the rate to begin with, in jobs a second
	Slowest   float64 // the lowest rate worth trying
	Precision float64 // how far apart the bracket's ends may be, as 0.05 of the lower
	Repeats   int     // of each end of the bracket, of which most decide
	Trials    int     // at most

	// Try tells whether a rate holds, and if not, why.
	Try func(ctx context.Context, rate float64) (Trial, error)
}

// Trial is one rate that was tried.
type Trial struct {
	Rate     float64 `json:"rate"`
	Achieved float64 `json:"achieved"`
	Held     bool    `json:"held"`
	Why      string  `json:"why"` // it did not, or was what it was

	// Saturated tells that the generator was, which is no fault of the target's.
	Saturated bool `json:"saturated"`
}

// Bracket is what a search has found: a rate that held and one that did not. 0 is none.
type Bracket struct {
	Held      float64 `json:"held"`
	Failed    float64 `json:"failed"`
	Saturated bool    `json:"saturated"` // the one that failed did so for the generator's sake
	Trials    []Trial `json:"trials"`
}

// fastest is the highest rate that is tried.
const fastest = 1e7

// Run doubles the rate until one fails, or halves it until one holds, then narrows the
// bracket. Chance may have decided at its edges: so both ends are repeated, and where most
// trials say otherwise the search goes on from there.
func (s *Search) Run(ctx context.Context) (*Bracket, error) {
	b := &Bracket{}
	polls := map[float64]*poll{}
	for rate := s.From; len(b.Trials) < s.Trials && rate > 0; rate = s.next(b, polls) {
		t, err := s.Try(ctx, rate)
		if err != nil {
			return b, err
		}
		b.Trials = append(b.Trials, t)
		if polls[rate] == nil {
			polls[rate] = &poll{}
		}
		polls[rate].add(t.Held)
		b.between(polls)
	}
	for _, t := range b.Trials {
		if t.Rate == b.Failed && t.Saturated {
			b.Saturated = true
		}
	}
	return b, nil
}

// poll is what the trials of one rate said.
type poll struct{ trials, held int }

func (p *poll) add(held bool) {
	p.trials++
	if held {
		p.held++
	}
}

// between finds the bracket: the lowest rate most of whose trials failed, and the highest
// below it most of whose trials held.
func (b *Bracket) between(polls map[float64]*poll) {
	b.Held, b.Failed = 0, 0
	for rate, p := range polls {
		if 2*p.held <= p.trials && (b.Failed == 0 || rate < b.Failed) {
			b.Failed = rate
		}
	}
	for rate := range polls {
		if rate > b.Held && (b.Failed == 0 || rate < b.Failed) {
			b.Held = rate
		}
	}
}

// next is the rate to be tried; 0 is that the bracket stands.
func (s *Search) next(b *Bracket, polls map[float64]*poll) float64 {
	switch {
	case b.Failed == 0:
		if b.Held >= fastest {
			return 0
		}
		return b.Held * 2
	case b.Held == 0:
		if b.Failed <= s.Slowest {
			return 0
		}
		return max(b.Failed/2, s.Slowest)
	case b.Failed > b.Held*(1+s.Precision):
		if rate := tidy(math.Sqrt(b.Held * b.Failed)); rate > b.Held && rate < b.Failed {
			return rate
		}
	}
	for _, end := range []float64{b.Held, b.Failed} {
		if polls[end].trials < s.Repeats {
			return end
		}
	}
	return 0
}

// tidy rounds a rate to four digits: more say nothing.
func tidy(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(v/unit) * unit
}

// WriteTrial writes a line about a trial, for those who watch.
func WriteTrial(w io.Writer, t *Trial) {
	word := "held  "
	if !t.Held {
		word = "failed"
	}
	fmt.Fprintf(w, "%10s jobs/s  %s  %s\n", Grouped(int64(math.Round(t.Rate))), word, t.Why)
}

// WriteBracket writes the answer for people.
func WriteBracket(w io.Writer, b *Bracket) error {
	rate := func(v float64) string {
		if v == 0 {
			return "none"
		}
		return Grouped(int64(math.Round(v))) + " jobs/s"
	}
	tried := map[float64]int{}
	for _, t := range b.Trials {
		tried[t.Rate]++
	}
	_, err := fmt.Fprintf(w, "highest rate that held  %s, tried %s\nlowest that failed      %s, tried %s\n",
		rate(b.Held), plural(tried[b.Held], "time"), rate(b.Failed), plural(tried[b.Failed], "time"))
	if b.Saturated {
		_, err = fmt.Fprintln(w, "There the generator was saturated: the target may hold more.")
	}
	return err
}

// Trial is the report of one open-loop run as a trial. A rate that was asked for and not
// reached has failed, whatever its latencies.
func (r *Report) Trial(rate float64) Trial {
	t := Trial{Rate: rate, Achieved: r.Rate, Held: true, Saturated: r.Saturated}
	fail := func(why string) {
		if t.Held {
			t.Held, t.Why = false, why
		}
	}
	for i := range r.Objectives {
		if o := &r.Objectives[i]; !o.Held {
			fail(o.Objective + ": " + o.Why)
		} else if t.Held {
			t.Why = o.Objective + ": " + o.Why
		}
	}
	switch {
	case r.Error != "":
		fail(r.Error)
	case !r.Sound():
		fail("jobs were lost, changed or answered wrongly")
	case r.Skipped > 0:
		fail(Grouped(r.Skipped) + " jobs were due while too many were under way")
	case r.reach(rate) < reached:
		fail(fmt.Sprintf("only %s jobs/s came through", Grouped(int64(r.Rate))))
	case r.Saturated:
		fail("the generator was saturated: " + r.Saturation)
	}
	return t
}

// reached is the share of the jobs due that must have come through. Chance takes its part
// of a random schedule.
const reached = 0.95

// reach is the share of the jobs due at a rate that came through. Those count with them that
// were to be under way at the end, taking as long as others did.
func (r *Report) reach(rate float64) float64 {
	return (float64(r.Jobs)/rate + r.steady.Seconds()) / r.Seconds
}

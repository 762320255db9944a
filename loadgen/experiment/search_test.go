package experiment

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
)

func searchFor(limit float64, from float64) (*LimitRange, error) {
	s := Search{From: from, Slowest: 1, Precision: 0.05, Repeats: 3, Trials: 60, Try: func(_ context.Context, rate float64) (Trial, error) {
		return Trial{Rate: rate, Passed: rate <= limit}, nil
	}}
	return s.Run(context.Background())
}

// TestSearchBracketsTheLimit tests that the search finds two rates close to each other, of which the lower passes and
// the higher fails, from any first rate, and tries both at least three times.
func TestSearchBracketsTheLimit(t *testing.T) {
	for _, limit := range []float64{3, 999, 1000, 1001, 54321, 2e6} {
		for _, from := range []float64{1, 1000, 1e6} {
			b, err := searchFor(limit, from)
			if err != nil {
				t.Fatal(err)
			}
			if b.Passed > limit || b.Failed <= limit || b.Passed == 0 || b.Failed > b.Passed*1.051 {
				t.Errorf("limit %v from %v: passed %v, failed %v after %d trials", limit, from, b.Passed, b.Failed, len(b.Trials))
			}
			tried := map[float64]int{}
			for _, tr := range b.Trials {
				tried[tr.Rate]++
			}
			if tried[b.Passed] < 3 || tried[b.Failed] < 3 {
				t.Errorf("limit %v from %v: the edge was tried %d and %d times", limit, from, tried[b.Passed], tried[b.Failed])
			}
		}
	}
}

// TestSearchRepeatsNearTheLimit tests that a single trial with a random wrong result does not determine the result of
// the search.
func TestSearchRepeatsNearTheLimit(t *testing.T) {
	const limit = 10000
	r := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	s := Search{From: 1000, Precision: 0.05, Repeats: 5, Trials: 200, Try: func(_ context.Context, rate float64) (Trial, error) {
		passed := rate <= limit
		if r.IntN(10) == 0 {
			passed = !passed
			wrong++
		}
		return Trial{Rate: rate, Passed: passed}, nil
	}}
	b, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if wrong == 0 || b.Passed > limit*1.05 || b.Failed < limit*0.95 {
		t.Errorf("passed %v, failed %v after %d trials, %d of them wrong", b.Passed, b.Failed, len(b.Trials), wrong)
	}
}

// TestSearchWhenAllOrNoRatesPass tests that the search ends at the lowest or highest rate if no rate or every rate
// passes.
func TestSearchWhenAllOrNoRatesPass(t *testing.T) {
	if b, _ := searchFor(0.1, 1000); b.Passed != 0 || b.Failed != 1 {
		t.Errorf("nothing holds: %+v", b)
	}
	if b, _ := searchFor(1e12, 1000); b.Failed != 0 || b.Passed < fastest {
		t.Errorf("everything holds: passed %v, failed %v", b.Passed, b.Failed)
	}
}

// TestSearchReturnsErrorOfTrial tests that the search returns the error of a trial that cannot run.
func TestSearchReturnsErrorOfTrial(t *testing.T) {
	gone := errors.New("gone")
	s := Search{From: 1, Precision: 0.1, Repeats: 1, Trials: 10, Try: func(context.Context, float64) (Trial, error) { return Trial{}, gone }}
	if _, err := s.Run(context.Background()); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// TestInterruptedSearch tests that an interrupted search returns the result of the trials so far.
func TestInterruptedSearch(t *testing.T) {
	trials := 0
	s := Search{From: 1000, Slowest: 1, Precision: 0.05, Repeats: 3, Trials: 60, Try: func(_ context.Context, rate float64) (Trial, error) {
		if trials++; trials == 3 {
			return Trial{}, context.Canceled
		}
		return Trial{Rate: rate, Saturated: true}, nil
	}}
	b, err := s.Run(context.Background())
	if !errors.Is(err, context.Canceled) || len(b.Trials) != 2 || b.Failed != 500 || !b.Saturated {
		t.Errorf("%+v, %v", b, err)
	}
	r := SearchReport{SLO: []string{"p99<5ms"}, LimitRange: b}
	if got, want := r.Answer(), "No rate passed with p99<5ms; the lowest that was tried is 500 jobs/s (1 trial: 1 invalid). In the invalid trials, the load generator or its machine was the bottleneck, so the server may support a higher rate."; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
}

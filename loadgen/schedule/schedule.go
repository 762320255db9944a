// Package schedule describes at which rates the jobs of an open loop arrive, generates the times of the jobs, and checks
// that a load generator kept them.
package schedule

import (
	"math"
	"math/rand/v2"
	"time"
)

// Schedule is the arrival schedule of an open loop: the steps follow each other, and the last one lasts until the end
// of the run.
type Schedule struct {
	Steps   []Step
	Poisson bool // jobs arrive at random times (a Poisson process) with the rates of the steps; false: at equal intervals
}

// Step is a part of a schedule in which the rate changes linearly from From to To, in jobs per second, over the time
// For. A last step with For 0 has the constant rate From and no end.
type Step struct {
	From, To float64
	For      time.Duration
}

// Length returns the total time of the steps, or 0 if the last step has no end.
func (s *Schedule) Length() time.Duration {
	var sum time.Duration
	for _, st := range s.Steps {
		if st.For == 0 {
			return 0
		}
		sum += st.For
	}
	return sum
}

// Constant reports whether the schedule has a single constant rate. It is also true for a nil schedule, that of a
// closed loop.
func (s *Schedule) Constant() bool {
	return s == nil || len(s.Steps) == 1 && s.Steps[0].From == s.Steps[0].To
}

// Times returns a copy of the schedule with all rates multiplied by factor.
func (s *Schedule) Times(factor float64) *Schedule {
	t := &Schedule{Poisson: s.Poisson}
	for _, st := range s.Steps {
		t.Steps = append(t.Steps, Step{st.From * factor, st.To * factor, st.For})
	}
	return t
}

// Mean returns the average rate between two times since the start of the schedule, in jobs per second, rounded to
// three decimals.
func (s *Schedule) Mean(from, to time.Duration) float64 {
	if from >= to {
		return s.RateAt(from)
	}
	return math.Round((s.jobs(to)-s.jobs(from))/(to-from).Seconds()*1e3) / 1e3
}

// jobs returns the number of jobs of the schedule until a time since its start.
func (s *Schedule) jobs(t time.Duration) (n float64) {
	for _, st := range s.Steps {
		d := t
		if st.For > 0 {
			d = min(t, st.For)
		}
		n += (st.From + st.RateAt(d)) / 2 * d.Seconds()
		t -= d
	}
	return n + s.Steps[len(s.Steps)-1].To*t.Seconds() // after its end, the last step continues with its final rate
}

// After returns the rest of the schedule after a time since its start.
func (s *Schedule) After(t time.Duration) *Schedule {
	rest := &Schedule{Poisson: s.Poisson}
	for _, st := range s.Steps {
		if st.For > 0 && t >= st.For {
			t -= st.For
			continue
		}
		st.From = st.RateAt(t)
		if st.For > 0 {
			st.For -= t
		}
		rest.Steps, t = append(rest.Steps, st), 0
	}
	if rest.Steps == nil { // the last step continues with its final rate
		last := s.Steps[len(s.Steps)-1].To
		rest.Steps = []Step{{From: last, To: last}}
	}
	return rest
}

// RateAt returns the rate in jobs per second at a time since the start of the step.
func (st Step) RateAt(t time.Duration) float64 {
	if st.For == 0 {
		return st.From
	}
	return st.From + (st.To-st.From)*float64(t)/float64(st.For)
}

// Highest returns the highest rate of all steps, in jobs per second.
func (s *Schedule) Highest() (rate float64) {
	for _, st := range s.Steps {
		rate = max(rate, st.From, st.To)
	}
	return rate
}

// RateAt returns the rate in jobs per second at a time since the start of the schedule.
func (s *Schedule) RateAt(t time.Duration) float64 {
	for _, st := range s.Steps {
		if st.For == 0 || t < st.For {
			return st.RateAt(t)
		}
		t -= st.For
	}
	return s.Steps[len(s.Steps)-1].To
}

// Arrivals generates the scheduled times of the jobs.
type Arrivals struct {
	*Schedule
	rand *rand.Rand
	Next time.Duration // scheduled time of the next job, since the start of the schedule
}

// Arrivals returns the scheduled times of the jobs. seed determines the random times of a Poisson schedule.
func (s *Schedule) Arrivals(seed uint64) *Arrivals {
	a := &Arrivals{Schedule: s, rand: rand.New(rand.NewPCG(seed, 1))}
	a.Advance()
	return a
}

// Advance computes the scheduled time of the next job.
func (a *Arrivals) Advance() {
	gap := 1 / a.RateAt(a.Next)
	if a.Poisson {
		gap *= a.rand.ExpFloat64()
	}
	a.Next += time.Duration(gap * float64(time.Second))
}

package loadgen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxRate is the highest rate of a schedule, in jobs a second.
const maxRate = 1e8

// ParseSchedule reads the steps of a schedule: "5000" without an end, "1000-9000/30s" rising (or
// falling) over that time, "1000/10s,2000/10s,4000" one after the other; with "poisson:"
// before them, so many on average. k and M stand for a thousand and a million.
func ParseSchedule(text string) (*Schedule, error) {
	steps, poisson := strings.CutPrefix(text, "poisson:")
	s := &Schedule{Poisson: poisson}
	parts := strings.Split(steps, ",")
	for i, part := range parts {
		st, err := parseStep(part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if st.For == 0 && i < len(parts)-1 {
			return nil, fmt.Errorf("%q: step %q has no length, but another step follows it: expected RATE/LENGTH, such as %s/30s", text, part, part)
		}
		s.Steps = append(s.Steps, st)
	}
	return s, nil
}

func parseStep(text string) (st Step, err error) {
	rates, length, limited := strings.Cut(text, "/")
	from, to, ramp := strings.Cut(rates, "-")
	if !ramp {
		to = from
	}
	if st.From, err = ParseRate(from); err != nil {
		return st, err
	}
	if st.To, err = ParseRate(to); err != nil {
		return st, err
	}
	if limited {
		if st.For, err = time.ParseDuration(length); err != nil || st.For <= 0 {
			return st, fmt.Errorf("step length %q: expected a positive time, as 30s or 2m", length)
		}
	} else if ramp {
		return st, fmt.Errorf("%q has no length: expected %s/30s", text, text)
	}
	return st, nil
}

// ParseRate reads a rate in jobs a second, as 5000, 5k or 1.5M.
func ParseRate(text string) (float64, error) {
	unit := 1.0
	number := text
	for suffix, u := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = n, u
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= unit; err != nil || math.IsNaN(v) || v <= 0 || v > maxRate {
		return 0, fmt.Errorf("rate %q: expected jobs per second, as 5000, 5k or 0.5", text)
	}
	return v, nil
}

// String is the schedule as ParseSchedule reads it.
func (s *Schedule) String() string {
	var parts []string
	for _, st := range s.Steps {
		part := formatRate(st.From)
		if st.To != st.From {
			part += "-" + formatRate(st.To)
		}
		if st.For > 0 {
			part += "/" + st.For.String()
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ",")
	if s.Poisson {
		text = "poisson:" + text
	}
	return text
}

func formatRate(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Length is how long the schedule's steps take together; 0: without an end.
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

// Constant reports whether the rate stays the same. Without a schedule it is the server's own.
func (s *Schedule) Constant() bool {
	return s == nil || len(s.Steps) == 1 && s.Steps[0].From == s.Steps[0].To
}

// times returns the schedule with all its rates multiplied.
func (s *Schedule) times(factor float64) *Schedule {
	t := &Schedule{Poisson: s.Poisson}
	for _, st := range s.Steps {
		t.Steps = append(t.Steps, Step{st.From * factor, st.To * factor, st.For})
	}
	return t
}

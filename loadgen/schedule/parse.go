package schedule

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxRate is the highest rate of a schedule, in jobs per second.
const maxRate = 1e8

// Parse parses the steps of a schedule, separated by commas. A step is a rate in jobs per second ("5000"), a
// rate for some time ("1000/10s"), or a rate that changes linearly over some time ("1000-9000/30s"). Only the last
// step may have no time; it lasts until the end of the run. k and M after a rate multiply it by 1,000 and 1,000,000.
// With the prefix "poisson:" the jobs arrive at random times with these average rates.
func Parse(text string) (*Schedule, error) {
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

// parseStep parses one step of a schedule: RATE, RATE/LENGTH or FROM-TO/LENGTH. A changing rate needs a length.
func parseStep(text string) (st Step, err error) {
	rates, length, limited := strings.Cut(text, "/")
	from, to, ramp := strings.Cut(rates, "-")
	if from == "" { // a negative number
		from, ramp = rates, false
	}
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

// ParseRate parses a rate in jobs per second, such as 5000, 5k or 1.5M. The rate must be greater than 0 and at most
// 1e8.
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
		return 0, fmt.Errorf("rate %q: expected jobs per second greater than 0 and at most %.0f, as 5000, 5k or 0.5", text,
			float64(maxRate))
	}
	return v, nil
}

// String returns the schedule in the format of Parse.
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

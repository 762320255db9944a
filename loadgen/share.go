package loadgen

import (
	"fmt"
	"strconv"
	"strings"
)

// Share is the part of a load that one process generates when several processes generate it together: part I of N,
// from 1 to N. The zero value is the whole load.
type Share struct{ I, N int } // I counts from 1

// ParseShare parses a share such as "2/3", the second of three.
func ParseShare(text string) (Share, error) {
	i, n, ok := strings.Cut(text, "/")
	s := Share{}
	var err1, err2 error
	s.I, err1 = strconv.Atoi(i)
	s.N, err2 = strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || s.I < 1 || s.I > s.N {
		return Share{}, fmt.Errorf("%q: expected I/N, as 2/3 for the second of three", text)
	}
	return s, nil
}

// String returns the share in the format of ParseShare, or "" for the whole load.
func (s Share) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.I, s.N)
}

// Of returns the configuration of the share's part of a run: it divides the clients, workers, jobs, rates, kills and
// reconnections by the number of shares. Each share has its own functions, because only the process that submitted a
// job can check its result, and its own seed. It returns an error if the share would have no clients, workers or
// jobs.
func (s Share) Of(c Config) (Config, error) {
	if s.N == 0 {
		return c, nil
	}
	whole := c
	for _, p := range []struct {
		name string
		v    *int
	}{{"clients", &c.Clients}, {"workers", &c.Workers}} {
		if *p.v = int(s.part(int64(*p.v))); *p.v == 0 {
			return c, fmt.Errorf("a load in %d parts needs at least %d %s, one for each part", s.N, s.N, p.name)
		}
	}
	if c.Count > 0 {
		if c.Count = s.part(c.Count); c.Count == 0 {
			return c, fmt.Errorf("a load in %d parts needs at least %d jobs (--count), one for each part", s.N, s.N)
		}
	}
	if c.Rate != nil {
		c.Rate = whole.Rate.times(1 / float64(s.N))
	}
	c.Kill /= float64(s.N)
	c.Reconnect /= float64(s.N)
	c.Seed += uint64(s.I-1) << 32
	c.Prefix += fmt.Sprintf("-%dof%d", s.I, s.N)
	return c, nil
}

// part returns the share's part of a number. The parts of all shares add up to the number.
func (s Share) part(all int64) int64 {
	i, n := int64(s.I), int64(s.N)
	return all*i/n - all*(i-1)/n
}

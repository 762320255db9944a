package loadgen

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Share is the part of a load that one process generates when several processes generate it together. The zero value
// is the whole load.
type Share struct {
	Index  int    `json:"index"`  // number of the share, from 0 to Shares-1
	Shares int    `json:"shares"` // number of shares of the load
	Run    string `json:"run"`    // ID of the run, see RunID
	// time from the start time of the run to the start of this share, in seconds; 0 if it was ready in time
	Late float64 `json:"late_seconds"`
}

// RunID returns the ID of a run: its start time and its number of shares.
func RunID(start time.Time, shares int) string {
	return fmt.Sprintf("%s-%d", start.UTC().Format("20060102T150405.999999999Z"), shares)
}

// String returns the share as "share 0 of 4", or "" for the whole load. Shares are numbered from 0.
func (s Share) String() string {
	if s.Shares == 0 {
		return ""
	}
	return fmt.Sprintf("share %d of %d", s.Index, s.Shares)
}

// Of returns the configuration of the share's part of a run: it divides the clients, workers, jobs, rates, kills and
// reconnections by the number of shares. Each share has its own functions, because only the process that submitted a
// job can check its result, and its own seed. It returns an error if Index is not from 0 to Shares-1, or if the
// share would have no clients, workers or jobs.
func (s Share) Of(c Config) (Config, error) {
	if s.Shares == 0 {
		return c, nil
	}
	if s.Index < 0 || s.Index >= s.Shares {
		return c, fmt.Errorf("share index %d: expected an index from 0 to %d", s.Index, s.Shares-1)
	}
	whole := c
	for _, p := range []struct {
		name string
		v    *int
	}{{"clients", &c.Clients}, {"workers", &c.Workers}} {
		if *p.v = int(s.part(int64(*p.v))); *p.v == 0 {
			return c, fmt.Errorf("a load in %d shares needs at least %d %s, one for each share", s.Shares, s.Shares, p.name)
		}
	}
	if c.Count > 0 {
		if c.Count = s.part(c.Count); c.Count == 0 {
			return c, fmt.Errorf("a load in %d shares needs at least %d jobs (--count), one for each share", s.Shares, s.Shares)
		}
	}
	if c.Rate != nil {
		c.Rate = whole.Rate.Times(1 / float64(s.Shares))
	}
	c.Kill /= float64(s.Shares)
	c.Reconnect /= float64(s.Shares)
	c.Seed += uint64(s.Index) << 32
	c.Prefix += fmt.Sprintf("-%dof%d", s.Index, s.Shares)
	return c, nil
}

// part returns the share's part of a number. The parts of all shares add up to the number.
func (s Share) part(all int64) int64 {
	i, n := int64(s.Index), int64(s.Shares)
	return all*(i+1)/n - all*i/n
}

// Late returns the configuration of a run that starts late. It ends at the same time as the other shares of the run,
// unless it has a Count and no Duration. It returns an error if the measured part is over by then.
func (c Config) Late(late time.Duration) (Config, error) {
	if c.Duration > 0 {
		if late >= c.Duration {
			return c, errors.New("no time of the run is left")
		}
		c.Duration -= late
	}
	if c.Rate != nil {
		c.Rate = c.Rate.After(late)
	}
	return c, nil
}

// latestStart is the longest time between now and the start of a run.
const latestStart = 24 * time.Hour

// ParseStart parses a time of today (15:04:05) or a time in RFC 3339 format. The time must be at most latestStart
// before or after now.
func ParseStart(text string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		clock, err := time.ParseInLocation(time.TimeOnly, text, now.Location())
		if err != nil {
			return at, fmt.Errorf("%q: expected a time, as 15:04:05 or 2006-01-02T15:04:05Z", text)
		}
		at = time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	switch ahead := at.Sub(now); {
	case ahead < -latestStart:
		return at, fmt.Errorf("%s: expected a time in the future, got one %v ago", text, -ahead.Round(time.Second))
	case ahead > latestStart:
		return at, fmt.Errorf("%s: expected a time within the next %v", text, latestStart)
	}
	return at, nil
}

// WaitUntil waits until a time or until ctx is done. The zero time means now.
func WaitUntil(ctx context.Context, at time.Time) error {
	if !at.IsZero() && sleep(ctx, time.Until(at)) {
		return nil
	}
	return ctx.Err()
}

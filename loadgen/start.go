package loadgen

import (
	"context"
	"fmt"
	"time"
)

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

package inject

import (
	"slices"
	"time"
)

// timers calls functions at later times. The zero value has no timers.
type timers []timer

type timer struct {
	at time.Time
	do func()
}

// After calls do when d has passed.
func (t *timers) After(d time.Duration, do func()) { *t = append(*t, timer{time.Now().Add(d), do}) }

// next returns the time of the first timer, or other if that is earlier. The zero time means never.
func (t timers) next(other time.Time) time.Time {
	for _, one := range t {
		if other.IsZero() || one.at.Before(other) {
			other = one.at
		}
	}
	return other
}

// run calls the functions whose time is not after now, in the order in which they were added, and removes them.
func (t *timers) run(now time.Time) {
	var expired timers
	*t = slices.DeleteFunc(*t, func(one timer) bool {
		if one.at.After(now) {
			return false
		}
		expired = append(expired, one)
		return true
	})
	for _, one := range expired {
		one.do()
	}
}

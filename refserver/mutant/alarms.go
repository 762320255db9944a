package mutant

import (
	"slices"
	"time"
)

// Alarms are what a hook wants done in its own time. The zero value has none.
type Alarms []alarm

type alarm struct {
	at time.Time
	do func()
}

// After has something done in so much time.
func (a *Alarms) After(d time.Duration, do func()) { *a = append(*a, alarm{time.Now().Add(d), do}) }

// Next is when the first one is due, or other if that is sooner; a zero time never comes.
func (a Alarms) Next(other time.Time) time.Time {
	for _, one := range a {
		if other.IsZero() || one.at.Before(other) {
			other = one.at
		}
	}
	return other
}

// Ring does what is due, each once, in the order in which it was set.
func (a *Alarms) Ring(now time.Time) {
	var due []alarm
	*a = slices.DeleteFunc(*a, func(one alarm) bool {
		if one.at.After(now) {
			return false
		}
		due = append(due, one)
		return true
	})
	for _, one := range due {
		one.do()
	}
}

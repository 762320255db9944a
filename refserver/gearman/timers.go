package gearman

import (
	"time"

	"jobwire/codec"
)

// machine.timers is a heap of the jobs that have a timer, ordered by time.

func (e *extra) before(y *extra) bool { return e.firesAt.Before(y.firesAt) }
func (e *extra) heapIndex() *int      { return &e.timer }

// setTimer sets the timer of a job, which must not have one.
func (m *machine) setTimer(j *job, at time.Time) {
	x := m.extra(j)
	x.firesAt = at
	m.timers.add(x)
}

func (m *machine) stopTimer(j *job) {
	if j.extra != 0 {
		m.timers.remove(m.extras.at(j.extra))
	}
}

// atOnce is the maximum number of timers that expire in one Tick, so that many timers at the same time do not delay
// other connections.
const atOnce = 1000

func (m *machine) Next() time.Time {
	if len(m.timers) == 0 {
		return time.Time{}
	}
	return m.timers[0].firesAt
}

// Tick handles the timers that have expired: a running job fails and a scheduled job is queued. It handles at most
// atOnce timers; the server calls it again for the rest.
func (m *machine) Tick(now time.Time) {
	for range atOnce {
		if len(m.timers) == 0 || m.timers[0].firesAt.After(now) {
			return
		}
		j := m.jobs.at(m.timers[0].job)
		m.stopTimer(j)
		if j.worker != 0 {
			m.fail(j) // its CAN_DO_TIMEOUT has expired
		} else {
			m.enqueue(j) // its SUBMIT_JOB_SCHED or SUBMIT_JOB_EPOCH time has come
		}
	}
}

// century is a duration of 100 years. Longer timeouts are ignored and later times limited to it, so that they do not
// overflow.
const century = 100 * 365 * 24 * time.Hour

// epoch returns the time of a SUBMIT_JOB_EPOCH, at most 100 years from now.
func epoch(f *codec.Frame, now time.Time) (time.Time, bool) {
	n, _ := codec.ParseNumber(f.Arg(2))
	far := now.Add(century)
	if n >= uint64(far.Unix()) {
		return far, true
	}
	return time.Unix(int64(n), 0), true
}

// schedule returns the first minute, in UTC, that matches all fields of a SUBMIT_JOB_SCHED; the current minute counts.
// It returns false if there is none, as for February 30.
func schedule(f *codec.Frame, now time.Time) (time.Time, bool) {
	var v [5]int
	for i := range v {
		n, _ := codec.ParseNumber(f.Arg(2 + i))
		v[i] = int(n)
	}
	minute, hour, day, month, weekday := v[0], v[1], v[2], time.Month(v[3]), v[4]
	now = now.UTC().Truncate(time.Minute)
	// February 29 falls on every weekday within 40 years.
	for year := now.Year(); year <= now.Year()+40; year++ {
		t := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
		if t.Month() == month && (int(t.Weekday())+6)%7 == weekday && !t.Before(now) {
			return t, true
		}
	}
	return time.Time{}, false
}

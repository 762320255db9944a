package gearman

import (
	"time"

	"jobwire/codec"
)

// In machine.timers stand the jobs that something is due to, the earliest first.

func (x *extra) before(y *extra) bool { return x.due.Before(y.due) }
func (x *extra) place() *int          { return &x.timer }

// setTimer makes something due to the job.
func (m *machine) setTimer(j *job, due time.Time) {
	x := m.extra(j)
	x.due = due
	m.timers.add(x)
}

func (m *machine) stopTimer(j *job) {
	if j.extra != 0 {
		m.timers.remove(m.extras.at(j.extra))
	}
}

// atOnce is how many timers run out in one turn. Jobs may be due at one time in
// any number, and the others wait meanwhile.
const atOnce = 1000

func (m *machine) Next() time.Time {
	if len(m.timers) == 0 {
		return time.Time{}
	}
	return m.timers[0].due
}

func (m *machine) Tick(now time.Time) {
	for range atOnce {
		if len(m.timers) == 0 || m.timers[0].due.After(now) {
			return
		}
		j := m.jobs.at(m.timers[0].job)
		m.stopTimer(j)
		if j.worker != 0 {
			m.fail(j) // it ran out of its CAN_DO_TIMEOUT
		} else {
			m.enqueue(j) // its SCHED or EPOCH time has come
		}
	}
}

// never is later than anything that a server lives to see. Times beyond it are
// taken for it, so that they cannot overflow.
const never = 100 * 365 * 24 * time.Hour

// epoch reads the time of a SUBMIT_JOB_EPOCH.
func epoch(f *codec.Frame, now time.Time) (time.Time, bool) {
	n, _ := codec.ParseNumber(f.Arg(2))
	far := now.Add(never)
	if n >= uint64(far.Unix()) {
		return far, true
	}
	return time.Unix(int64(n), 0), true
}

// schedule finds the next minute, in UTC, that matches a SUBMIT_JOB_SCHED in all
// its fields. The minute that has begun counts. There may be none: the 30th of
// February, for one.
func schedule(f *codec.Frame, now time.Time) (time.Time, bool) {
	var v [5]int
	for i := range v {
		n, _ := codec.ParseNumber(f.Arg(2 + i))
		v[i] = int(n)
	}
	minute, hour, day, month, weekday := v[0], v[1], v[2], time.Month(v[3]), v[4]
	now = now.UTC().Truncate(time.Minute)
	// The 29th of February meets every weekday within 40 years.
	for year := now.Year(); year <= now.Year()+40; year++ {
		t := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
		if t.Month() == month && (int(t.Weekday())+6)%7 == weekday && !t.Before(now) {
			return t, true
		}
	}
	return time.Time{}, false
}

package gearman

import (
	"time"

	"jobwire/codec"
)

// timers are the jobs that something is due to, as a heap by time: the root is
// the earliest. Jobs know their place in it, so that any can leave.
type timers []*job

func (t timers) next() time.Time {
	if len(t) == 0 {
		return time.Time{}
	}
	return t[0].due
}

// due takes the earliest job out if its time has come.
func (t *timers) due(now time.Time) *job {
	if len(*t) == 0 || (*t)[0].due.After(now) {
		return nil
	}
	j := (*t)[0]
	t.remove(j)
	return j
}

func (t *timers) add(j *job) {
	*t = append(*t, j)
	j.timer = len(*t)
	t.up(j.timer)
}

func (t *timers) remove(j *job) {
	i := j.timer
	if i == 0 {
		return
	}
	last := len(*t)
	t.swap(i, last)
	(*t)[last-1] = nil
	*t = (*t)[:last-1]
	j.timer = 0
	if i < last {
		t.down(i)
		t.up(i)
	}
}

// Places count from 1; the children of i are 2i and 2i+1.

func (t timers) before(i, k int) bool { return t[i-1].due.Before(t[k-1].due) }

func (t timers) swap(i, k int) {
	t[i-1], t[k-1] = t[k-1], t[i-1]
	t[i-1].timer, t[k-1].timer = i, k
}

func (t timers) up(i int) {
	for ; i > 1 && t.before(i, i/2); i /= 2 {
		t.swap(i, i/2)
	}
}

func (t timers) down(i int) {
	for {
		least := i
		for k := 2 * i; k <= 2*i+1 && k <= len(t); k++ {
			if t.before(k, least) {
				least = k
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
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

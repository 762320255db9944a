package behavior

import (
	"slices"
	"time"

	"jobwire/codec"
)

// key returns the key of the job that a message names, or "".
func (m *Monitor) key(e *codec.Event) string {
	if m.protocol.ScopedIDs && e.Job != nil {
		return string(e.Queue) + "\x00" + string(e.Job)
	}
	return string(e.Job)
}

// assign records that a worker gets a job. In some protocols, a job belongs to no connection.
func (m *Monitor) assign(c *conn, e *codec.Event, at time.Duration) {
	if m.protocol.Unowned || c.ended[codec.Peer] {
		return
	}
	key := m.key(e)
	delete(c.released, key)
	j := &job{key: key, at: at, task: m.task, limit: m.limits[key]}
	if limit := c.queues[string(e.Queue)]; limit > 0 {
		j.limit = limit
	}
	c.jobs = append(slices.DeleteFunc(c.jobs, func(o *job) bool { return o.key == key && key != "" }), j)
}

// about records a message of a worker about a job. r is nil if the message has no reply.
func (m *Monitor) about(c *conn, r *request, e *codec.Event, at time.Duration) {
	if len(c.jobs) == 0 {
		return
	}
	k := 0
	if id := m.key(e); id != "" {
		k = slices.IndexFunc(c.jobs, func(j *job) bool { return j.key == id })
	}
	if k < 0 {
		return
	}
	switch j := c.jobs[k]; e.Does.Does {
	case codec.Complete, codec.Fail, codec.Exception, codec.Delete, codec.Release, codec.Bury:
		m.expired(c, at)
		if r == nil {
			m.overruns(c, m.pastLimit(j, at), at)
		}
		if e.Does.Does != codec.Release {
			delete(m.limits, j.key)
		}
		c.jobs, c.early = slices.Delete(c.jobs, k, k+1), 0
	case codec.Touch:
		m.expired(c, at)
		j.at, j.touched, c.early = at, true, 0
	case codec.Data, codec.Warning, codec.Status:
		j.touched = true
	}
}

// overdue is a job whose worker has sent a message about it after its time limit.
type overdue struct {
	since time.Duration // when the time limit began
	over  time.Duration // time after the limit; 0: the limit has not passed, or is unknown
	ends  bool          // the worker has not extended the limit, nor reported progress
}

// pastLimit returns by how much a worker that sends a message about a job has exceeded its time limit.
func (m *Monitor) pastLimit(j *job, at time.Duration) overdue {
	if j.limit == 0 || at-j.at <= j.limit {
		return overdue{}
	}
	return overdue{j.at, at - j.at - j.limit, !j.touched}
}

// overruns notes that a worker has ended a job after its time limit, and the reply, if there is one, has not refused
// it. Jobs that the worker had at the same time count as one, because a single pause of the program delays all of them.
func (m *Monitor) overruns(c *conn, late overdue, at time.Duration) {
	if m.tasks || !late.ends || late.over <= overrun || late.since < m.lastOverrun {
		return
	}
	m.lastOverrun = at
	if m.overrun++; m.overrun == minLate {
		m.report("overdue", c, at, "the worker ended %d jobs more than %v after their time limits, the last one after %v",
			m.overrun, overrun, late.over.Round(time.Millisecond))
	}
}

// expired reports several jobs that a worker has kept for long after their time limits.
func (m *Monitor) expired(c *conn, at time.Duration) {
	n, known := 0, true
	for _, j := range c.jobs {
		if j.limit > 0 && at-j.at > j.limit+overLimit {
			n++
			known = known && j.late
		}
	}
	if n < 2 || known || m.tasks {
		return
	}
	for _, j := range c.jobs {
		j.late = true
	}
	m.report("holds", c, at, "the worker has had %d jobs for more than %v after their time limits", n, overLimit)
}

// loses reports a worker that has lost a job because its time limit has passed, after the server refused to wait
// several times in a row and the worker asked again. assigned is the key of a job that the worker gets now, or "".
func (m *Monitor) loses(c *conn, assigned string, at time.Duration) {
	lost := slices.ContainsFunc(c.jobs, func(j *job) bool {
		return j.limit > 0 && at-j.at > j.limit || assigned != "" && j.key == assigned
	})
	if c.early < minEarly || c.early > maxEarly || !lost {
		return
	}
	m.report("deadline", c, at, "the server refused %d times in a row to wait, because the time limit of a job ends; the "+
		"worker asked again, without a message about its jobs, and lost the job", c.early)
	c.early = 0
}

// left reports the jobs that a worker has when it ends its connection. A program that performs tasks may leave one job
// of each.
func (m *Monitor) left(c *conn, at time.Duration) {
	m.expired(c, at)
	left, idle, of := 0, 0, map[int]int{}
	for _, j := range c.jobs {
		if j.limit > 0 && at-j.at > j.limit { // the worker has lost it
			continue
		}
		if of[j.task]++; m.tasks && of[j.task] == 1 {
			continue
		}
		if left++; !j.touched && at-j.at >= time.Second {
			idle++
		}
	}
	if left > 0 {
		m.report("abandons", c, at, "the worker ended its connection, and had neither ended nor given back %d of its jobs",
			left)
	}
	if idle > 1 {
		m.report("holds", c, at, "the worker had %d jobs for a second or more, sent nothing about them and ended its "+
			"connection", idle)
	}
	c.jobs = nil
}

// AboutJobs reports whether the finding is about jobs that a worker has left or kept.
func (f *Finding) AboutJobs() bool {
	return f.Rule == rule("abandons") || f.Rule == rule("holds")
}

package behavior

import (
	"slices"
	"time"

	"jobwire/codec"
)

// How often a program ignores a reply before that is reported. Once or twice may be intended, or a coincidence.
const (
	minUnknown   = 6 // requests about one job that the server does not know
	minUnready   = 3 // requests for jobs or new jobs after a refused setup
	minLate      = 3 // messages about jobs whose time limits have passed
	minTakenBack = 3 // deleted jobs that the worker had given back
	minMerged    = 3 // jobs with other data than the job with the same unique ID
)

// overrun is by how much a worker may exceed the time limit of a job before that counts. Messages are on their way for
// a part of it.
const overrun = time.Second

// maxUnready limits the refused requests of a connection that are kept.
const maxUnready = 100

// The first and the last plausible start time of a job, in seconds since 1970: the years 1985 and 5138. Seconds from
// now are less, and milliseconds since 1970 are more.
const (
	firstStart = 500_000_000
	lastStart  = 100_000_000_000
)

// replies counts how often programs ignore what replies say.
type replies struct {
	unknown map[string]int       // replies that say that the server does not know a job that it once knew, by job
	merged  map[string]submitted // the last job with a unique ID, by queue and unique ID

	unready, late, takenBack, differing int
	overrun                             int           // jobs that were ended after their time limits
	lastOverrun                         time.Duration // when the last of them ended

	// hashes of requests for a new job without a reply, of ended connections of the present task; nil: not kept
	lostSubmits map[uint64]bool
}

// submitted is a job that a client has submitted with a unique ID.
type submitted struct {
	job  string
	data uint64 // hash of its beginning and length
}

// namesJob reports whether a request with this effect is useful only if the server knows the job that it names.
func namesJob(does codec.Effect) bool {
	switch does {
	case codec.Query, codec.Touch, codec.Release, codec.Bury, codec.Delete, codec.Kick:
		return true
	}
	return false
}

// asksFor notes what a request shows about earlier replies, and what its reply may show. r is nil if the request has no
// reply.
func (m *Monitor) asksFor(c *conn, r *request, f *codec.Frame, e *codec.Event, at time.Duration) {
	does := e.Does.Does
	if m.tasks { // the tasks say what the program sends
		return
	}
	if n := f.Number(codec.StartTime); f.Type.Has(codec.StartTime) && n > 0 && (n < firstStart || n > lastStart) {
		m.report("start-time", c, at, "the client submitted a job with the start time %d, in seconds since 1970", n)
	}
	if does == codec.Ask || does == codec.Submit {
		if len(c.unready) > 0 {
			if m.unready++; m.unready == minUnready {
				m.report("setup", c, at, "the server refused a request that sets the queues of the connection, and "+
					"the program went on as if it had not, %d times", m.unready)
			}
		}
		c.unready = nil
	}
	if does == codec.Delete && len(c.released) > 0 && c.released[m.key(e)] {
		if m.takenBack++; m.takenBack == minTakenBack {
			m.report("deletes", c, at, "the worker deleted %d jobs that it had given back before", m.takenBack)
		}
	}
	if r == nil {
		return
	}
	switch {
	case does == codec.Submit && len(e.Unique) > 0:
		r.unique, r.data = string(e.Queue)+"\x00"+string(e.Unique), m.hash(e.Payload)
	case namesJob(does) && e.Job != nil:
		r.job = m.key(e)
		for _, j := range c.jobs {
			if j.key == r.job {
				r.late = m.pastLimit(j, at)
			}
		}
	}
}

// submitsAgain reports a client that submits a job again whose first request was lost, and may have created the job. A
// server makes jobs with the same unique ID one job, and jobs may end with the connection of a client that waits for
// them.
func (m *Monitor) submitsAgain(c *conn, r *request, f *codec.Frame, e *codec.Event, at time.Duration) {
	if r == nil || e.Does.Does != codec.Submit || len(e.Unique) > 0 || f.Attached() {
		return
	}
	if r.creates = true; m.lostSubmits[r.sum] {
		m.report("duplicates", c, at, "the client submitted the job again after a connection had ended without the reply")
	}
}

// learns notes what a reply says. r is the request.
func (m *Monitor) learns(c *conn, r *request, f *codec.Frame, e *codec.Event, at time.Duration) {
	refused := e.Does.Does == codec.Refuse
	switch r.does {
	case codec.Use, codec.Register, codec.Unregister:
		c.unready = slices.DeleteFunc(c.unready, func(sum uint64) bool { return sum == r.sum })
		if refused && !m.tasks && len(c.unready) < maxUnready {
			c.unready = append(c.unready, r.sum)
		}
	case codec.Release:
		if !refused && len(c.released) < maxKept {
			if c.released == nil {
				c.released = map[string]bool{}
			}
			c.released[r.job] = true
		}
	}
	if r.does == codec.Delete && !refused {
		m.overruns(c, r.late, at)
	}
	if _, known := m.unknown[r.job]; known {
		m.knows(c, r, refused || f.Type.Has(codec.Known) && f.Number(codec.Known) == 0, at)
	}
	if e.Does.Does != codec.Accept {
		return
	}
	if m.exists(e); r.unique == "" {
		return
	}
	now, before := submitted{m.key(e), r.data}, m.merged[r.unique]
	if before.job == now.job && before.data != now.data {
		if m.differing++; m.differing == minMerged {
			m.report("unique", c, at, "clients submitted %d jobs with other data than an unfinished job with the same "+
				"unique ID, which the server made one job", m.differing)
		}
	}
	if len(m.merged) < maxKept {
		m.merged[r.unique] = now
	}
}

// exists notes that the server knows a job.
func (m *Monitor) exists(e *codec.Event) {
	if len(m.unknown) < maxKept {
		m.unknown[m.key(e)] = 0
	}
}

// knows notes whether the server knows the job that a request named.
func (m *Monitor) knows(c *conn, r *request, unknown bool, at time.Duration) {
	if !unknown {
		m.unknown[r.job] = 0
		return
	}
	if r.late.over > 0 {
		if m.late++; m.late == minLate {
			m.report("late", c, at, "the worker sent %d messages about jobs after their time limits, which the server refused",
				m.late)
		}
	}
	if m.unknown[r.job]++; m.unknown[r.job] == minUnknown {
		m.report("unknown", c, at, "the server said %d times that it does not know the job that the request names (%s)",
			minUnknown, r.does)
	}
}

package judge

import (
	"math"
	"slices"
	"time"

	"jobwire/codec"
)

// body checks a job body that the server sends.
func (c *beanstalkConn) body(job *beanstalkJob, a *command, f *codec.Frame) {
	sum := c.b.Hash(f.Get(codec.Payload))
	switch {
	case (job.put || job.seen) && !c.Check("beanstalk.body.verbatim", job.body == sum, "Body",
		"expected the body that the client put, got another body"):
	case job.deletedBefore(a):
		c.Check("beanstalk.delete.gone", false, "Job ID", "the server returned a job that was deleted before this request")
	}
	if !job.put && !job.seen { // otherwise, this body may be the wrong one
		job.body, job.seen = sum, true
	}
}

// deletedBefore reports whether the deletion of the job was captured before the command.
func (j *beanstalkJob) deletedBefore(a *command) bool { return j.deleted != 0 && j.deleted < a.at }

// left returns the time for which a reservation lasts at least. It is negative if that is unknown.
func (b *beanstalkChecker) left(job *beanstalkJob, r *reservation) time.Duration {
	if job == nil || !job.put {
		return math.MinInt64
	}
	return time.Duration(r.since-b.at) + job.ttr
}

// certainlyReserved returns a function that reports whether a connection has reserved a job and has not sent a command
// that ends the reservation.
func certainlyReserved(id string) func(Conversation) bool {
	return func(p Conversation) bool { r := p.(*beanstalkConn).reservations[id]; return r != nil && !r.given }
}

// reply checks the reply to a request for a job.
func (c *beanstalkConn) reply(a *command, f *codec.Frame) {
	timedOut, waited := f.Type.Name == "TIMED_OUT", time.Duration(c.b.at-a.at) // beanstalk.reserve.timeout-expires
	switch {
	case timedOut && c.PeerClosed():
	case a.typ.Blocks == codec.Always:
		c.Check("beanstalk.reserve.blocks", !timedOut, "", "the server replied TIMED_OUT to a reserve without a timeout")
	case a.n < 0:
		c.Check("beanstalk.reserve.timeout-negative", !timedOut, "",
			"the server replied TIMED_OUT to a reserve with a negative timeout, which means no timeout")
	case timedOut:
		c.Check("beanstalk.reserve.timeout-expires", waited >= time.Duration(min(a.n, 1<<32))*time.Second, "",
			"the server replied TIMED_OUT after %v, before the timeout of %d seconds", waited, a.n)
	}
	if f.Type.Does == codec.Assign {
		c.reserves(a, f)
	} else if !timedOut { // DEADLINE_SOON
		least := time.Duration(math.MaxInt64)
		for id, r := range c.reservations {
			least = min(least, c.b.left(c.b.jobs[id], r))
		}
		if c.Check("beanstalk.deadline-soon.own-jobs", len(c.reservations) > 0, "",
			"the server replied DEADLINE_SOON, but the connection has no reserved job") && least > math.MinInt64 {
			c.Check("beanstalk.deadline-soon.not-earlier", least <= time.Second, "",
				"the server replied DEADLINE_SOON, but every job that the connection has reserved has at least %v of its time to "+
					"run left", least)
		}
	}
}

// reserves checks the reply RESERVED and records the reservation. The job must be of a watched tube, and another
// connection must not have it: it may have it again only after its time-to-run has expired, or after that connection
// has sent a command that ends the reservation.
func (c *beanstalkConn) reserves(a *command, f *codec.Frame) {
	b := c.b
	id := b.id(f)
	job := b.job(id)
	c.body(job, a, f)
	switch {
	case a.typ.Has(codec.JobID):
		c.Check("beanstalk.reserve-job.reserved", id == a.arg, "Job ID", "expected job %s, which the request names", a.arg)
	case !job.put:
	case len(c.ignored) > 0 && !c.Check("beanstalk.ignore.no-more-jobs", !c.ignored[job.tube], "Job ID",
		"the server reserved a job from tube %q, which the connection has removed from its watch list with ignore", job.tube):
	case b.several || !c.watched[job.tube]:
		c.Check("beanstalk.tube.separate", c.watched[job.tube], "Job ID",
			"the server reserved a job from tube %q, which the connection does not watch", job.tube)
	}
	old := job.holder
	taken := &reservation{since: max(a.at, job.at), seen: b.at, given: c.gives(id)}
	if old != nil {
		switch r := old.reservations[id]; {
		case r == nil || b.left(job, r) <= 0:
		case old == c && !r.given:
			c.Check("beanstalk.job.exclusive", false, "Job ID",
				"the server reserved a job for this connection that this connection has already reserved")
		case old != c && !c.PeerClosed():
			c.Defer("beanstalk.job.exclusive", "Job ID", certainlyReserved(id), []*Conn{old.Conn, c.Conn},
				"the server reserved a job for this connection that connection %d has already reserved", old.ID)
		}
		if old != c && c.PeerClosed() {
			c.reservations[id] = taken
			// this reply was captured late: the server sent it before the worker disconnected and another worker reserved the
			// job
			return
		}
	} else if b.reserved {
		c.Pass("beanstalk.job.exclusive")
	}
	b.reserved = true
	job.holder = c
	c.reservations[id] = taken
}

// gives reports whether the client has sent a command that ends a reservation of the job, and that waits for its reply.
func (c *beanstalkConn) gives(id string) bool {
	return slices.ContainsFunc(c.pending, func(a command) bool {
		return a.does() == codec.Leave || a.arg == id && a.endsReservation()
	})
}

// Commands about a job.

// reservedRules maps the effects of commands that need a reservation to two rules: for a command without a reservation,
// and for a command with one.
var reservedRules = map[codec.Effect][2]codec.RuleID{
	codec.Delete:  {"", "beanstalk.delete.reserved"},
	codec.Release: {"beanstalk.release.not-found", "beanstalk.release.released"},
	codec.Bury:    {"beanstalk.bury.not-found", "beanstalk.bury.buried"},
	codec.Touch:   {"beanstalk.touch.not-found", "beanstalk.touch.touched"},
}

// ownJob checks a command that a client may send only for its own jobs. It checks nothing while the client waits for
// another job, because it is then unknown which jobs the client has reserved.
func (c *beanstalkConn) ownJob(t *codec.Type, id string) {
	const rule, field = "beanstalk.client.own-jobs", "Job ID"
	if slices.ContainsFunc(c.pending, func(a command) bool { return a.does() == codec.Ask }) {
		return
	}
	switch r := c.reservations[id]; t.Does {
	case codec.Release, codec.Bury, codec.Touch:
		if c.Check(rule, r != nil, field, "the client has not reserved job %s on this connection", id) {
			c.Check(rule, !r.given, field, "the client has already given back job %s", id)
		}
	case codec.Delete:
		again := func(a command) bool { return a.does() == codec.Delete && a.arg == id }
		if r == nil && c.deleted.has(c.b.Hash([]byte(id))) || slices.ContainsFunc(c.pending, again) {
			c.Check(rule, false, field, "the client has already deleted job %s", id)
		} else {
			c.Pass(rule)
		}
	}
}

// othersJob reports whether another connection has certainly reserved a job.
func (c *beanstalkConn) othersJob(job *beanstalkJob, a *command) bool {
	if job == nil || job.holder == nil || job.holder == c {
		return false
	}
	r := job.holder.reservations[a.arg]
	return r != nil && r.seen < a.at && c.b.left(job, r) > 0
}

// deletes checks the reply DELETED, and records the deletion: another connection must not have reserved the job, and it
// must not have been deleted before the request.
func (c *beanstalkConn) deletes(a *command) {
	job := c.b.job(a.arg)
	if old := job.holder; c.othersJob(job, a) {
		c.Defer("beanstalk.delete.others-job", "", certainlyReserved(a.arg), []*Conn{old.Conn},
			"expected the reply NOT_FOUND, because connection %d has reserved job %s", old.ID, a.arg)
	}
	if job.deletedBefore(a) {
		c.Check("beanstalk.delete.not-found", false, "", "the server replied DELETED, but job %s was already deleted", a.arg)
	}
	if c.reservations[a.arg] != nil {
		c.Pass("beanstalk.delete.reserved")
	}
	job.deleted = c.b.at
	c.deleted.add(c.b.Hash([]byte(a.arg)))
	c.release(a.arg)
}

// release records that the connection no longer has a reservation of the job.
func (c *beanstalkConn) release(id string) {
	delete(c.reservations, id)
	if job := c.b.jobs[id]; job != nil && job.holder == c {
		job.holder = nil
	}
}

// releases checks the replies RELEASED, BURIED and TOUCHED, for which the connection must have reserved the job. It
// ends the reservation, except after touch, which starts its time-to-run again.
func (c *beanstalkConn) releases(a *command) {
	r, rules := c.reservations[a.arg], reservedRules[a.typ.Does]
	if r == nil {
		c.Check(rules[0], false, "", "expected the reply NOT_FOUND, because this connection has not reserved job %s", a.arg)
		return
	}
	if c.Pass(rules[1]); a.typ.Does == codec.Touch {
		r.since, r.seen = max(r.since, a.at), c.b.at
		return
	}
	c.release(a.arg)
}

// notFound checks the reply NOT_FOUND: it is wrong if the connection has a reservation that cannot have expired yet. It
// is right, and counts as a passed rule, if the job is not reserved, was deleted, or is reserved by another connection.
func (c *beanstalkConn) notFound(a *command) {
	rules, r, job := reservedRules[a.typ.Does], c.reservations[a.arg], c.b.jobs[a.arg]
	switch {
	case r != nil && rules[1] != "":
		if c.b.left(job, r) > 0 {
			c.Check(rules[1], false, "", "the server replied NOT_FOUND, but this connection has reserved job %s", a.arg)
		}
		delete(c.reservations, a.arg)
	case rules[0] != "":
		c.Pass(rules[0])
	case a.typ.Does == codec.Delete && c.othersJob(job, a):
		c.Pass("beanstalk.delete.others-job")
	case job == nil || !job.deletedBefore(a):
	case a.typ.Does == codec.Delete:
		c.Pass("beanstalk.delete.not-found")
	default:
		c.Pass("beanstalk.delete.gone")
	}
}

// found checks the job in the reply to a command that returns a job.
func (c *beanstalkConn) found(a *command, f *codec.Frame) {
	id := c.b.id(f)
	job := c.b.job(id)
	c.body(job, a, f)
	if a.typ.Has(codec.JobID) {
		c.Check("beanstalk.peek.by-id", id == a.arg, "Job ID", "expected job %s, which the request names", a.arg)
	} else if job.put {
		c.Check("beanstalk.peek.used-tube", job.tube == c.tube, "Job ID",
			"expected a job of tube %[2]q, which the connection selected with use, got a job of tube %[1]q", job.tube, c.tube)
	}
}

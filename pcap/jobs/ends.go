package jobs

import (
	"slices"

	"jobwire/codec"
)

// complete records that the worker of a job has reported its end.
func (t *Tracker) complete(e *event) *job {
	j, c := t.known(e), e.conn
	c.worker = true
	if j == nil {
		return nil
	}
	if j.exception && e.Does.Does == codec.Fail && j.worker == c { // the worker has already reported this end with an exception
		return j
	}
	if j.worker != nil && j.worker != c && !e.it.Conn.Protocol.Unowned {
		t.anomaly(j, "ended by connection %d, although the server had not assigned it to that connection", c.id)
	}
	j.exception = j.exception || e.Does.Does == codec.Exception
	t.ends(j, e, e.it.Frame.Failed())
	if c.current == j {
		c.current = nil
	}
	return j
}

// ends records an end of a job. Only the first end counts.
func (t *Tracker) ends(j *job, e *event, failed bool) {
	what := "completed"
	if failed {
		what = "failed"
	}
	j.note(e, what)
	if j.ends++; j.ends > 1 {
		j.stats.Twice++
		t.anomaly(j, "ended %d times", j.ends)
		return
	}
	if j.failed, j.reported = failed, e.it.From == codec.Peer; failed {
		j.stats.Failed++
	} else {
		j.stats.Completed++
	}
	if j.ended = e.it.At; j.assigned != 0 {
		j.stats.Run.add(e.it.At - j.assigned)
	}
	if len(j.waiters) > 0 && !slices.ContainsFunc(j.waiters, func(c *connState) bool { return !c.closed }) {
		j.abandoned = true
		j.stats.Abandoned++
		t.anomaly(j, "ended after the client that waited for its result had disconnected")
	}
}

// reopen removes the recorded end of a job, because the worker that reported the end no longer had the job.
func (j *job) reopen() {
	if j.ends != 1 || j.delivered != 0 {
		return
	}
	j.ends, j.ended, j.exception = 0, 0, false
	if j.failed {
		j.stats.Failed--
	} else {
		j.stats.Completed--
	}
}

// remove handles the deletion of a job. If the worker that has the job deletes it, the job is completed;
// otherwise it is removed from its queue.
func (t *Tracker) remove(e *event) *job {
	j := t.known(e)
	switch {
	case j == nil:
	case j.worker == e.conn && !j.buried && j.requeued == "":
		t.ends(j, e, false)
	case j.ends > 0:
		t.anomaly(j, "deleted more than once")
	default:
		j.stats.Deleted++
		j.ends, j.ended = 1, e.it.At
		j.note(e, "deleted")
	}
	return j
}

// release handles a worker's release of a job, which may then be assigned again after the delay in the message.
func (t *Tracker) release(e *event) *job {
	j := t.known(e)
	if j != nil {
		j.stats.Released++
		j.requeued, j.ready = "the worker released it", e.it.At+int64(e.delay)
		j.note(e, "released")
	}
	return j
}

// bury marks a job as buried. If the message is the reply to a submission, the job is new.
func (t *Tracker) bury(e *event) *job {
	var j *job
	if e.submitted() != nil {
		j = t.accept(e)
	} else {
		j = t.known(e)
	}
	if j != nil {
		j.stats.Buried++
		j.buried, j.requeued = true, ""
		j.note(e, "buried")
	}
	return j
}

// kick handles the kick of a buried or delayed job, which may then be assigned again.
func (t *Tracker) kick(e *event) *job {
	j := t.known(e)
	if j != nil {
		j.buried, j.requeued = false, "the job was kicked"
		j.note(e, "kicked")
	}
	return j
}

// wait records that a client waits for the end of a job.
func (t *Tracker) wait(e *event) *job {
	if e.conn.unnamed { // the reply shows whether the job has ended
		return t.jobs[e.key()]
	}
	j := t.known(e)
	if j != nil {
		j.background = false
		j.waited(e.conn)
	}
	return j
}

// waited adds a client that waits for the end of the job.
func (j *job) waited(c *connState) {
	if len(j.waiters) < maxWaiters {
		j.waiters = append(j.waiters, c)
	}
}

// deliver records that the server reports the end of a job to a client.
func (t *Tracker) deliver(e *event) *job {
	j := t.known(e)
	if e.conn.unnamed {
		j = e.unnamedEnd()
	}
	if j == nil {
		return nil
	}
	if j.ends == 0 && e.Does.Does == codec.Fail { // no worker has reported the failure
		t.ends(j, e, true)
		t.anomaly(j, "failed by the server")
	}
	if j.ended != 0 && j.delivered == 0 {
		j.delivered = e.it.At
		j.stats.Return.add(e.it.At - j.ended)
		j.note(e, "result delivered")
	}
	return j
}

// unnamedEnd returns the job that has ended, if the server does not name it: the job that the client asked for,
// or the first job that the client waits for.
func (e *event) unnamedEnd() (j *job) {
	if e.request.does != nil {
		if j = e.request.job; e.it.Frame.Number(codec.Ended) == 0 {
			return nil
		}
	} else if c := e.conn; len(c.attached) > 0 {
		j, c.attached = c.attached[0], c.attached[1:]
	}
	return j
}

// leave returns the job of a worker to its queue.
func (t *Tracker) leave(e *event) *job {
	j := e.conn.current
	t.requeue(e.conn, "the worker sent "+e.it.Frame.Type.Name)
	return j
}

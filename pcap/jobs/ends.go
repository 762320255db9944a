package jobs

import (
	"slices"

	"jobwire/codec"
)

// complete records that the worker of a job has reported its end.
func (t *Tracker) complete(e *event) *job {
	w, c := t.known(e), e.conn
	c.worker = true
	if w == nil {
		return nil
	}
	if w.exception && e.Does.Does == codec.Fail && w.worker == c { // the worker has already reported this end with an exception
		return w
	}
	if w.worker != nil && w.worker != c && !e.it.Conn.Protocol.Unowned {
		t.anomaly(w, "ended by connection %d, although the server had not assigned it to that connection", c.id)
	}
	w.exception = w.exception || e.Does.Does == codec.Exception
	t.ends(w, e, e.it.Frame.Failed())
	if c.current == w {
		c.current = nil
	}
	return w
}

// ends records an end of a job. Only the first end counts.
func (t *Tracker) ends(w *job, e *event, failed bool) {
	what := "completed"
	if failed {
		what = "failed"
	}
	w.note(e, what)
	if w.ends++; w.ends > 1 {
		w.stats.Twice++
		t.anomaly(w, "ended %d times", w.ends)
		return
	}
	if w.failed, w.reported = failed, e.it.From == codec.Peer; failed {
		w.stats.Failed++
	} else {
		w.stats.Completed++
	}
	if w.ended = e.it.At; w.assigned != 0 {
		w.stats.Run.add(e.it.At - w.assigned)
	}
	if len(w.waiters) > 0 && !slices.ContainsFunc(w.waiters, func(c *connState) bool { return !c.closed }) {
		w.abandoned = true
		w.stats.Abandoned++
		t.anomaly(w, "ended after the client that waited for its result had disconnected")
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
	w := t.known(e)
	switch {
	case w == nil:
	case w.worker == e.conn && !w.buried && w.requeued == "":
		t.ends(w, e, false)
	case w.ends > 0:
		t.anomaly(w, "deleted more than once")
	default:
		w.stats.Deleted++
		w.ends, w.ended = 1, e.it.At
		w.note(e, "deleted")
	}
	return w
}

// release handles a worker's release of a job, which may then be assigned again after the delay in the message.
func (t *Tracker) release(e *event) *job {
	w := t.known(e)
	if w != nil {
		w.stats.Released++
		w.requeued, w.ready = "the worker released it", e.it.At+int64(e.delay)
		w.note(e, "released")
	}
	return w
}

// bury marks a job as buried. If the message is the reply to a submission, the job is new.
func (t *Tracker) bury(e *event) *job {
	var w *job
	if e.submitted() != nil {
		w = t.accept(e)
	} else {
		w = t.known(e)
	}
	if w != nil {
		w.stats.Buried++
		w.buried, w.requeued = true, ""
		w.note(e, "buried")
	}
	return w
}

// kick handles the kick of a buried or delayed job, which may then be assigned again.
func (t *Tracker) kick(e *event) *job {
	w := t.known(e)
	if w != nil {
		w.buried, w.requeued = false, "the job was kicked"
		w.note(e, "kicked")
	}
	return w
}

// wait records that a client waits for the end of a job.
func (t *Tracker) wait(e *event) *job {
	if e.conn.unnamed { // the reply shows whether the job has ended
		return t.jobs[e.key()]
	}
	w := t.known(e)
	if w != nil {
		w.background = false
		w.waited(e.conn)
	}
	return w
}

// waited adds a client that waits for the end of the job.
func (j *job) waited(c *connState) {
	if len(j.waiters) < maxWaiters {
		j.waiters = append(j.waiters, c)
	}
}

// deliver records that the server reports the end of a job to a client.
func (t *Tracker) deliver(e *event) *job {
	w := t.known(e)
	if e.conn.unnamed {
		w = e.unnamedEnd()
	}
	if w == nil {
		return nil
	}
	if w.ends == 0 && e.Does.Does == codec.Fail { // no worker has reported the failure
		t.ends(w, e, true)
		t.anomaly(w, "failed by the server")
	}
	if w.ended != 0 && w.delivered == 0 {
		w.delivered = e.it.At
		w.stats.Return.add(e.it.At - w.ended)
		w.note(e, "result delivered")
	}
	return w
}

// unnamedEnd returns the job that has ended, if the server does not name it: the job that the client asked for,
// or the first job that the client waits for.
func (e *event) unnamedEnd() (w *job) {
	if e.request.does != nil {
		if w = e.request.job; e.it.Frame.Number(codec.Ended) == 0 {
			return nil
		}
	} else if c := e.conn; len(c.attached) > 0 {
		w, c.attached = c.attached[0], c.attached[1:]
	}
	return w
}

// leave returns the job of a worker to its queue.
func (t *Tracker) leave(e *event) *job {
	w := e.conn.current
	t.requeue(e.conn, "the worker sent "+e.it.Frame.Type.Name)
	return w
}

package jobs

import (
	"fmt"
	"hash/maphash"
	"time"

	"jobwire/codec"
)

// effects maps the effects of messages, by the side that sends the message, to functions that update the jobs.
// A function returns the job, or nil if it is unknown. Messages with other effects only refer to a job.
var effects = [2][codec.Published + 1]func(*Tracker, *event) *job{
	codec.Peer: {
		codec.Submit: (*Tracker).submit, codec.Wait: (*Tracker).wait, codec.Release: (*Tracker).release,
		codec.Bury: (*Tracker).bury, codec.Kick: (*Tracker).kick,
		codec.Touch: (*Tracker).touch, codec.Delete: (*Tracker).remove, codec.Data: (*Tracker).known,
		codec.Warning: (*Tracker).known, codec.Status: (*Tracker).known,
		codec.Complete: (*Tracker).complete, codec.Fail: (*Tracker).complete, codec.Exception: (*Tracker).complete,
		codec.Register: (*Tracker).register, codec.Unregister: (*Tracker).unregister, codec.Use: (*Tracker).use,
		codec.Leave: (*Tracker).leave,
	},
	codec.Server: {
		codec.Accept: (*Tracker).accept, codec.Refuse: (*Tracker).refuse, codec.Assign: (*Tracker).assign,
		codec.Bury:     (*Tracker).bury,
		codec.Complete: (*Tracker).deliver, codec.Fail: (*Tracker).deliver, codec.Exception: (*Tracker).deliver,
	},
}

// known returns the job with the ID in a message. If the message contains no ID, known returns the job that the
// worker of the connection has.
func (t *Tracker) known(e *event) *job {
	w := e.conn.current
	if e.id != "" {
		w = t.jobs[e.key()]
	}
	if w != nil {
		w.uncertain = w.uncertain || e.it.Conn.Uncertain
	}
	return w
}

// begin creates a job.
func (t *Tracker) begin(e *event, stats *Stats) *job {
	w := &job{key: e.key(), queue: e.queue, stats: stats, uncertain: e.it.Conn.Uncertain}
	w.timeline = t.timelines.begin(w)
	return w
}

// submit creates a job, unless the message has the ID of a known job, which is then queued again.
func (t *Tracker) submit(e *event) *job {
	if e.queue == "" {
		e.queue = e.conn.queue
	}
	var w *job
	if e.id != "" {
		w = t.known(e)
	}
	f := e.it.Frame
	switch {
	case w == nil:
		w = t.begin(e, t.statsOf(e.queue))
		w.submit(e)
		w.background, w.limit = !f.Attached(), f.Duration(codec.TimeLimit)
		if e.Does.Has(codec.TimeLimit) {
			w.limit = max(w.limit, time.Second)
		}
		if e.id != "" {
			t.remember(w)
		}
		if e.conn.unnamed && t.waiting < maxJobs {
			w.content = t.content(e)
			t.unassigned[w.content] = append(t.unassigned[w.content], w)
			t.waiting++
		}
	case w.submitted == 0: // the assignment was captured before the submission
		w.submit(e)
		if w.assigned != 0 {
			w.stats.Wait.add(w.assigned - w.ready)
		}
	default:
		w.requeued = "the job was queued again"
		w.note(e, "queued again")
	}
	return w
}

// submit records the time of the job's submission, and the time from which the job may be assigned.
func (j *job) submit(e *event) {
	j.stats.Submitted++
	j.submitted = e.it.At
	start := int64(min(e.it.Frame.Number(codec.StartTime), 1<<32)) * int64(time.Second)
	j.ready = max(e.it.At+int64(e.delay), start)
	j.note(e, "submitted")
}

// accept sets the ID of a submitted job.
func (t *Tracker) accept(e *event) *job {
	w := e.submitted()
	if w == nil {
		return t.known(e)
	}
	w.uncertain = w.uncertain || e.it.Conn.Uncertain
	if e.id == "" {
		t.nameless++
		e.id = fmt.Sprintf("%s#%d", w.queue, t.nameless)
	}
	w.key = e.key()
	if !w.background {
		w.waited(e.conn)
		if e.conn.unnamed {
			e.conn.attached = append(e.conn.attached, w)
		}
	}
	old := t.jobs[w.key]
	switch {
	case old != nil && old.submitted == 0: // the assignment was captured before the reply with the ID
		t.merge(old, w)
		w = old
	case old != nil && old.ends == 0: // a job with the same unique ID exists
		w.stats.Coalesced++
		old.background = old.background && w.background
		old.waiters = append(old.waiters, w.waiters...)
		old.pending = append(old.pending, w.pending...)
		w.timeline.drop()
		old.note(e, "coalesced")
		w = old
	default:
		t.remember(w)
		w.timeline.name(w)
		w.note(e, "created")
	}
	return w
}

// submitted returns the job of the submission that a reply answers, if the submission had no ID.
func (e *event) submitted() *job {
	if r := &e.request; r.does != nil && r.does.Does == codec.Submit && r.id == "" {
		return r.job
	}
	return nil
}

// merge combines a job that was first captured at its assignment with its submission.
func (t *Tracker) merge(old, w *job) {
	old.submitted, old.ready, old.background, old.waiters, old.pending = w.submitted, w.ready, w.background, w.waiters,
		w.pending
	if old.limit == 0 {
		old.limit = w.limit
	}
	old.queue = w.queue
	t.settle(old)
	old.stats.Wait.add(old.first - old.ready)
	w.timeline.drop()
	old.timeline.name(old)
}

// settle adds the counts of a job whose queue was unknown to the counts of its queue.
func (t *Tracker) settle(w *job) {
	if w.alone {
		all := t.statsOf(w.queue)
		all.add(w.stats)
		w.stats, w.alone = all, false
	}
}

// refuse handles an error that replies to a submission: the server has not accepted the job. On the connection of a
// worker, the error may be the reply to another request, so the job is uncertain.
func (t *Tracker) refuse(e *event) *job {
	w := e.submitted()
	if w != nil {
		w.stats.Refused++
		w.uncertain = w.uncertain || e.conn.worker // the reply may belong to another request
		w.note(e, "refused")
	}
	return w
}

// assign records that a job was assigned to a worker.
func (t *Tracker) assign(e *event) *job {
	c := e.conn
	w := t.known(e)
	if c.unnamed {
		w = t.likeliest(e)
		if w == nil && c.closed { // the assignment was captured late, and another worker already has the job
			t.statsOf(e.queue).redelivered(workerLeft)
			return nil
		}
	}
	if w == nil {
		w = t.begin(e, &Stats{Because: map[string]int{}})
		w.alone = true
		if c.unnamed {
			t.nameless++
			w.key.id = fmt.Sprintf("%s#%d", w.queue, t.nameless)
		}
		t.remember(w)
		w.timeline.name(w)
	}
	w.uncertain = w.uncertain || e.it.Conn.Uncertain
	// An assignment to a worker that has disconnected may be captured long after the server sent it. By then,
	// another worker may have the job, or the job may have ended.
	if w.assigns++; w.assigns > 1 && c.closed && (!w.worker.closed || w.ends > 0) {
		w.stats.redelivered(workerLeft)
		w.note(e, "assigned before the capture")
		return w
	}
	if w.assigns == 1 {
		w.first = e.it.At
		w.stats.Assigned++
		if w.submitted != 0 {
			w.stats.Wait.add(e.it.At - w.ready)
		}
		w.note(e, "assigned")
	} else {
		why := t.again(w, e)
		w.stats.redelivered(why)
		if w.ends > 0 && why != endedBefore {
			w.reopen()
		}
		if why == noReason || w.ends > 0 {
			t.anomaly(w, "assigned again to connection %d: %s", c.id, why)
		}
		w.note(e, "assigned again: "+why)
	}
	w.assigned, w.worker, w.requeued, w.buried = e.it.At, c, "", false
	if limit := c.limits[w.queue]; limit > 0 {
		w.limit = limit
	}
	if c.unnamed {
		if c.current = w; c.closed {
			t.requeue(c, workerLeft)
		}
	}
	return w
}

// Reasons for assigning a job again.
const (
	noReason    = "unknown reason"
	workerLeft  = "the worker's connection ended"
	gaveUp      = "the worker had removed the function from its list"
	endedBefore = "the job had already ended"
)

// again returns the reason for which a job is assigned again.
func (t *Tracker) again(w *job, e *event) string {
	switch {
	case w.worker != nil && w.worker.unregistered > w.assigned: // the server may then ignore what the worker reports
		return gaveUp
	case w.ends > 0 && w.delivered == 0 && w.reported && w.worker != nil && w.worker.reset: // the server may not have read the report
		return workerLeft
	case w.ends > 0:
		return endedBefore
	case w.requeued != "":
		return w.requeued
	case w.buried:
		return "the job was kicked"
	case w.worker == nil:
		return noReason
	case w.worker.closed:
		return workerLeft
	case w.limit > 0 && e.it.At-max(w.assigned, w.touched) >= int64(w.limit-w.limit/50):
		return "the time limit of the job had passed"
	}
	return noReason
}

// content returns the key by which a job without an ID is identified.
func (t *Tracker) content(e *event) content {
	var h maphash.Hash
	h.SetSeed(t.seed)
	h.WriteString(e.queue)
	h.WriteByte(0)
	h.Write(e.Payload)
	return content{e.it.Conn.Service(), h.Sum64()}
}

// likeliest returns the first job with the same content that is not assigned to a worker.
func (t *Tracker) likeliest(e *event) *job {
	same := t.content(e)
	all := t.unassigned[same]
	if len(all) == 0 {
		return nil
	}
	t.waiting--
	w := all[0]
	w.uncertain = w.uncertain || len(all) > 1 // several jobs have the same content, so this may be another one
	if len(all) == 1 {
		delete(t.unassigned, same)
	} else {
		t.unassigned[same] = all[1:]
	}
	return w
}

// touch restarts the time limit of a job, because its worker asked for more time.
func (t *Tracker) touch(e *event) *job {
	w := t.known(e)
	if w != nil && w.worker == e.conn {
		w.touched = e.it.At
	}
	return w
}

// register records the time limit for the jobs that a worker gets from a queue.
func (t *Tracker) register(e *event) *job {
	c := e.conn
	if !e.Does.Has(codec.TimeLimit) {
		return nil
	}
	if c.worker = true; c.limits == nil {
		c.limits = map[string]time.Duration{}
	}
	if len(c.limits) < maxQueues {
		c.limits[e.queue] = e.it.Frame.Duration(codec.TimeLimit)
	}
	return nil
}

// unregister records when a worker leaves a queue: some servers then take its jobs away.
func (t *Tracker) unregister(e *event) *job {
	e.conn.worker, e.conn.unregistered = true, e.it.At
	return nil
}

func (t *Tracker) use(e *event) *job {
	e.conn.queue = e.queue
	return nil
}

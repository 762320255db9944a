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
	j := e.conn.current
	if e.id != "" {
		j = t.jobs[e.key()]
	}
	if j != nil {
		j.uncertain = j.uncertain || e.it.Conn.Uncertain
	}
	return j
}

// begin creates a job.
func (t *Tracker) begin(e *event, stats *Stats) *job {
	j := &job{key: e.key(), queue: e.queue, stats: stats, uncertain: e.it.Conn.Uncertain}
	j.timeline = t.timelines.begin(j)
	return j
}

// submit creates a job, unless the message has the ID of a known job, which is then queued again.
func (t *Tracker) submit(e *event) *job {
	if e.queue == "" {
		e.queue = e.conn.queue
	}
	var j *job
	if e.id != "" {
		j = t.known(e)
	}
	f := e.it.Frame
	switch {
	case j == nil:
		j = t.begin(e, t.statsOf(e.queue))
		j.submit(e)
		j.background, j.limit = !f.Attached(), f.Duration(codec.TimeLimit)
		if e.Does.Has(codec.TimeLimit) {
			j.limit = max(j.limit, time.Second)
		}
		if e.id != "" {
			t.remember(j)
		}
		if e.conn.unnamed && t.waiting < maxJobs {
			j.content = t.content(e)
			t.unassigned[j.content] = append(t.unassigned[j.content], j)
			t.waiting++
		}
	case j.submitted == 0: // the assignment was captured before the submission
		j.submit(e)
		if j.assigned != 0 {
			j.stats.Wait.add(j.assigned - j.ready)
		}
	default:
		j.requeued = "the job was queued again"
		j.note(e, "queued again")
	}
	return j
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
	j := e.submitted()
	if j == nil {
		return t.known(e)
	}
	j.uncertain = j.uncertain || e.it.Conn.Uncertain
	if e.id == "" {
		t.nameless++
		e.id = fmt.Sprintf("%s#%d", j.queue, t.nameless)
	}
	j.key = e.key()
	if !j.background {
		j.waited(e.conn)
		if e.conn.unnamed {
			e.conn.attached = append(e.conn.attached, j)
		}
	}
	old := t.jobs[j.key]
	switch {
	case old != nil && old.submitted == 0: // the assignment was captured before the reply with the ID
		t.merge(old, j)
		j = old
	case old != nil && old.ends == 0: // a job with the same unique ID exists
		j.stats.Coalesced++
		old.background = old.background && j.background
		old.waiters = append(old.waiters, j.waiters...)
		old.pending = append(old.pending, j.pending...)
		j.timeline.drop()
		old.note(e, "coalesced")
		j = old
	default:
		t.remember(j)
		j.timeline.name(j)
		j.note(e, "created")
	}
	return j
}

// submitted returns the job of the submission that a reply answers, if the submission had no ID.
func (e *event) submitted() *job {
	if r := &e.request; r.does != nil && r.does.Does == codec.Submit && r.id == "" {
		return r.job
	}
	return nil
}

// merge combines a job that was first captured at its assignment with its submission.
func (t *Tracker) merge(old, j *job) {
	old.submitted, old.ready, old.background, old.waiters, old.pending = j.submitted, j.ready, j.background, j.waiters,
		j.pending
	if old.limit == 0 {
		old.limit = j.limit
	}
	old.queue = j.queue
	t.settle(old)
	old.stats.Wait.add(old.first - old.ready)
	j.timeline.drop()
	old.timeline.name(old)
}

// settle adds the counts of a job whose queue was unknown to the counts of its queue.
func (t *Tracker) settle(j *job) {
	if j.alone {
		all := t.statsOf(j.queue)
		all.add(j.stats)
		j.stats, j.alone = all, false
	}
}

// refuse handles an error that replies to a submission: the server has not accepted the job. On the connection of a
// worker, the error may be the reply to another request, so the job is uncertain.
func (t *Tracker) refuse(e *event) *job {
	j := e.submitted()
	if j != nil {
		j.stats.Refused++
		j.uncertain = j.uncertain || e.conn.worker // the reply may belong to another request
		j.note(e, "refused")
	}
	return j
}

// assign records that a job was assigned to a worker.
func (t *Tracker) assign(e *event) *job {
	c := e.conn
	j := t.known(e)
	if c.unnamed {
		j = t.likeliest(e)
		if j == nil && c.closed { // the assignment was captured late, and another worker already has the job
			t.statsOf(e.queue).redelivered(workerLeft)
			return nil
		}
	}
	if j == nil {
		j = t.begin(e, &Stats{Because: map[string]int{}})
		j.alone = true
		if c.unnamed {
			t.nameless++
			j.key.id = fmt.Sprintf("%s#%d", j.queue, t.nameless)
		}
		t.remember(j)
		j.timeline.name(j)
	}
	j.uncertain = j.uncertain || e.it.Conn.Uncertain
	// An assignment to a worker that has disconnected may be captured long after the server sent it. By then,
	// another worker may have the job, or the job may have ended.
	if j.assigns++; j.assigns > 1 && c.closed && (!j.worker.closed || j.ends > 0) {
		j.stats.redelivered(workerLeft)
		j.note(e, "assigned before the capture")
		return j
	}
	if j.assigns == 1 {
		j.first = e.it.At
		j.stats.Assigned++
		if j.submitted != 0 {
			j.stats.Wait.add(e.it.At - j.ready)
		}
		j.note(e, "assigned")
	} else {
		why := t.again(j, e)
		j.stats.redelivered(why)
		if j.ends > 0 && why != endedBefore {
			j.reopen()
		}
		if why == noReason || j.ends > 0 {
			t.anomaly(j, "assigned again to connection %d: %s", c.id, why)
		}
		j.note(e, "assigned again: "+why)
	}
	j.assigned, j.worker, j.requeued, j.buried = e.it.At, c, "", false
	if limit := c.limits[j.queue]; limit > 0 {
		j.limit = limit
	}
	if c.unnamed {
		if c.current = j; c.closed {
			t.requeue(c, workerLeft)
		}
	}
	return j
}

// Reasons for assigning a job again.
const (
	noReason    = "unknown reason"
	workerLeft  = "the worker's connection ended"
	gaveUp      = "the worker had removed the function from its list"
	endedBefore = "the job had already ended"
)

// again returns the reason for which a job is assigned again.
func (t *Tracker) again(j *job, e *event) string {
	switch {
	case j.worker != nil && j.worker.unregistered > j.assigned: // the server may then ignore what the worker reports
		return gaveUp
	case j.ends > 0 && j.delivered == 0 && j.reported && j.worker != nil && j.worker.reset: // the server may not have read the report
		return workerLeft
	case j.ends > 0:
		return endedBefore
	case j.requeued != "":
		return j.requeued
	case j.buried:
		return "the job was kicked"
	case j.worker == nil:
		return noReason
	case j.worker.closed:
		return workerLeft
	case j.limit > 0 && e.it.At-max(j.assigned, j.touched) >= int64(j.limit-j.limit/50):
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
	j := all[0]
	j.uncertain = j.uncertain || len(all) > 1 // several jobs have the same content, so this may be another one
	if len(all) == 1 {
		delete(t.unassigned, same)
	} else {
		t.unassigned[same] = all[1:]
	}
	return j
}

// touch restarts the time limit of a job, because its worker asked for more time.
func (t *Tracker) touch(e *event) *job {
	j := t.known(e)
	if j != nil && j.worker == e.conn {
		j.touched = e.it.At
	}
	return j
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

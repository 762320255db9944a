package gearman

import (
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// Priorities in the order in which jobs are assigned (section "Client Requests").
const (
	high = iota
	normal
	low
)

// submission is the difference between the SUBMIT types.
type submission struct {
	priority   uint8
	background bool
	reduce     bool
	// returns the time of a scheduled job, and false if no such time exists; nil: the job is queued at once
	scheduledTime func(f *codec.Frame, now time.Time) (time.Time, bool)
}

// submit handles the SUBMIT types. The arguments are: function, unique ID, for reduce jobs the reducer and an unused
// argument, for scheduled jobs the time, workload.
//
// It merges the job with an equal job, if there is one. Otherwise it adds a job, and queues it at once or at its time.
func (sub submission) submit(m *machine, p *peer, f *codec.Frame) {
	name, unique, workload := f.Arg(0), f.Arg(1), f.Arg(f.Type.NumArgs()-1)
	var reducer []byte
	if sub.reduce {
		reducer = f.Arg(2)
	}
	size := len(name) + len(unique) + len(reducer) + len(workload)
	if size+gearman.MaxHandle+len("\x00\x00\x00\x00") > p.conn.MaxData() {
		refuse(p, "ARGUMENT_TOO_LARGE", "the job is too large for the packet that would assign it")
		return
	}
	var scheduled time.Time
	if sub.scheduledTime != nil {
		var ok bool
		if scheduled, ok = sub.scheduledTime(f, time.Now()); !ok {
			refuse(p, "NO_SUCH_TIME", "no future time matches the schedule")
			return
		}
	}

	fn := m.functionNamed(name)
	j := m.jobToMerge(fn, unique, workload)
	fresh := j == nil
	if fresh {
		if limit := m.limit(fn, sub.priority); limit > 0 && fn.total >= limit {
			refuse(p, "QUEUE_ERROR", "the function's queue is full")
			m.releaseIfUnused(fn)
			return
		}
		fn.total++
		j = m.add(fn, unique, reducer, workload)
		j.priority, j.reduce = sub.priority, sub.reduce
	}
	j.background = j.background || sub.background
	if !sub.background {
		m.addWaiter(j, p)
	}
	p.conn.Send(jobCreated, m.handle(j))
	switch {
	case !fresh: // the equal job has been queued already, or has a time
	case scheduled.IsZero() || !scheduled.After(time.Now()):
		m.enqueue(j)
	default:
		m.setTimer(j, scheduled)
	}
}

// limit returns the number of jobs of the function, in any state, at which no job of the priority is added. 0 or less:
// unlimited.
func (m *machine) limit(fn *function, priority uint8) int {
	if fn.limits != nil {
		return fn.limits[priority]
	}
	return m.opts.MaxQueue[priority]
}

// addWaiter adds the peer to the clients that wait for the job.
func (m *machine) addWaiter(j *job, p *peer) {
	if j.waiter == 0 {
		j.waiter = p.id
		m.jobs.pushBack(&p.waits, ofWaiter, j.id)
		return
	}
	i, w := m.waits.add()
	w.job, w.peer = j.id, p.id
	m.waits.pushBack(&m.extra(j).waits, ofJob, i)
	m.waits.pushBack(&p.further, ofPeer, i)
}

// waiting iterates over the clients that wait for the job.
func (m *machine) waiting(j *job) func(yield func(*peer) bool) {
	return func(yield func(*peer) bool) {
		if j.waiter != 0 && !yield(*m.peers.at(j.waiter)) || j.extra == 0 {
			return
		}
		for _, w := range m.waits.in(&m.extras.at(j.extra).waits, ofJob) {
			if !yield(*m.peers.at(w.peer)) {
				return
			}
		}
	}
}

// waiters returns the number of clients that wait for the job.
func (m *machine) waiters(j *job) (n int) {
	if j.waiter != 0 {
		n++
	}
	if j.extra != 0 {
		n += int(m.extras.at(j.extra).waits.len)
	}
	return n
}

// waiting reports whether the peer waits for any job.
func (p *peer) waiting() bool { return p.waits.len+p.further.len > 0 }

// forget removes all clients from those that wait for the job.
func (m *machine) forget(j *job) {
	if j.waiter != 0 {
		m.takeWaiter(j).closeIfServed()
	}
	if j.extra != 0 {
		for i := range m.waits.in(&m.extras.at(j.extra).waits, ofJob) {
			m.takeOtherWaiter(i).closeIfServed()
		}
	}
}

// takeWaiter removes the job's waiter and returns it.
func (m *machine) takeWaiter(j *job) *peer {
	p := *m.peers.at(j.waiter)
	m.jobs.unlink(&p.waits, ofWaiter, j.id)
	j.waiter = 0
	return p
}

// takeOtherWaiter removes one of the clients that wait for the job in addition to its first waiter,
// and returns this client.
func (m *machine) takeOtherWaiter(i id) *peer {
	w := *m.waits.at(i)
	p := *m.peers.at(w.peer)
	m.waits.unlink(&m.extra(m.jobs.at(w.job)).waits, ofJob, i)
	m.waits.unlink(&p.further, ofPeer, i)
	m.waits.remove(i)
	return p
}

// closeIfServed closes the connection of a half-closed client that waits for no more jobs.
func (p *peer) closeIfServed() {
	if p.ended && !p.waiting() {
		p.conn.Close()
	}
}

// leave ends all waits of a disconnected client.
func (m *machine) leave(p *peer) {
	for _, j := range m.jobs.in(&p.waits, ofWaiter) {
		m.takeWaiter(j)
		m.drop(j)
	}
	for i, w := range m.waits.in(&p.further, ofPeer) {
		j := m.jobs.at(w.job)
		m.takeOtherWaiter(i)
		m.drop(j)
	}
}

// drop removes a job if its result is unwanted and it is not running.
func (m *machine) drop(j *job) {
	if m.unwanted(j) && j.worker == 0 {
		m.end(j)
	}
}

// unwanted reports whether the job is not a background job and no client waits for it.
func (m *machine) unwanted(j *job) bool { return !j.background && m.waiters(j) == 0 }

// enqueue adds the job to the end of its queue and wakes workers.
func (m *machine) enqueue(j *job) {
	fn := m.function(j)
	j.queued = true
	m.jobs.pushBack(&fn.queue[j.priority], inTurn, j.id)
	m.wake(fn, j.priority)
}

// assign moves a job from its queue to a worker.
func (m *machine) assign(j *job, fn *function, p *peer) {
	m.jobs.unlink(&fn.queue[j.priority], inTurn, j.id)
	m.jobs.pushBack(&p.work, inTurn, j.id)
	j.queued, j.worker = false, p.id
	fn.running++
}

// withdraw removes the job from its queue or its worker, and stops its timer.
func (m *machine) withdraw(j *job, fn *function) {
	m.stopTimer(j)
	switch {
	case j.queued:
		m.jobs.unlink(&fn.queue[j.priority], inTurn, j.id)
		j.queued = false
	case j.worker != 0:
		m.jobs.unlink(&m.worker(j).work, inTurn, j.id)
		j.worker = 0
		fn.running--
	}
}

// requeue takes a job from a worker that has disconnected, and puts it at the front of its queue with the same handle.
// It fails the job if Options.Retries workers have been lost, and removes it if no client waits for it.
func (m *machine) requeue(j *job) {
	fn := m.function(j)
	m.withdraw(j, fn)
	x := m.extra(j)
	x.lost++
	x.numerator, x.denom = 0, 0
	switch {
	case m.unwanted(j):
		m.end(j)
	case m.opts.Retries > 0 && x.lost >= m.opts.Retries:
		m.fail(j)
	default:
		j.queued = true
		m.jobs.pushFront(&fn.queue[j.priority], inTurn, j.id)
		m.wake(fn, j.priority)
	}
}

// fail removes the job and sends WORK_FAIL to the clients that wait for it.
func (m *machine) fail(j *job) {
	for p := range m.waiting(j) {
		p.conn.Send(workFail, m.handle(j))
	}
	m.end(j)
}

// end removes the job, in any state.
func (m *machine) end(j *job) {
	fn := m.function(j)
	m.withdraw(j, fn)
	m.forget(j)
	m.remove(j)
	fn.total--
	m.releaseIfUnused(fn)
}

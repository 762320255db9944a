package beanstalk

import (
	"bytes"
	"time"
)

// state is the state of a job ("Job Lifecycle").
type state uint8

const (
	ready state = iota
	delayed
	buried
	reserved
)

var stateNames = [...]string{"ready", "delayed", "buried", "reserved"}

// urgent is the priority below which jobs are counted as urgent ("Other Commands", stats).
const urgent = 1024

// job is one job from its put to its end. It is always in exactly one heap, that of its state, ordered by the
// key of that state.
type job struct {
	id      uint64
	tube    *tube
	owner   *peer // the peer that has reserved it, or nil
	body    []byte
	created int64 // on the machine's clock

	priority   uint32
	delay, ttr uint32 // seconds
	place      uint32 // index in its heap
	state      state

	reserves, timeouts, releases, buries, kicks uint32
}

func (j *job) moved(place int) { j.place = uint32(place) }

// heap returns the heap that contains the job. Ready jobs are ordered by priority, delayed and reserved jobs by
// the time at which that state ends, and buried jobs by the order in which they were buried.
func (j *job) heap() *heap[*job] {
	if j.state == reserved {
		return &j.owner.reserved
	}
	return &j.tube.jobs[j.state]
}

// readyAt returns the time at which a delayed or reserved job becomes ready again.
func (j *job) readyAt() int64 { return j.heap().at(int(j.place)).key }

// seconds converts seconds to nanoseconds.
func seconds(n uint32) int64 { return int64(n) * int64(time.Second) }

// tally counts jobs by state.
type tally struct {
	in     [len(stateNames)]int
	urgent int // number of ready jobs that are urgent
	total  int // number of all jobs that were put
}

func (t *tally) add(j *job, n int) {
	t.in[j.state] += n
	if j.state == ready && j.priority < urgent {
		t.urgent += n
	}
}

// newJob creates a job without a state.
func (m *Machine) newJob(t *tube, body []byte) *job {
	j := m.jobs.add()
	j.tube, j.body, j.created = t, bytes.Clone(body), m.now()
	t.total++
	m.total++
	return j
}

// setState sets the state of a job that has no state.
func (m *Machine) setState(j *job, s state, key int64) {
	j.state = s
	j.heap().add(key, j.id, j)
	j.tube.add(j, 1)
	m.add(j, 1)
}

// leave removes the job from its state.
func (m *Machine) leave(j *job) {
	j.tube.add(j, -1)
	m.add(j, -1)
	j.heap().remove(int(j.place))
	j.owner = nil
}

// end deletes a job in any state.
func (m *Machine) end(j *job) {
	m.leave(j)
	t := j.tube
	m.jobs.remove(j)
	m.releaseIfUnused(t)
}

// queue makes a job without a state ready. serveWaiting assigns it later, after all simultaneous changes.
func (m *Machine) queue(j *job) {
	m.setState(j, ready, int64(j.priority))
	m.markSupplied(j.tube)
}

// delayOrReady makes a job ready after its delay, or at once if it has none.
func (m *Machine) delayOrReady(j *job) {
	if j.delay == 0 {
		m.queue(j)
		return
	}
	readyAt := m.now() + seconds(j.delay)
	m.setState(j, delayed, readyAt)
	m.setTimer(j.tube, readyAt)
}

// bury buries a job without a state.
func (m *Machine) bury(j *job) {
	j.buries++
	m.burials++
	m.setState(j, buried, m.burials)
}

// reserve reserves a job for a peer.
func (m *Machine) reserve(p *peer, j *job) {
	m.leave(j)
	j.owner = p
	j.reserves++
	expires := m.now() + seconds(j.ttr)
	m.setState(j, reserved, expires)
	m.setTimer(p, p.nextEvent())
	p.conn.Send(reservedReply, m.decimal(j.id), j.body)
}

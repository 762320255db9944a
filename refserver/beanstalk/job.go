package beanstalk

import (
	"bytes"
	"time"
)

// state is a job's ("Job Lifecycle").
type state uint8

const (
	ready state = iota
	delayed
	buried
	reserved
)

var stateNames = [...]string{"ready", "delayed", "buried", "reserved"}

// urgent jobs are counted apart: those with a priority below it ("Other
// Commands", stats).
const urgent = 1024

// job is one job from its put to its end. It always stands in exactly one heap,
// the one of its state, by the key that belongs to that state.
type job struct {
	id      uint64
	tube    *tube
	owner   *peer // who has reserved it, or nil
	body    []byte
	created int64 // on the machine's clock

	priority   uint32
	delay, ttr uint32 // seconds
	place      uint32 // in its heap
	state      state

	reserves, timeouts, releases, buries, kicks uint32
}

func (j *job) moved(place int) { j.place = uint32(place) }

// heap returns the one that the job stands in: ready jobs by their priority,
// delayed and reserved ones by the time at which that ends, buried ones as they
// were buried.
func (j *job) heap() *heap[*job] {
	if j.state == reserved {
		return &j.owner.reserved
	}
	return &j.tube.jobs[j.state]
}

// due is when a delayed or reserved job becomes ready again.
func (j *job) due() int64 { return j.heap().at(int(j.place)).key }

// seconds turns what the protocol counts time in into what the machine does.
func seconds(n uint32) int64 { return int64(n) * int64(time.Second) }

// tally counts jobs by their state.
type tally struct {
	in     [len(stateNames)]int
	urgent int // of those that are ready
	total  int // ever
}

func (t *tally) add(j *job, n int) {
	t.in[j.state] += n
	if j.state == ready && j.priority < urgent {
		t.urgent += n
	}
}

// newJob makes a job that is in no state yet.
func (m *Machine) newJob(t *tube, body []byte) *job {
	j := m.jobs.add()
	j.tube, j.body, j.created = t, bytes.Clone(body), m.now()
	t.total++
	m.total++
	return j
}

// enter puts a job that is in no state into one.
func (m *Machine) enter(j *job, s state, key int64) {
	j.state = s
	j.heap().add(key, j.id, j)
	j.tube.add(j, 1)
	m.add(j, 1)
}

// leave takes the job out of its state.
func (m *Machine) leave(j *job) {
	j.tube.add(j, -1)
	m.add(j, -1)
	j.heap().remove(int(j.place))
	j.owner = nil
}

// end forgets a job, whatever its state.
func (m *Machine) end(j *job) {
	m.leave(j)
	t := j.tube
	m.jobs.remove(j)
	m.release(t)
}

// queue makes a job ready that is in no state. Who gets it is found out when all
// is done that happens at the same time.
func (m *Machine) queue(j *job) {
	m.enter(j, ready, int64(j.priority))
	m.supply(j.tube)
}

// postpone makes a job ready behind its delay, or at once if it has none.
func (m *Machine) postpone(j *job) {
	if j.delay == 0 {
		m.queue(j)
		return
	}
	due := m.now() + seconds(j.delay)
	m.enter(j, delayed, due)
	m.wake(j.tube, due)
}

// bury makes a job buried that is in no state.
func (m *Machine) bury(j *job) {
	j.buries++
	m.burials++
	m.enter(j, buried, m.burials)
}

// grant reserves a job for a peer.
func (m *Machine) grant(p *peer, j *job) {
	m.leave(j)
	j.owner = p
	j.reserves++
	due := m.now() + seconds(j.ttr)
	m.enter(j, reserved, due)
	m.wake(p, p.alarm())
	p.conn.Send(reservedReply, m.decimal(j.id), j.body)
}

package beanstalk

import (
	"math"
	"time"

	"jobwire/refserver"
)

// margin is the time before the deadline of a reserved job during which its worker cannot wait for another job
// ("Worker Commands", reserve).
const margin = int64(time.Second)

// never is later than every time that the server reaches.
const never = math.MaxInt64

// peer is one connection: a producer, a worker or both.
type peer struct {
	conn     *refserver.Conn
	tube     *tube    // the tube that it uses
	watches  []*watch // in the order in which it began to watch the tubes
	reserved heap[*job]
	timerIndex

	producer, worker bool // the peer has sent a put; the peer has sent a reserve
	ended            bool // the peer has half-closed the connection, so the server must not let it wait
	waiting          bool // for a job
	until            int64
}

// produces records that the peer has sent a put.
func (m *Machine) produces(p *peer) {
	if !p.producer {
		p.producer = true
		m.producers++
	}
}

// markWorker records that the peer has sent a reserve.
func (m *Machine) markWorker(p *peer) {
	if !p.worker {
		p.worker = true
		m.workers++
	}
}

// pick returns the job that a reserve gets: of all tubes that the peer watches, the ready job with the smallest
// priority; among equal priorities, the job that was put first.
func (p *peer) pick() *job {
	var best *entry[*job]
	for _, w := range p.watches {
		if e := w.tube.next(); e != nil && (best == nil || e.before(best)) {
			best = e
		}
	}
	if best == nil {
		return nil
	}
	return best.item
}

// await replies to a reserve, after at most limit nanoseconds.
func (m *Machine) await(p *peer, limit int64) {
	if p.waiting {
		return // only a fault can send a second reserve before the reply to the first
	}
	m.markWorker(p)
	now := m.now()
	if j := p.pick(); j != nil {
		m.reserve(p, j)
		return
	}
	p.until = never
	if limit < never-now {
		p.until = now + limit
	}
	switch {
	case p.deadlineSoon(now):
		p.conn.Send(deadlineSoon)
	case p.until <= now || p.ended:
		p.conn.Send(timedOut)
	default:
		p.waiting = true
		m.waiting++
		m.arrivals++
		for _, w := range p.watches {
			w.tube.waiters.add(m.arrivals, 0, w)
		}
		p.conn.Pause()
		m.setTimer(p, p.nextEvent())
	}
}

// stopWaiting ends a peer's wait without a reply.
func (m *Machine) stopWaiting(p *peer) {
	p.waiting = false
	m.waiting--
	for _, w := range p.watches {
		w.tube.waiters.remove(w.place)
	}
	p.conn.Resume()
}

// deadlineSoon reports whether one of the peer's jobs is in its safety margin.
func (p *peer) deadlineSoon(now int64) bool {
	e := p.reserved.first()
	return e != nil && e.key-margin <= now
}

// nextEvent returns the time of the peer's next timer event.
func (p *peer) nextEvent() int64 {
	at := int64(never)
	if p.waiting {
		at = p.until
	}
	if e := p.reserved.first(); e != nil && p.waiting {
		at = min(at, e.key-margin)
	} else if e != nil {
		at = e.key
	}
	return at
}

// handleEvents handles the peer's timer events: the end of a wait, and reserved jobs whose time to run has passed.
func (p *peer) handleEvents(m *Machine, now int64) {
	if soon := p.deadlineSoon(now); p.waiting && (soon || p.until <= now) {
		m.stopWaiting(p)
		if soon {
			p.conn.Send(deadlineSoon)
		} else {
			p.conn.Send(timedOut)
		}
	}
	for e := p.reserved.first(); e != nil && e.key <= now; e = p.reserved.first() {
		j := e.item
		m.leave(j)
		j.timeouts++
		m.timeouts++
		m.queue(j)
	}
}

package gearman

import (
	"time"

	"jobwire/refserver/internal/list"
)

// ability is the registration of a function by a worker.
type ability struct {
	peer    *peer
	fn      *function
	order   uint64        // number of the registration; counts up for each worker
	timeout time.Duration // of CAN_DO_TIMEOUT; 0: none
	ofPeer  list.Element[ability]
	ofFn    list.Element[ability]
	entries [3]readyEntry // by job priority
}

// readyEntry connects a worker with the queue of one function and priority. An entry is ready or idle. It is ready if
// the queue may have jobs; it is then in peer.ready. Otherwise it is idle, and in function.idle. An idle entry becomes
// ready when a job is queued. A ready entry becomes idle when the worker asks for a job and the queue is empty. So
// GRAB_JOB need not search all functions of a worker, and a queued job affects a busy worker only once.
//
// While a queue has jobs, all entries for it are ready. While a worker sleeps, all its entries are idle, except those
// for which the limit Options.Wakeups prevented a wakeup.
type readyEntry struct {
	*ability
	at   int                      // index in the heap peer.ready plus 1; 0 while the entry is idle
	link list.Element[readyEntry] // in fn.idle or in fn.passed
}

// Entries are ordered by registration: a worker gets jobs of the function that it registered first.

func (r *readyEntry) before(o *readyEntry) bool { return r.order < o.order }
func (r *readyEntry) heapIndex() *int           { return &r.at }

// addAbility registers a function for a worker, which must not have registered it.
func (p *peer) addAbility(fn *function) *ability {
	p.lastOrder++
	a := &ability{peer: p, fn: fn, order: p.lastOrder}
	a.ofPeer.Item, a.ofFn.Item = a, a
	if p.abilityOf == nil {
		p.abilityOf = map[*function]*ability{}
	}
	p.abilityOf[fn] = a
	p.abilities.PushBack(&a.ofPeer)
	fn.abilities.PushBack(&a.ofFn)
	for priority := range a.entries {
		l := &a.entries[priority]
		l.ability, l.link.Item = a, l
		if fn.queue[priority].len > 0 {
			p.ready[priority].add(l)
		} else {
			fn.idle[priority].PushBack(&l.link)
		}
	}
	return a
}

// removeAbility removes a registration. Jobs that are already running are not affected.
func (m *machine) removeAbility(a *ability) {
	delete(a.peer.abilityOf, a.fn)
	a.ofPeer.Remove()
	a.ofFn.Remove()
	for priority := range a.entries {
		l := &a.entries[priority]
		l.link.Remove()
		a.peer.ready[priority].remove(l)
	}
	if m.opts.Wakeups > 0 {
		m.wakeNext(a.fn) // the worker that was woken for a job may be this one
	}
	m.releaseIfUnused(a.fn)
}

// reset removes all registrations of a worker.
func (m *machine) reset(p *peer) {
	for a := range p.abilities.All {
		m.removeAbility(a)
	}
}

// wake makes the leads of all workers to a queue that has got a job ready, and wakes those workers that are sleeping,
// at most Options.Wakeups of them. Workers that were not woken for earlier jobs because of that limit come first.
func (m *machine) wake(fn *function, priority uint8) {
	left := m.opts.Wakeups
	allowed := func(p *peer) bool {
		if p.sleeping && (left > 0 || m.opts.Wakeups == 0) {
			left--
			p.wake()
		}
		return !p.sleeping
	}
	passed := &fn.passed[priority]
	for l := range passed.All {
		if !allowed(l.peer) {
			break
		}
		l.link.Remove()
	}
	for l := range fn.idle[priority].All {
		l.link.Remove()
		l.peer.ready[priority].add(l)
		if !allowed(l.peer) {
			passed.PushBack(&l.link)
		}
	}
}

// wakeNext wakes workers for the queued jobs of the function with the highest priority, if it has queued jobs.
func (m *machine) wakeNext(fn *function) {
	for priority := range fn.queue {
		if fn.queue[priority].len > 0 {
			m.wake(fn, uint8(priority))
			return
		}
	}
}

// wake wakes a sleeping worker with a NOOP. The worker gets no more of them until it sleeps again.
func (p *peer) wake() {
	p.sleeping = false
	p.conn.Send(noop)
}

// pick returns the job that the worker gets next: of its functions' jobs of the highest priority, the oldest one of the
// function that it registered first. It returns nil if there is none.
func (m *machine) pick(p *peer) (*ability, *job) {
	for priority := range p.ready {
		ready := &p.ready[priority]
		for len(*ready) > 0 {
			l := (*ready)[0]
			if first := l.fn.queue[priority].first; first != 0 {
				return l.ability, m.jobs.at(first)
			}
			// Other workers have taken the jobs.
			ready.remove(l)
			l.link.Remove()
			l.fn.idle[priority].PushBack(&l.link)
		}
	}
	return nil, nil
}

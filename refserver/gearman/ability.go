package gearman

import (
	"time"

	"jobwire/refserver/internal/list"
)

// ability is a worker's registration for a function.
type ability struct {
	peer    *peer
	fn      *function
	order   uint64        // of registration
	timeout time.Duration // 0 is none
	ofPeer  list.Place[ability]
	ofFn    list.Place[ability]
	leads   [3]lead // by priority
}

// lead is what a worker knows of a function's jobs of one priority. It is ready
// if there may be some, else idle. It becomes ready with the first job, and idle
// when the worker looks there in vain, so that nobody ever looks through all
// that a worker can do, and a worker that is busy is told but once.
//
// While there are jobs, the lead is ready with every worker that has it. While
// a worker sleeps, all its leads are idle, but for those that Options.Wakeups
// kept from waking it.
type lead struct {
	*ability
	at   int              // its place in peer.ready; 0 while it is idle
	link list.Place[lead] // in fn.idle, or in fn.passed
}

// Jobs are looked for in the order in which the worker registered the functions.

func (l *lead) before(o *lead) bool { return l.order < o.order }
func (l *lead) place() *int         { return &l.at }

// newAbility registers a function for a worker.
func (p *peer) newAbility(fn *function) *ability {
	p.lastOrder++
	a := &ability{peer: p, fn: fn, order: p.lastOrder}
	a.ofPeer.Item, a.ofFn.Item = a, a
	if p.able == nil {
		p.able = map[*function]*ability{}
	}
	p.able[fn] = a
	p.abilities.PushBack(&a.ofPeer)
	fn.abilities.PushBack(&a.ofFn)
	for priority := range a.leads {
		l := &a.leads[priority]
		l.ability, l.link.Item = a, l
		if fn.queue[priority].len > 0 {
			p.ready[priority].add(l)
		} else {
			fn.idle[priority].PushBack(&l.link)
		}
	}
	return a
}

// unable ends a registration. Jobs that run already go on.
func (m *machine) unable(a *ability) {
	delete(a.peer.able, a.fn)
	a.ofPeer.Remove()
	a.ofFn.Remove()
	for priority := range a.leads {
		l := &a.leads[priority]
		l.link.Remove()
		a.peer.ready[priority].remove(l)
	}
	if m.opts.Wakeups > 0 {
		m.wakeNext(a.fn) // the one that was woken may have been this one
	}
	m.release(a.fn)
}

// reset ends all of a worker's registrations.
func (m *machine) reset(p *peer) {
	for a := range p.abilities.All {
		m.unable(a)
	}
}

// wake tells all workers that can do the function of a job of that priority,
// and wakes those of them that sleep, or as many as Wakeups allows. Those that
// were passed over before come first.
func (m *machine) wake(fn *function, priority uint8) {
	left := m.opts.Wakeups
	allowed := func(p *peer) bool {
		if p.sleeping && (left > 0 || m.opts.Wakeups == 0) {
			left--
			p.rouse()
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

// wakeNext wakes workers that were passed over for a job of the function that
// is still there.
func (m *machine) wakeNext(fn *function) {
	for priority := range fn.queue {
		if fn.queue[priority].len > 0 {
			m.wake(fn, uint8(priority))
			return
		}
	}
}

// rouse wakes a worker with a NOOP. It gets no other before it sleeps again.
func (p *peer) rouse() {
	p.sleeping = false
	p.conn.Send(noop)
}

// pick finds the job that a worker gets: the oldest of the highest priority, of
// the function among those that it registered first.
func (m *machine) pick(p *peer) (*ability, *job) {
	for priority := range p.ready {
		ready := &p.ready[priority]
		for len(*ready) > 0 {
			l := (*ready)[0]
			if first := l.fn.queue[priority].first; first != 0 {
				return l.ability, m.jobs.at(first)
			}
			// Others took them.
			ready.remove(l)
			l.link.Remove()
			l.fn.idle[priority].PushBack(&l.link)
		}
	}
	return nil, nil
}

package danga

import (
	"jobwire/codec"
	"jobwire/refserver/internal/list"
)

// ability is one entry in a worker's list of names. A name that is listed twice has two abilities.
type ability struct {
	peer           *peer
	task           *task
	sleeperElement list.Element[ability] // in task.sleepers
}

// setAbilities replaces a worker's list by the names in a worker_connect.
func (m *machine) setAbilities(p *peer, f *codec.Frame) {
	n := 0
	for f.Arg(n) != nil {
		n++
	}
	able := make([]ability, n)
	for i := range able {
		a := &able[i]
		a.peer, a.task, a.sleeperElement.Item = p, m.task(f.Arg(i)), a
		a.task.workers++
	}
	m.removeAbilities(p) // after the new ones are added, so that a task in both lists is not deleted
	p.able = able
}

// removeAbilities removes all abilities of the worker. The worker keeps its job.
func (m *machine) removeAbilities(p *peer) {
	p.endSleep()
	for i := range p.able {
		t := p.able[i].task
		t.workers--
		m.releaseIfUnused(t)
	}
	p.able = nil
}

// pick returns the job that a worker gets: the oldest that it can do.
func (p *peer) pick() *job {
	var oldest *job
	for i := range p.able {
		if first := p.able[i].task.queue.First(); first != nil && (oldest == nil || first.number < oldest.number) {
			oldest = first
		}
	}
	return oldest
}

// sleep marks the worker as asleep. If there is a job for it, sleep sends a noop instead: the job may have
// been created after the worker's last job_assign_req.
func (p *peer) sleep() {
	p.endSleep()
	if p.pick() != nil {
		p.conn.Send(noop)
		return
	}
	p.asleep = true
	for i := range p.able {
		a := &p.able[i]
		a.task.sleepers.PushBack(&a.sleeperElement)
	}
}

// endSleep ends the worker's sleep without sending a message.
func (p *peer) endSleep() {
	if !p.asleep {
		return
	}
	p.asleep = false
	for i := range p.able {
		p.able[i].sleeperElement.Remove()
	}
}

// wake wakes every sleeping worker that can do the task.
func (m *machine) wake(t *task) {
	for t.sleepers.First() != nil {
		p := t.sleepers.First().peer
		p.endSleep() // this also removes it from t.sleepers
		p.conn.Send(noop)
	}
}

package danga

import (
	"jobwire/codec"
	"jobwire/refserver/internal/list"
)

// ability is a name in a worker's list. A name that stands there twice has two.
type ability struct {
	peer   *peer
	task   *task
	asleep list.Place[ability] // in task.sleepers
}

// learn makes the names of a worker_connect all that the worker can do.
func (m *machine) learn(p *peer, f *codec.Frame) {
	n := 0
	for f.Arg(n) != nil {
		n++
	}
	able := make([]ability, n)
	for i := range able {
		a := &able[i]
		a.peer, a.task, a.asleep.Item = p, m.task(f.Arg(i)), a
		a.task.workers++
	}
	m.unlearn(p) // behind the new ones, so that a task in both lists lives on
	p.able = able
}

// unlearn takes all abilities from the worker. A job that it has stays with it.
func (m *machine) unlearn(p *peer) {
	p.rise()
	for i := range p.able {
		t := p.able[i].task
		t.workers--
		m.release(t)
	}
	p.able = nil
}

// pick finds the job that a worker gets: the oldest that it can do.
func (p *peer) pick() *job {
	var oldest *job
	for i := range p.able {
		if first := p.able[i].task.queue.First(); first != nil && (oldest == nil || first.number < oldest.number) {
			oldest = first
		}
	}
	return oldest
}

// lieDown puts the worker to sleep, or wakes it at once if there is something to
// do: the job may have come between its last job_assign_req and this.
func (p *peer) lieDown() {
	p.rise()
	if p.pick() != nil {
		p.conn.Send(noop)
		return
	}
	p.asleep = true
	for i := range p.able {
		a := &p.able[i]
		a.task.sleepers.PushBack(&a.asleep)
	}
}

// rise ends the worker's sleep without a word.
func (p *peer) rise() {
	if !p.asleep {
		return
	}
	p.asleep = false
	for i := range p.able {
		p.able[i].asleep.Remove()
	}
}

// wake wakes every sleeping worker that can do the task.
func (m *machine) wake(t *task) {
	for t.sleepers.First() != nil {
		p := t.sleepers.First().peer
		p.rise() // which takes it out of this list, too
		p.conn.Send(noop)
	}
}

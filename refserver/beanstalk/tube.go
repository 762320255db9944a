package beanstalk

// tube is a named set of queues. It is deleted when nothing refers to it any more ("Job Lifecycle").
type tube struct {
	name   []byte
	number uint64 // in the order of creation
	tally
	jobs    [reserved]heap[*job] // by state, except reserved jobs
	waiters heap[*watch]         // waiting peers, in the order in which they started to wait

	using, watching int // number of peers
	deletes, pauses int // number of commands

	pause   uint32 // seconds; 0 while it is not paused
	resumes int64  // time at which the pause ends
	timerIndex
}

// watch is an entry in a peer's watch list.
type watch struct {
	peer  *peer
	tube  *tube
	place int // index in the tube's waiters
}

func (w *watch) moved(place int) { w.place = place }

// tube returns the tube with the name, and creates it if necessary.
func (m *Machine) tube(name []byte) *tube {
	t := m.tubes[string(name)]
	if t == nil {
		m.lastTube++
		t = &tube{name: append([]byte(nil), name...), number: m.lastTube}
		m.tubes[string(name)] = t
	}
	return t
}

// releaseIfUnused deletes the tube if nothing refers to it. The tube named default is never deleted.
func (m *Machine) releaseIfUnused(t *tube) {
	if t.using > 0 || t.watching > 0 || t.in != [len(stateNames)]int{} || t == m.defaultTube {
		return
	}
	delete(m.tubes, string(t.name))
	m.stopTimer(t)
}

// use selects the tube that a peer puts jobs into.
func (m *Machine) use(p *peer, t *tube) {
	old := p.tube
	t.using++
	p.tube = t
	if old != nil {
		old.using--
		m.releaseIfUnused(old)
	}
}

// watching returns the index of a tube in the peer's watch list, or -1.
func (p *peer) watching(t *tube) int {
	for i, w := range p.watches {
		if w.tube == t {
			return i
		}
	}
	return -1
}

func (m *Machine) watch(p *peer, t *tube) {
	if p.watching(t) < 0 {
		t.watching++
		p.watches = append(p.watches, &watch{peer: p, tube: t})
	}
}

// unwatch removes the i-th tube from the peer's watch list.
func (m *Machine) unwatch(p *peer, i int) {
	t := p.watches[i].tube
	p.watches = append(p.watches[:i], p.watches[i+1:]...)
	t.watching--
	m.releaseIfUnused(t)
}

// next returns the job that is reserved next, or nil.
func (t *tube) next() *entry[*job] {
	if t.pause > 0 {
		return nil
	}
	return t.jobs[ready].first()
}

// nextEvent returns the time of the tube's next timer event.
func (t *tube) nextEvent() int64 {
	at := int64(never)
	if t.pause > 0 {
		at = t.resumes
	}
	if e := t.jobs[delayed].first(); e != nil {
		at = min(at, e.key)
	}
	return at
}

// handleEvents handles the tube's timer events: the ends of delays and of a pause.
func (t *tube) handleEvents(m *Machine, now int64) {
	if t.pause > 0 && t.resumes <= now {
		t.pause = 0
		m.markSupplied(t)
	}
	for e := t.jobs[delayed].first(); e != nil && e.key <= now; e = t.jobs[delayed].first() {
		j := e.item
		m.leave(j)
		m.queue(j)
	}
}

// markSupplied records that the tube may have a job for peers that wait.
func (m *Machine) markSupplied(t *tube) {
	if n := len(m.supplied); n == 0 || m.supplied[n-1] != t {
		m.supplied = append(m.supplied, t)
	}
}

// serveWaiting assigns ready jobs to peers that wait, in the order in which they started to wait. A peer that watches
// several tubes gets its best job, which may be in another of these tubes.
func (m *Machine) serveWaiting() {
	for _, t := range m.supplied {
		for t.next() != nil && t.waiters.len > 0 {
			p := t.waiters.first().item.peer
			j := p.pick()
			m.stopWaiting(p)
			m.reserve(p, j)
		}
	}
	clear(m.supplied)
	m.supplied = m.supplied[:0]
}

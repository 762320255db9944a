package loadgen

import "time"

// submitter is what a client does besides speaking: it starts jobs, and takes note of their
// ends.
type submitter struct {
	client  client
	pool    *pool
	payload []byte
	started int64
	fresh   int64 // jobs ended since the last record
}

// fill starts as many jobs as the window allows.
func (c *conn) fill() {
	if c.run.cfg.Rate != nil {
		return
	}
	for range c.run.cfg.Window {
		if !c.next() {
			return
		}
	}
}

// next starts a job of a closed loop, if there are any left.
func (c *conn) next() bool { return len(c.pool.free) > 0 && c.run.claim() && c.start(c.now) }

// refill goes on with a closed loop. Jobs start once half of the window is free: those that go
// together take one write at either end. Of a standing queue each acknowledgement has one follow.
func (c *conn) refill() {
	if c.run.scenario.Standing {
		c.next()
	} else if 2*c.pool.owed() <= c.run.cfg.Window {
		c.fill()
	}
}

// start submits a job that is due at that time. It fails if too many are under way.
func (c *conn) start(due int64) bool {
	b := c.submitter
	if c.closed {
		return false
	}
	s, number := b.pool.get()
	if s == nil {
		return false
	}
	b.started++
	s.start = due
	cfg := &c.run.cfg
	size := cfg.Size.Lo
	if cfg.Size.Hi > size {
		size = cfg.Size.draw(c.rand)
	}
	s.size = uint32(size)
	if cfg.Functions > 1 {
		s.function = uint16(b.started % int64(cfg.Functions))
	}
	if c.run.scenario.Mixed {
		s.priority = uint8(c.rand.IntN(priorities))
	}
	s.number.Store(number)
	b.payload = appendPayload(b.payload[:0], number, size)
	b.client.submit(s, b.payload)
	return true
}

// acknowledge notes that the server has taken a job.
func (c *conn) acknowledge(s *slot) {
	s.created, s.acked = c.now, true
	if h := c.run.history; h != nil {
		h.add(c, false, s.number.Load(), s.start)
	}
	sc := c.run.scenario
	if sc.Standing {
		c.sample(stageCreated, s.created-s.start)
		if sc.Filling {
			c.sample(stageTotal, s.created-s.start)
		}
		c.fresh++
		c.refill()
	}
	if sc.Until == atAck || s.over {
		c.finish(s)
	}
}

// over notes that a job has ended. Until its acknowledgement has come it is still owed that.
func (c *conn) over(s *slot) {
	if s.acked {
		c.finish(s)
	} else {
		s.over = true
	}
}

// finish ends a job and, in a closed loop, starts the next.
func (c *conn) finish(s *slot) {
	sc := c.run.scenario
	if !sc.Standing {
		c.sample(stageCreated, s.created-s.start)
	}
	if s.ran.Load() == s.number.Load() {
		taken := s.taken.Load()
		c.sample(stageQueued, taken-s.created)
		c.sample(stageRun, c.now-taken)
	}
	c.sample(stageTotal, c.now-s.start)
	c.pool.put(s)
	c.fresh++
	if sc.Standing || c.run.cfg.Rate != nil {
		return
	}
	if d := c.run.cfg.Think; d > 0 {
		c.later(d, func() { c.next() })
	} else {
		c.refill()
	}
}

// refuse ends a job that the server would not take.
func (c *conn) refuse(s *slot) {
	c.pool.put(s)
	c.fresh++
	if c.run.cfg.Rate == nil {
		c.refill()
	}
}

func (c *conn) sample(st stage, ns int64) { c.samples[st] = append(c.samples[st], ns) }

// later has something done behind a pause, as if a message had come.
func (c *conn) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		c.now = c.run.clock()
		if !c.closed {
			do()
			c.flush()
			c.run.record(c)
		}
		told := c.takeTold()
		c.mu.Unlock()
		tellAll(told, c.run.clock())
	})
}

package loadgen

import (
	"math/rand/v2"
	"time"

	"jobwire/codec"
)

// submitter is what a client does besides speaking: it starts jobs, and takes note of their
// ends.
type submitter struct {
	client  Client
	pool    *pool
	payload []byte
	zipf    *rand.Zipf // chooses the functions of jobs; nil if they take turns
	paused  bool       // it submits no jobs until it has connected again
	started int64
	fresh   int64 // jobs ended since the last record
}

// fill starts as many jobs as the window allows.
func (c *Conn) fill() {
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
func (c *Conn) next() bool {
	return !c.paused && len(c.pool.free) > 0 && c.run.claim() && c.start(c.now)
}

// refill starts the next jobs of a closed loop, once as many as a batch may start. Jobs that start together take one write at either end.
func (c *Conn) refill() {
	if c.run.scenario.Backlog {
		c.next()
	} else if c.run.cfg.Window-c.pool.inFlight() >= c.run.cfg.Batch {
		c.fill()
	}
}

// start submits a job that is scheduled for that time. It fails if too many are in flight.
func (c *Conn) start(due int64) bool {
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
	switch {
	case b.zipf != nil:
		s.Queue = uint16(b.zipf.Uint64())
	case cfg.Functions > 1:
		s.Queue = uint16(b.started % int64(cfg.Functions))
	}
	if c.run.scenario.Mixed {
		s.Priority = uint8(c.rand.IntN(priorities))
	}
	s.number.Store(number)
	b.client.Submit(s, c.Payload(s))
	return true
}

// Payload returns the payload of a job. It is valid until the next call.
func (c *Conn) Payload(j *Job) []byte {
	c.payload = c.run.filler.appendPayload(c.payload[:0], j.number.Load(), int(j.size))
	return c.payload
}

// Accepted notes that the server has accepted a job.
func (c *Conn) Accepted(s *Job) {
	s.created, s.acked = c.now, true
	if h := c.run.history; h != nil {
		h.add(c, false, s.number.Load(), s.start)
	}
	sc := c.run.scenario
	if sc.Backlog {
		c.sample(stageCreated, s.created-s.start)
		if sc.Enqueue {
			c.sample(stageTotal, s.created-s.start)
		}
		c.fresh++
		c.refill()
	}
	if s.ended {
		c.finish(s)
	}
}

// Ended notes that a job has ended. It is still in flight until the server has accepted it.
func (c *Conn) Ended(s *Job) {
	if s.acked {
		c.finish(s)
	} else {
		s.ended = true
	}
}

// finish ends a job and, in a closed loop, starts the next.
func (c *Conn) finish(s *Job) {
	sc := c.run.scenario
	if !sc.Backlog {
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
	if sc.Backlog || c.run.cfg.Rate != nil {
		return
	}
	if d := c.run.cfg.Think; d > 0 {
		c.After(d, func() { c.next() })
	} else {
		c.refill()
	}
}

// Refused notes a reply that refuses a request, and ends the job that the request submits, which may be nil.
func (c *Conn) Refused(s *Job, f *codec.Frame) {
	c.note(&c.run.ledger.Refused, f, "the server answered with an error")
	if s == nil {
		return
	}
	c.pool.put(s)
	c.fresh++
	if c.run.cfg.Rate == nil {
		c.refill()
	}
}

func (c *Conn) sample(st stage, ns int64) { c.samples[st] = append(c.samples[st], ns) }

// After calls do after a pause, as if a message had arrived. It does not if the connection is closed by then.
func (c *Conn) After(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		c.now = c.run.clock()
		if !c.closed {
			do()
			c.flush()
			c.run.record(c)
		}
		owners := c.takeOwners()
		c.mu.Unlock()
		passEnds(owners, c.run.clock())
	})
}

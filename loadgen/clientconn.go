package loadgen

import (
	"math/rand/v2"
	"sync"

	"jobwire/codec"
)

// ClientConn is the connection of a client, and what a client does whatever the protocol is: it starts jobs, and notes their ends.
type ClientConn struct {
	*Conn
	client  Client
	place   int // among the clients
	pool    *pool
	payload []byte
	zipf    *rand.Zipf // chooses the functions of jobs; nil if they take turns
	paused  bool       // it submits no jobs until it has connected again
	started int64
	fresh   int64               // jobs ended since the last record
	samples [stageCount][]int64 // of the batch

	inboxMu       sync.Mutex
	otherEnds     []seenEnd // jobs of this client that others have seen the end of
	nextEnds      []seenEnd // memory for the next inbox
	refillPending bool
}

// newClientConn makes a connection that of the client at a place among the clients.
func newClientConn(conn *Conn, place int) *ClientConn {
	r := conn.run
	c := &ClientConn{Conn: conn, place: place, pool: newPool(r.slots, place*r.perClient, r.perClient)}
	if r.cfg.Zipf > 0 {
		c.zipf = rand.NewZipf(c.rand, r.cfg.Zipf, 1, uint64(r.cfg.Functions-1))
	}
	c.reset()
	return c
}

// reset makes the client one that has sent nothing on its connection.
func (c *ClientConn) reset() {
	c.client = c.run.adapter.client(c, c.run.scenario)
	c.role = c
}

func (c *ClientConn) begin()                { c.fill() }
func (c *ClientConn) handle(f *codec.Frame) { c.client.Handle(f) }
func (c *ClientConn) batchEnded()           { c.run.record(c) }

// fill starts as many jobs as the window allows.
func (c *ClientConn) fill() {
	if c.run.cfg.Rate == nil {
		c.submit(c.run.cfg.Window)
	}
}

// submit starts up to n jobs of a closed loop, if there are any left.
func (c *ClientConn) submit(n int) {
	if n = min(n, len(c.pool.free)); c.paused || n == 0 {
		return
	}
	for n = c.run.claimJobs(n); n > 0 && c.start(c.now); n-- {
	}
}

// refill starts the next jobs of a closed loop, once as many as a batch may start. Jobs that start together take one write at either end.
func (c *ClientConn) refill() {
	if c.run.scenario.Backlog {
		c.submit(1)
	} else if c.run.cfg.Window-c.pool.inFlight() >= c.run.cfg.Batch {
		c.fill()
	}
}

// start submits a job that is scheduled for that time. It fails if too many are in flight.
func (c *ClientConn) start(at int64) bool {
	if c.closed {
		return false
	}
	s, number := c.pool.get()
	if s == nil {
		return false
	}
	c.started++
	s.start = at
	cfg := &c.run.cfg
	size := cfg.Size.Lo
	if cfg.Size.Hi > size {
		size = cfg.Size.draw(c.rand)
	}
	s.size = uint32(size)
	switch {
	case c.zipf != nil:
		s.Queue = uint16(c.zipf.Uint64())
	case cfg.Functions > 1:
		s.Queue = uint16(c.started % int64(cfg.Functions))
	}
	if c.run.scenario.Mixed {
		s.Priority = uint8(c.rand.IntN(priorities))
	}
	s.number.Store(number)
	c.client.Submit(s, c.Payload(s))
	return true
}

// Payload returns the payload of a job. It is valid until the next call.
func (c *ClientConn) Payload(j *Job) []byte {
	c.payload = c.run.filler.appendPayload(c.payload[:0], j.number.Load(), int(j.size))
	return c.payload
}

// Accepted notes that the server has accepted a job.
func (c *ClientConn) Accepted(s *Job) {
	s.created, s.acked = c.now, true
	if h := c.run.history; h != nil {
		h.add(c.Conn, false, s.number.Load(), s.start)
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
func (c *ClientConn) Ended(s *Job) {
	if s.acked {
		c.finish(s)
	} else {
		s.ended = true
	}
}

// finish ends a job and, in a closed loop, starts the next.
func (c *ClientConn) finish(s *Job) {
	sc := c.run.scenario
	if !sc.Backlog {
		c.sample(stageCreated, s.created-s.start)
	}
	if _, assigned := s.holder(); assigned {
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
		c.After(d, func() { c.submit(1) })
	} else {
		c.refill()
	}
}

// Refused notes a reply that refuses a submission, and ends the job. s is nil if the reply belongs to no submission.
func (c *ClientConn) Refused(s *Job, f *codec.Frame) {
	c.noteRefused(f)
	if s == nil {
		return
	}
	c.pool.put(s)
	c.fresh++
	if c.run.cfg.Rate == nil {
		c.refill()
	}
}

func (c *ClientConn) sample(st stage, ns int64) { c.samples[st] = append(c.samples[st], ns) }

// seenEnd is a job that a worker has seen the end of. A job can end twice if the server is
// wrong, and its slot be another's by then: so it goes by its number.
type seenEnd struct {
	job    *Job
	number uint64
}

// endSeen notes that a worker has seen the end of a job of the client. It reports whether takeEnds has to be
// called.
func (c *ClientConn) endSeen(e seenEnd) bool {
	c.inboxMu.Lock()
	defer c.inboxMu.Unlock()
	c.otherEnds = append(c.otherEnds, e)
	first := !c.refillPending
	c.refillPending = true
	return first
}

// takeEnds ends the jobs that workers have seen the end of.
func (c *ClientConn) takeEnds(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	c.inboxMu.Lock()
	jobs := c.otherEnds
	c.otherEnds, c.refillPending = c.nextEnds, false
	c.inboxMu.Unlock()
	for _, j := range jobs {
		if j.job.number.Load() == j.number {
			c.Ended(j.job)
		}
	}
	c.nextEnds = jobs[:0]
	c.flush()
	c.batchEnded()
}

// Result returns the job of a result that a client received. If something is wrong with the result, Result
// notes it, and returns nil unless the job has ended all the same.
func (c *ClientConn) Result(f *codec.Frame, payload []byte) *Job {
	number, whole := c.run.filler.numberOf(payload)
	s := c.run.slots.find(number)
	switch {
	case !whole:
		c.countFault(&c.run.ledger.Corrupted, f, "the result differs from the payload that was submitted")
		if s != nil && !c.pool.has(s) {
			return nil
		}
	case s == nil:
		c.countFault(&c.run.ledger.AnsweredTwice, f, "a result of this job had already arrived")
	case !c.pool.has(s):
		c.countFault(&c.run.ledger.Misdirected, f, "another client submitted this job")
		return nil
	}
	return s
}

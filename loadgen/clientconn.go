package loadgen

import (
	"math/rand/v2"
	"sync"

	"jobwire/codec"
	"jobwire/loadgen/latency"
)

// ClientConn is the connection of a client. It does what clients of all protocols have in common: it starts jobs and
// records when they are acknowledged and when they end.
type ClientConn struct {
	*Conn
	client     Client
	place      int // index among the clients
	pool       *pool
	payload    []byte                       // buffer for the payload of a job
	zipf       *rand.Zipf                   // chooses the function of a job; nil: all functions in turn
	paused     bool                         // the client submits no jobs until it has reconnected
	started    int64                        // number of jobs submitted
	unrecorded int64                        // jobs that ended since the last call of record
	samples    [len(latency.Stages)][]int64 // latencies in nanoseconds since the last call of record

	inboxMu       sync.Mutex // guards the fields below
	otherEnds     []seenEnd  // jobs of this client whose end a worker has seen; takeEnds handles them
	nextEnds      []seenEnd  // memory for the next otherEnds
	refillPending bool       // a worker will call takeEnds
}

// newClientConn makes conn the connection of the client with index place.
func newClientConn(conn *Conn, place int) *ClientConn {
	r := conn.run
	c := &ClientConn{Conn: conn, place: place, pool: newPool(r.slots, place*r.perClient, r.perClient)}
	if r.cfg.Zipf > 0 {
		c.zipf = rand.NewZipf(c.rand, r.cfg.Zipf, 1, uint64(r.cfg.Functions-1))
	}
	c.reset()
	return c
}

// reset puts the client in the state before its first message. It is called for each new connection.
func (c *ClientConn) reset() {
	c.client = c.run.adapter.client(c, c.run.scenario)
	c.role = c
}

func (c *ClientConn) begin()                { c.fill() }
func (c *ClientConn) handle(f *codec.Frame) { c.client.Handle(f) }
func (c *ClientConn) batchEnded()           { c.run.record(c) }

// fill submits jobs of a closed loop until the window is full.
func (c *ClientConn) fill() {
	if c.run.cfg.Rate == nil {
		c.submit(c.run.cfg.Window)
	}
}

// submit submits up to n jobs of a closed loop. It submits fewer if the pool has fewer free slots or the run is to
// submit fewer jobs, and none if the client is paused.
func (c *ClientConn) submit(n int) {
	if n = min(n, len(c.pool.free)); c.paused || n == 0 {
		return
	}
	for n = c.run.claimJobs(n); n > 0 && c.start(c.now); n-- {
	}
}

// refill submits the next jobs of a closed loop, if Config.Batch jobs fit into the window. Jobs that are submitted
// together need only one write by the client and one read by the server.
func (c *ClientConn) refill() {
	if c.run.scenario.Backlog {
		c.submit(1)
	} else if c.run.cfg.Window-c.pool.inFlight() >= c.run.cfg.Batch {
		c.fill()
	}
}

// start submits one job. at is the time from which its latency counts: now in a closed loop, the scheduled time in an
// open loop. It returns false if the connection is closed or the client has too many jobs in flight.
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
		s.Priority = uint8(c.rand.IntN(Priorities))
	}
	s.number.Store(number)
	c.client.Submit(s, c.Payload(s))
	return true
}

// Payload returns the payload of a job. It is valid until the next call of Payload.
func (c *ClientConn) Payload(j *Job) []byte {
	c.payload = c.run.filler.appendPayload(c.payload[:0], j.number.Load(), int(j.size))
	return c.payload
}

// Accepted records that the server has acknowledged the submission of a job.
func (c *ClientConn) Accepted(s *Job) {
	s.created, s.acked = c.now, true
	if accepted := c.run.accepted; accepted != nil {
		select {
		case accepted <- struct{}{}:
		default:
		}
	}
	if h := c.run.history; h != nil {
		h.add(c.Conn, false, s.number.Load(), s.start)
	}
	sc := c.run.scenario
	if sc.Backlog {
		c.sample(latency.Created, s.created-s.start)
		if sc.Enqueue {
			c.sample(latency.Total, s.created-s.start)
		}
		c.unrecorded++
		c.refill()
	}
	if s.ended {
		c.finish(s)
	}
}

// Ended records that a job has ended. The job stays in flight until the server has acknowledged its submission.
func (c *ClientConn) Ended(s *Job) {
	if s.acked {
		c.finish(s)
	} else {
		s.ended = true
	}
}

// finish records the latencies of a job, frees its slot and, in a closed loop, submits the next job after
// Config.Think.
func (c *ClientConn) finish(s *Job) {
	sc := c.run.scenario
	if !sc.Backlog {
		c.sample(latency.Created, s.created-s.start)
	}
	if _, assigned := s.holder(); assigned {
		taken := s.taken.Load()
		c.sample(latency.Queued, taken-s.created)
		c.sample(latency.Run, c.now-taken)
	}
	c.sample(latency.Total, c.now-s.start)
	c.pool.put(s)
	c.unrecorded++
	if sc.Backlog || c.run.cfg.Rate != nil {
		return
	}
	if d := c.run.cfg.Think; d > 0 {
		c.After(d, func() { c.submit(1) })
	} else {
		c.refill()
	}
}

// Refused counts a message that refuses the submission of job s, and ends the job. s is nil if no submission waits
// for a reply.
func (c *ClientConn) Refused(s *Job, f *codec.Frame) {
	c.CountRefused(f)
	if s == nil {
		return
	}
	c.pool.put(s)
	c.unrecorded++
	if c.run.cfg.Rate == nil {
		c.refill()
	}
}

// sample adds a latency in nanoseconds.
func (c *ClientConn) sample(st latency.Stage, ns int64) { c.samples[st] = append(c.samples[st], ns) }

// seenEnd is a job whose end a worker has seen. It includes the job's number, because a faulty server can make a job
// end twice, and another job may use the slot by then.
type seenEnd struct {
	job    *Job
	number uint64
}

// endSeen records that a worker has seen the end of a job of this client. It returns true if the worker must call
// takeEnds after its batch, and false if another worker will call it.
func (c *ClientConn) endSeen(e seenEnd) bool {
	c.inboxMu.Lock()
	defer c.inboxMu.Unlock()
	c.otherEnds = append(c.otherEnds, e)
	first := !c.refillPending
	c.refillPending = true
	return first
}

// takeEnds ends the jobs that endSeen has recorded. now is the time on run.clock.
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

// Result returns the job to which a result belongs. It counts a fault if the payload is not intact, the job has
// already ended, or another client submitted the job; it returns nil if the result ends no job of this client.
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

package loadgen

import (
	"jobwire/codec"
)

// WorkerConn is the connection of a worker. It does what workers of all protocols have in common: it records and
// checks the assigned jobs, and reports the ends of background jobs to the clients.
type WorkerConn struct {
	*Conn
	worker Worker
	Place  int               // index among the workers
	asks   codec.FIFO[int64] // times of the requests for a job without a reply; used only with Config.Check
	// Job.seq of the last assigned job, by client, function and priority; nil if there are more than maxSeen combinations
	seen   []uint32
	owners []*ClientConn // clients for which takeEnds must be called after the batch
}

// maxSeen is the maximum length of WorkerConn.seen, to limit memory. With more combinations, the order of jobs is not
// checked.
const maxSeen = 1 << 20

// newWorkerConn makes conn the connection of the worker with index place.
func newWorkerConn(conn *Conn, place int) *WorkerConn {
	r := conn.run
	c := &WorkerConn{Conn: conn, Place: place}
	if n := r.cfg.Clients * r.cfg.Functions * Priorities; n <= maxSeen {
		c.seen = make([]uint32, n)
	}
	c.worker = r.adapter.worker(c, r.scenario)
	c.role = c
	return c
}

func (c *WorkerConn) begin()                { c.worker.Begin() }
func (c *WorkerConn) handle(f *codec.Frame) { c.worker.Handle(f) }

// batchEnded reports the ends of jobs to their clients. It locks the connection of a client while that of the worker
// is locked; this cannot deadlock, because no client locks the connection of a worker.
func (c *WorkerConn) batchEnded() {
	for i, o := range c.owners {
		c.owners[i] = nil
		o.takeEnds(c.now)
	}
	c.owners = c.owners[:0]
}

// EndSeen records that a job has ended, for the client that submitted it. A worker calls it when it has completed a
// job for which the server sends no result to the client.
func (c *WorkerConn) EndSeen(j *Job) {
	number := j.number.Load()
	if number == 0 {
		return
	}
	owner := c.run.clients[int(number&(maxSlots-1))/c.run.perClient]
	if owner.endSeen(seenEnd{j, number}) {
		c.owners = append(c.owners, owner)
	}
}

// Assigned records that the server has assigned the job with this payload, and counts a fault if the job is not in
// flight, another worker has it, or a newer job was assigned earlier. It returns the job, or nil if no job with this
// payload is in flight.
func (c *WorkerConn) Assigned(f *codec.Frame, payload []byte) *Job {
	number, whole := c.run.filler.numberOf(payload)
	if !whole {
		c.countFault(&c.run.ledger.Corrupted, f, "no client submitted a job with this payload")
		return nil
	}
	s := c.run.slots.find(number)
	if s == nil && c.run.wasAssumedEnded(number) {
		c.run.ledger.count(&c.run.ledger.Redelivered)
		return nil
	}
	if s == nil {
		c.countFault(&c.run.ledger.Duplicated, f, "this job had already finished")
		return nil
	}
	c.given(number)
	if before, again := s.assign(number, c.id); again {
		if c.run.wasKilled(before) {
			c.run.ledger.count(&c.run.ledger.Redelivered)
		} else {
			c.countFault(&c.run.ledger.Duplicated, f, "another worker has this job, and the connection of that worker is open")
		}
	} else if !c.inOrder(s, number) {
		c.countFault(&c.run.ledger.OutOfOrder, f, "a newer job of the same client, function and priority was assigned earlier")
	}
	s.taken.Store(c.now)
	return s
}

// inOrder reports whether the job is newer than all jobs of the same client, function and priority that this worker
// was assigned before.
func (c *WorkerConn) inOrder(s *Job, number uint64) bool {
	if c.seen == nil {
		return true
	}
	owner := int(number&(maxSlots-1)) / c.run.perClient
	last := &c.seen[(owner*c.run.cfg.Functions+int(s.Queue))*Priorities+int(s.Priority)]
	if s.seq < *last {
		return false
	}
	*last = s.seq
	return true
}

// Ask records that the worker asks for a job. It is used only with Config.Check.
func (c *WorkerConn) Ask() {
	if c.run.history != nil {
		c.asks.Push(c.now)
	}
}

// NoJob records a reply that the server has no job.
func (c *WorkerConn) NoJob() { c.given(none) }

// given records the reply to the oldest request for a job: the number of the job, or none.
func (c *WorkerConn) given(number uint64) {
	if h := c.run.history; h != nil && c.asks.Len() > 0 {
		h.add(c.Conn, true, number, Pop(&c.asks))
	}
}

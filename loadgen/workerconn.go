package loadgen

import "jobwire/codec"

// WorkerConn is the connection of a worker, and what a worker does whatever the protocol is: it notes the jobs that it gets, and reports
// the ends of jobs to their clients.
type WorkerConn struct {
	*Conn
	worker Worker
	place  int           // among the workers
	asks   ring[int64]   // when it asked for the jobs that it waits for, if that is kept
	seen   []uint32      // the last job, by client, function and priority; nil if there are too many
	owners []*ClientConn // clients whose jobs ended in the batch
}

// maxSeen bounds the memory in which a worker keeps what it has seen.
const maxSeen = 1 << 20

// newWorkerConn makes a connection that of the worker at a place among the workers.
func newWorkerConn(conn *Conn, place int) *WorkerConn {
	r := conn.run
	c := &WorkerConn{Conn: conn, place: place}
	if n := r.cfg.Clients * r.cfg.Functions * priorities; n <= maxSeen {
		c.seen = make([]uint32, n)
	}
	c.worker = r.adapter.worker(c, r.scenario)
	c.role = c
	return c
}

func (c *WorkerConn) begin()                { c.worker.Begin() }
func (c *WorkerConn) handle(f *codec.Frame) { c.worker.Handle(f) }

// batchEnded reports the ends of jobs to their clients. No client holds its lock while it waits for that of a worker.
func (c *WorkerConn) batchEnded() {
	for i, o := range c.owners {
		c.owners[i] = nil
		o.takeEnds(c.now)
	}
	c.owners = c.owners[:0]
}

// EndSeen reports the end of a job to the client that submitted it. A worker calls it for a job whose
// result the server does not send to the client.
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

// Assigned notes that a worker got the job with this payload, and returns the job: nil if none with the
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

// inOrder reports whether the job is younger than those that the worker has had of the same
// client, function and priority.
func (c *WorkerConn) inOrder(s *Job, number uint64) bool {
	if c.seen == nil {
		return true
	}
	owner := int(number&(maxSlots-1)) / c.run.perClient
	last := &c.seen[(owner*c.run.cfg.Functions+int(s.Queue))*priorities+int(s.Priority)]
	if s.seq < *last {
		return false
	}
	*last = s.seq
	return true
}

// Ask notes that a worker asks for a job.
func (c *WorkerConn) Ask() {
	if c.run.history != nil {
		c.asks.push(c.now)
	}
}

// NoJob notes the reply to a worker that there is no job.
func (c *WorkerConn) NoJob() { c.given(none) }

// given notes what the oldest of its requests was answered with: a job's number, or none.
func (c *WorkerConn) given(number uint64) {
	if h := c.run.history; h != nil && c.asks.n > 0 {
		h.add(c.Conn, true, number, c.asks.pop())
	}
}

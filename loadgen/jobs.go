package loadgen

import (
	"iter"
	"sync/atomic"

	"jobwire/codec"
)

// A job's number has the index of its slot in the low slotBits bits, and the number of uses of that slot above them.
const slotBits = 28

// maxSlots is the maximum number of jobs in flight in one run.
const maxSlots = 1 << slotBits

// Job is a job in flight. When the job has ended, its memory (a slot) is reused for another job with a different
// number. Workers find a job by the number in its payload.
type Job struct {
	Queue    uint16 // index of the job's function or tube in Conn.Queues
	Priority uint8  // 0 (most urgent) to 2 (least urgent)

	number atomic.Uint64 // number of the job that uses the slot; 0: the slot is free
	// most recent assignment of a job of this slot: the job's number, with the ID of the worker's connection in the low
	// slotBits bits
	last    atomic.Uint64
	taken   atomic.Int64 // time of that assignment, on run.clock
	seq     uint32       // position of the job among the jobs of its client, from 1
	size    uint32       // payload size in bytes
	acked   bool         // the server has acknowledged the submission
	ended   bool         // the job ended before the acknowledgement arrived
	start   int64        // time of the submission, or in an open loop the scheduled time, on run.clock
	created int64        // time of the acknowledgement, on run.clock
}

// assign records that a worker got the job with this number; conn is the ID of the worker's connection. If the same
// job was assigned before, again is true and before is the ID of the earlier worker's connection.
func (j *Job) assign(number uint64, conn int) (before int, again bool) {
	last := j.last.Swap(number&^(maxSlots-1) | uint64(conn)&(maxSlots-1))
	return int(last & (maxSlots - 1)), last>>slotBits == number>>slotBits
}

// holder returns the ID of the connection to which the job was assigned last. ok is false if it was not assigned.
func (j *Job) holder() (conn int, ok bool) {
	last, number := j.last.Load(), j.number.Load()
	return int(last & (maxSlots - 1)), last>>slotBits == number>>slotBits && number != none
}

// priorities is the number of job priorities, from 0 (most urgent) to 2.
const Priorities = 3

const normal = 1 // priority of jobs in scenarios without priorities

// slots has the memory of all jobs in flight. Each client uses a part of it.
type slots []Job

// find returns the job with this number, or nil if it is not in flight.
func (s slots) find(number uint64) *Job {
	i := number & (maxSlots - 1)
	if number == 0 || i >= uint64(len(s)) || s[i].number.Load() != number {
		return nil
	}
	return &s[i]
}

// pool allocates the slots of one client.
type pool struct {
	slots slots
	first uint32   // index of the first slot of the pool
	free  []uint32 // indexes of the free slots; the last one is used next
	uses  []uint32 // number of uses of each slot
	seq   uint32   // number of jobs so far
}

// newPool returns a pool of the n slots from index first on, all of them free.
func newPool(all slots, first, n int) *pool {
	p := &pool{slots: all, first: uint32(first), free: make([]uint32, n), uses: make([]uint32, n)}
	for i := range p.free {
		p.free[i] = uint32(first + n - 1 - i)
	}
	return p
}

// get allocates a slot for a job and returns it with a new number. It returns nil if all slots are in use. The caller
// stores the number in the job after all other fields, because workers can find the job from then on.
func (p *pool) get() (s *Job, number uint64) {
	if len(p.free) == 0 {
		return nil, none
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.uses[i-p.first]++
	p.seq++
	s = &p.slots[i]
	s.created, s.acked, s.ended, s.seq = 0, false, false, p.seq
	s.Queue, s.Priority = 0, normal
	return s, uint64(p.uses[i-p.first])<<slotBits | uint64(i)
}

// has reports whether the slot belongs to the pool.
func (p *pool) has(s *Job) bool {
	i := s.number.Load() & (maxSlots - 1)
	return i >= uint64(p.first) && i < uint64(p.first)+uint64(len(p.uses))
}

// put frees a slot.
func (p *pool) put(s *Job) {
	i := uint32(s.number.Load() & (maxSlots - 1))
	s.number.Store(0)
	p.free = append(p.free, i)
}

// underWay returns an iterator over the jobs in flight.
func (p *pool) underWay() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := 0; i < len(p.uses) && p.inFlight() > 0; i++ {
			if s := &p.slots[int(p.first)+i]; s.number.Load() != 0 && !yield(s) {
				return
			}
		}
	}
}

// inFlight returns the number of jobs in flight.
func (p *pool) inFlight() int { return len(p.uses) - len(p.free) }

// queue is a queue of jobs.
type queue = codec.FIFO[*Job]

// pop removes and returns the oldest element of a queue. It returns the zero value if the queue is empty.
func Pop[T any](q *codec.FIFO[T]) (v T) {
	if q.Len() > 0 {
		v = *q.At(0)
		q.Pop()
	}
	return v
}

package loadgen

import (
	"iter"
	"sync/atomic"
)

// A job's number says where it is kept: the slot, and how often that was used before.
const slotBits = 28

// maxSlots is how many jobs may be under way in one run.
const maxSlots = 1 << slotBits

// Job is a job in flight. The memory of a job that has ended is used for another: the number
// distinguishes them. Workers find a job by the number in its payload.
type Job struct {
	Queue    uint16 // index in Conn.Queues
	Priority uint8  // 0 is the most urgent, 2 the least

	number  atomic.Uint64 // of the job that has it; 0 is none
	last    atomic.Uint64 // the last assignment of a job of this slot: the number, with the worker's connection in place of the slot
	taken   atomic.Int64  // when it was
	seq     uint32        // counts the client's jobs
	size    uint32        // of the payload
	acked   bool
	ended   bool  // its end was seen before the acknowledgement
	start   int64 // when it was, or should have been, submitted
	created int64 // when the server acknowledged it
}

// assign notes that the worker on a connection got the job with that number. It returns the connection of the worker that had it before;
// again is false if none had.
func (j *Job) assign(number uint64, conn int) (before int, again bool) {
	last := j.last.Swap(number&^(maxSlots-1) | uint64(conn)&(maxSlots-1))
	return int(last & (maxSlots - 1)), last>>slotBits == number>>slotBits
}

// holder returns the connection of the worker that got the job last; ok is false if none did.
func (j *Job) holder() (conn int, ok bool) {
	last, number := j.last.Load(), j.number.Load()
	return int(last & (maxSlots - 1)), last>>slotBits == number>>slotBits && number != none
}

// priorities are those of jobs, from the most urgent on.
const priorities = 3

const normal = 1

// slots are the jobs of all clients.
type slots []Job

// find returns the slot of the job with that number, or nil if it is under way no more.
func (s slots) find(number uint64) *Job {
	i := number & (maxSlots - 1)
	if number == 0 || i >= uint64(len(s)) || s[i].number.Load() != number {
		return nil
	}
	return &s[i]
}

// pool is the part of the slots that one client gives out.
type pool struct {
	slots slots
	first uint32
	free  []uint32 // the last of them goes first
	uses  []uint32 // of each slot of the pool
	seq   uint32
}

func newPool(all slots, first, n int) *pool {
	p := &pool{slots: all, first: uint32(first), free: make([]uint32, n), uses: make([]uint32, n)}
	for i := range p.free {
		p.free[i] = uint32(first + n - 1 - i)
	}
	return p
}

// get gives a job a slot and a number, or returns nil if all slots are in use. The number is to
// be stored when all else about the job has been: with it workers find the slot.
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

// has reports whether the slot is one of the pool's.
func (p *pool) has(s *Job) bool {
	i := s.number.Load() & (maxSlots - 1)
	return i >= uint64(p.first) && i < uint64(p.first)+uint64(len(p.uses))
}

// put takes a slot back.
func (p *pool) put(s *Job) {
	i := uint32(s.number.Load() & (maxSlots - 1))
	s.number.Store(0)
	p.free = append(p.free, i)
}

// underWay goes through the jobs that have not come to their end.
func (p *pool) underWay() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range p.uses {
			if s := &p.slots[int(p.first)+i]; s.number.Load() != 0 && !yield(s) {
				return
			}
		}
	}
}

// inFlight counts the jobs that have not come to their end.
func (p *pool) inFlight() int { return len(p.uses) - len(p.free) }

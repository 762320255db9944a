package loadgen

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
)

// history records the operations on the queue: submissions by clients, and job requests by workers.
type history struct {
	mu   sync.Mutex
	ops  []operation
	name func(id int) string // returns the name of a connection, given its ID
}

// operation is one submission, or one request for a job, with its reply. Times are on run.clock: the request was sent
// at call or later, and the reply had arrived at ret or earlier.
type operation struct {
	conn      int    // ID of the connection
	take      bool   // a request for a job; false: a submission
	number    uint64 // number of the job; none if the server replied that it has no job
	call, ret int64
}

// none is the number in an operation to which the server replied that it has no job.
const none = 0

// add records an operation whose reply has arrived. call is the time of the request on run.clock.
func (h *history) add(c *Conn, take bool, number uint64, call int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, operation{c.id, take, number, call, c.now})
}

// Linearity is the result of a check whether a history is linearizable as a first-in, first-out queue. It is if a
// time between the request and the reply can be chosen for each operation, such that a queue that executes the
// operations in the order of these times gives the same replies.
type Linearity struct {
	Holds bool   `json:"holds"`
	Why   string `json:"why,omitempty"` // the first contradiction that was found; "" if Holds
}

// jobHistory has the operations on one job: put added it to the queue, got removed it. If it was not removed,
// got.take is false.
type jobHistory struct {
	number   uint64
	put, got operation
}

// check checks whether the history is linearizable as a first-in, first-out queue. If all jobs can be distinguished,
// a history that is not linearizable has one of four faults (Henzinger, Sezgin, Vafeiadis: Aspect-oriented
// linearizability proofs, 2013): a job is removed that was not added; a job is removed twice; a job is removed before
// a job that was added earlier; the queue replies that it is empty although it is not. So check does not need to
// search through the possible orders.
func (h *history) check() *Linearity {
	h.mu.Lock()
	ops := h.ops // workers still add operations
	h.mu.Unlock()
	jobs := map[uint64]*jobHistory{}
	var empty []operation
	for _, op := range ops {
		if !op.take {
			jobs[op.number] = &jobHistory{number: op.number, put: op, got: operation{call: math.MaxInt64, ret: math.MaxInt64}}
		}
	}
	for _, op := range ops {
		j := jobs[op.number]
		switch {
		case !op.take:
		case op.number == none:
			empty = append(empty, op)
		case j == nil || op.ret < j.put.call:
			return broken("job %#x was assigned to %s before it was submitted", op.number, h.name(op.conn))
		case j.got.take:
			return broken("job %#x was assigned to %s, and to %s", op.number, h.name(j.got.conn), h.name(op.conn))
		default:
			j.got = op
		}
	}
	all := slices.Collect(maps.Values(jobs))
	return cmp.Or(h.outOfOrder(all), h.notEmpty(all, empty), &Linearity{Holds: true})
}

// outOfOrder finds two jobs of which one was certainly added first and certainly removed last. It returns nil if
// there are none.
func (h *history) outOfOrder(all []*jobHistory) *Linearity {
	byEnd := slices.Clone(all)
	slices.SortFunc(byEnd, func(a, b *jobHistory) int { return cmp.Compare(a.put.ret, b.put.ret) })
	slices.SortFunc(all, func(a, b *jobHistory) int { return cmp.Compare(a.put.call, b.put.call) })
	var last *jobHistory // the job that was removed last among those added before b
	for _, b := range all {
		for len(byEnd) > 0 && byEnd[0].put.ret < b.put.call {
			if last == nil || byEnd[0].got.call > last.got.call {
				last = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		if last != nil && b.got.ret < last.got.call {
			return broken("job %#x was submitted after job %#x, but assigned before that job", b.number, last.number)
		}
	}
	return nil
}

// notEmpty finds a request to which the server replied that there is no job, although the queue certainly had a job
// all the time between the request and the reply. It returns nil if there is none.
func (h *history) notEmpty(all []*jobHistory, empty []operation) *Linearity {
	slices.SortFunc(all, func(a, b *jobHistory) int { return cmp.Compare(a.put.ret, b.put.ret) })
	slices.SortFunc(empty, func(a, b operation) int { return cmp.Compare(a.call, b.call) })
	// The current time span, from from to to, in which the queue certainly has a job. Overlapping spans are joined.
	var from, to int64 = -1, -1
	next := 0
	for _, op := range empty {
		for next < len(all) && all[next].put.ret <= max(op.call, to) {
			j := all[next]
			next++
			if j.got.call <= j.put.ret {
				continue
			}
			if j.put.ret > to {
				from = j.put.ret
			}
			to = max(to, j.got.call)
		}
		if from < op.call && op.ret < to {
			return broken("the server replied to %s that no job is queued, although a job was queued", h.name(op.conn))
		}
	}
	return nil
}

// broken returns the result for a history that is not linearizable.
func broken(format string, args ...any) *Linearity {
	return &Linearity{Why: fmt.Sprintf(format, args...)}
}

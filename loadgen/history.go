package loadgen

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// history records when clients submitted jobs and received replies, and when workers were assigned them.
type history struct {
	mu   sync.Mutex
	ops  []operation
	name func(id int) string // of a connection
}

// operation is one submission, or one request for a job, with its reply. Times are those of this
// process: a request was sent no earlier than call, a reply had come no later than ret.
type operation struct {
	conn      int
	take      bool
	number    uint64 // of the job; none for a request that there was no job for
	call, ret int64
}

// none is the number of no job.
const none = 0

// add enters what has come to its end.
func (h *history) add(c *Conn, take bool, number uint64, call int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, operation{c.id, take, number, call, c.now})
}

// Linearity says whether a history is one of a first-in first-out queue: whether every
// submission, every delivery and every answer that there is no job can be given a moment
// between its request and its reply, so that in the order of those moments the queue did right.
type Linearity struct {
	Holds bool   `json:"holds"`
	Why   string `json:"why,omitempty"` // what no order of moments explains
}

// jobHistory is one job's: when it was put into the queue, and when it was taken out.
type jobHistory struct {
	number   uint64
	put, got operation
}

// check checks the history. For a queue whose jobs can be distinguished there are only four ways
// to be none (Henzinger, Sezgin, Vafeiadis: Aspect-oriented linearizability proofs, 2013): a job
// comes out that was not put in, or comes out twice; one that was put in later comes out
// earlier; the queue says that it is empty while it cannot have been. So this takes no search.
func (h *history) check() *Linearity {
	h.mu.Lock()
	ops := h.ops // workers go on asking
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
	all := make([]*jobHistory, 0, len(jobs))
	for _, j := range jobs {
		all = append(all, j)
	}
	if l := h.outOfOrder(all); l != nil {
		return l
	}
	if l := h.notEmpty(all, empty); l != nil {
		return l
	}
	return &Linearity{Holds: true}
}

// outOfOrder finds a job that was surely put in before another, and surely taken out after it.
func (h *history) outOfOrder(all []*jobHistory) *Linearity {
	byEnd := slices.Clone(all)
	slices.SortFunc(byEnd, func(a, b *jobHistory) int { return order(a.put.ret, b.put.ret) })
	slices.SortFunc(all, func(a, b *jobHistory) int { return order(a.put.call, b.put.call) })
	var last *jobHistory // of those put in before, the one that was taken out last
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

// notEmpty finds a request that was answered that there is no job, though there surely was one
// all the time.
func (h *history) notEmpty(all []*jobHistory, empty []operation) *Linearity {
	slices.SortFunc(all, func(a, b *jobHistory) int { return order(a.put.ret, b.put.ret) })
	slices.SortFunc(empty, func(a, b operation) int { return order(a.call, b.call) })
	// The times in which there surely is a job, joined where they overlap.
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

func order(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func broken(format string, args ...any) *Linearity {
	return &Linearity{Why: fmt.Sprintf(format, args...)}
}

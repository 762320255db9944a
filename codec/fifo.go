package codec

// FIFO is a queue (first in, first out), such as of the requests that wait for their replies. It reuses its
// memory. A copy of the struct is the queue as it was, until something is added to the copy or removed from it.
type FIFO[T any] struct {
	ring     []T // as many as a power of two
	first, n int
}

// Len returns how many elements there are.
func (q *FIFO[T]) Len() int { return q.n }

// At returns the i-th element, counted from the oldest. It is valid until the next Push.
func (q *FIFO[T]) At(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

// Push adds an element and returns where it is, until the next Push.
func (q *FIFO[T]) Push(v T) *T {
	if q.n == len(q.ring) {
		ring := make([]T, max(4, 2*q.n))
		k := copy(ring, q.ring[q.first:])
		copy(ring[k:], q.ring[:q.first])
		q.ring, q.first = ring, 0
	}
	q.n++
	last := q.At(q.n - 1)
	*last = v
	return last
}

// Pop removes the oldest element.
func (q *FIFO[T]) Pop() {
	q.first = (q.first + 1) & (len(q.ring) - 1)
	if q.n--; q.n == 0 {
		q.first = 0
	}
}

package codec

// FIFO is a first-in, first-out queue, for example of requests that wait for their replies. It reuses its
// memory. A copy of the struct preserves the state of the queue until an element is added to, or removed
// from, the copy.
type FIFO[T any] struct {
	ring     []T // its length is a power of two
	first, n int
}

// Len returns the number of elements.
func (q *FIFO[T]) Len() int { return q.n }

// At returns a pointer to the i-th element, counted from the oldest. The pointer is valid until the next
// Push.
func (q *FIFO[T]) At(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

// Push adds an element and returns a pointer to it, which is valid until the next Push.
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

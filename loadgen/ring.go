package loadgen

// ring is a first-in, first-out queue in a ring buffer that grows. Its zero value is an empty queue.
type ring[T any] struct {
	at      []T // ring buffer; its length is a power of two
	head, n int // index of the oldest element, and number of elements
}

// queue is a ring of jobs.
type queue = ring[*Job]

func (q *ring[T]) push(v T) {
	if q.n == len(q.at) {
		at := make([]T, max(16, 2*q.n))
		for i := range q.n {
			at[i] = q.at[(q.head+i)&(len(q.at)-1)]
		}
		q.at, q.head = at, 0
	}
	q.at[(q.head+q.n)&(len(q.at)-1)] = v
	q.n++
}

// pop removes and returns the oldest element, or returns the zero value if the ring is empty.
func (q *ring[T]) pop() (v T) {
	if q.n == 0 {
		return v
	}
	v = q.at[q.head]
	q.head = (q.head + 1) & (len(q.at) - 1)
	q.n--
	return v
}

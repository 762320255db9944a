package loadgen

// ring is a first-in first-out queue. Its zero value is empty.
type ring[T any] struct {
	at      []T // its length is a power of two
	head, n int
}

// queue is one of jobs.
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

// pop returns the oldest, or a zero value.
func (q *ring[T]) pop() (v T) {
	if q.n == 0 {
		return v
	}
	v = q.at[q.head]
	q.head = (q.head + 1) & (len(q.at) - 1)
	q.n--
	return v
}

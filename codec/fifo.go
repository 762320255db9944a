package codec

// FIFO is a first-in, first-out queue, for example of requests that wait for their replies. It reuses its
// memory. A copy of the struct preserves the state of the queue until an element is added to, or removed
// from, the copy.
type FIFO[T any] struct {
	ring     []T // its length is a power of two
	first, n int
}

// Len returns the number of elements.
func (f *FIFO[T]) Len() int { return f.n }

// At returns a pointer to the i-th element, counted from the oldest. The pointer is valid until the next
// Push.
func (f *FIFO[T]) At(i int) *T { return &f.ring[(f.first+i)&(len(f.ring)-1)] }

// Push adds an element and returns a pointer to it, which is valid until the next Push.
func (f *FIFO[T]) Push(v T) *T {
	if f.n == len(f.ring) {
		ring := make([]T, max(4, 2*f.n))
		k := copy(ring, f.ring[f.first:])
		copy(ring[k:], f.ring[:f.first])
		f.ring, f.first = ring, 0
	}
	f.n++
	last := f.At(f.n - 1)
	*last = v
	return last
}

// Pop removes the oldest element.
func (f *FIFO[T]) Pop() {
	f.first = (f.first + 1) & (len(f.ring) - 1)
	if f.n--; f.n == 0 {
		f.first = 0
	}
}

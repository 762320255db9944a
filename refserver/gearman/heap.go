package gearman

// heap keeps items so that the one before all others is quickly found. Items
// know their place in it, so that any can leave: both cost the logarithm of its
// length.
type heap[T item[T]] []T

// item is what stands in a heap. place is its own for the heap to keep; it counts
// from 1, and is 0 while the item is in none.
type item[T any] interface {
	before(T) bool
	place() *int
}

func (h *heap[T]) add(x T) {
	*h = append(*h, x)
	*x.place() = len(*h)
	h.up(len(*h))
}

// remove takes x out, if it is in.
func (h *heap[T]) remove(x T) {
	i := *x.place()
	if i == 0 {
		return
	}
	var none T
	last := len(*h)
	h.swap(i, last)
	(*h)[last-1] = none
	*h = (*h)[:last-1]
	*x.place() = 0
	if i < last {
		h.down(i)
		h.up(i)
	}
}

// The children of place i are 2i and 2i+1.

func (h heap[T]) before(i, k int) bool { return h[i-1].before(h[k-1]) }

func (h heap[T]) swap(i, k int) {
	h[i-1], h[k-1] = h[k-1], h[i-1]
	*h[i-1].place(), *h[k-1].place() = i, k
}

func (h heap[T]) up(i int) {
	for ; i > 1 && h.before(i, i/2); i /= 2 {
		h.swap(i, i/2)
	}
}

func (h heap[T]) down(i int) {
	for {
		least := i
		for k := 2 * i; k <= 2*i+1 && k <= len(h); k++ {
			if h.before(k, least) {
				least = k
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

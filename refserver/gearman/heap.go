package gearman

// heap is a binary heap: the item that is before all others is first. Items know their position, so that any item can
// be removed. Adding and removing take logarithmic time.
type heap[T item[T]] []T

// item is an item of a heap. heapIndex returns a variable for the item's position, which the heap sets: its index plus
// 1, or 0 while it is not in the heap.
type item[T any] interface {
	before(T) bool
	heapIndex() *int
}

func (h *heap[T]) add(x T) {
	*h = append(*h, x)
	*x.heapIndex() = len(*h)
	h.up(len(*h))
}

// remove removes x if it is in the heap.
func (h *heap[T]) remove(x T) {
	i := *x.heapIndex()
	if i == 0 {
		return
	}
	var none T
	last := len(*h)
	h.swap(i, last)
	(*h)[last-1] = none
	*h = (*h)[:last-1]
	*x.heapIndex() = 0
	if i < last {
		h.down(i)
		h.up(i)
	}
}

// Positions count from 1; the children of position i are 2i and 2i+1.

func (h heap[T]) before(i, k int) bool { return h[i-1].before(h[k-1]) }

func (h heap[T]) swap(i, k int) {
	h[i-1], h[k-1] = h[k-1], h[i-1]
	*h[i-1].heapIndex(), *h[k-1].heapIndex() = i, k
}

func (h heap[T]) up(i int) {
	for ; i > 1 && h.before(i, i/2); i /= 2 {
		h.swap(i, i/2)
	}
}

// down moves the item at position i toward the end until neither of its children, at positions 2i and 2i+1, is before
// it.
func (h heap[T]) down(i int) {
	for {
		first := i
		for child := 2 * i; child <= 2*i+1 && child <= len(h); child++ {
			if h.before(child, first) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

package beanstalk

// heap is a priority queue, ordered by a key and, if keys are equal, by a number. Items know their indexes, so
// any item can be removed. This package uses it for all queues and timers.
//
// The memory is divided into chunks, because a heap may grow and shrink repeatedly: this needs no copying, and
// unused chunks are freed.
type heap[T item] struct {
	len    int
	chunks []*[chunk]entry[T]
}

const chunk = 32

// item is an item of a heap. The heap calls moved with the item's place: its index counted from 1, or 0 if the
// item was removed.
type item interface{ moved(place int) }

type entry[T item] struct {
	key    int64
	number uint64
	item   T
}

func (e *entry[T]) before(o *entry[T]) bool {
	return e.key < o.key || e.key == o.key && e.number < o.number
}

// at returns the entry at a place.
func (h *heap[T]) at(place int) *entry[T] { return &h.chunks[(place-1)/chunk][(place-1)%chunk] }

// first returns the entry of the first item, or nil.
func (h *heap[T]) first() *entry[T] {
	if h.len == 0 {
		return nil
	}
	return h.at(1)
}

func (h *heap[T]) add(key int64, number uint64, x T) {
	if h.len == len(h.chunks)*chunk {
		h.chunks = append(h.chunks, new([chunk]entry[T]))
	}
	h.len++
	h.up(h.len, entry[T]{key, number, x})
}

// remove removes the item at a place and calls its method moved with 0.
func (h *heap[T]) remove(place int) {
	h.at(place).item.moved(0)
	last := h.at(h.len)
	moving := *last
	*last = entry[T]{}
	h.len--
	// Keep one spare chunk, so that the next item need not allocate it again.
	if spare := h.len/chunk + 2; len(h.chunks) > spare {
		h.chunks[spare] = nil
		h.chunks = h.chunks[:spare]
	}
	switch {
	case place > h.len:
	case place > 1 && moving.before(h.at(place/2)):
		h.up(place, moving)
	default:
		h.down(place, moving)
	}
}

// The children of place i are at 2i and 2i+1.

// up puts an entry at a free place, or closer to the root.
func (h *heap[T]) up(place int, e entry[T]) {
	for place > 1 && e.before(h.at(place/2)) {
		h.set(place, *h.at(place / 2))
		place /= 2
	}
	h.set(place, e)
}

// down puts an entry at a free place, or farther from the root.
func (h *heap[T]) down(place int, e entry[T]) {
	for {
		child := 2 * place
		if child < h.len && h.at(child+1).before(h.at(child)) {
			child++
		}
		if child > h.len || !h.at(child).before(&e) {
			break
		}
		h.set(place, *h.at(child))
		place = child
	}
	h.set(place, e)
}

func (h *heap[T]) set(place int, e entry[T]) {
	*h.at(place) = e
	e.item.moved(place)
}

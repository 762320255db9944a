package beanstalk

// heap keeps items in the order of a key and, where keys are equal, of a number.
// Items know their places, so that any can leave. Everything that waits for its
// turn or its time in this package stands in one of these.
//
// It is cut into chunks, because it may grow long and short again: nothing is
// copied for that, and no room is held for what is not there.
type heap[T item] struct {
	len    int
	chunks []*[chunk]entry[T]
}

const chunk = 32

// item is what stands in a heap. moved tells it its place, which counts from 1
// and holds until the next call; 0 is none.
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

// first returns the first item's entry, or nil.
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

func (h *heap[T]) remove(place int) {
	h.at(place).item.moved(0)
	last := h.at(h.len)
	moving := *last
	*last = entry[T]{}
	h.len--
	// One chunk more than needed stays, lest the next item make it again.
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

// up sets an entry at a place that is free, or nearer to the first.
func (h *heap[T]) up(place int, e entry[T]) {
	for place > 1 && e.before(h.at(place/2)) {
		h.set(place, *h.at(place / 2))
		place /= 2
	}
	h.set(place, e)
}

// down sets an entry at a place that is free, or further from the first.
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

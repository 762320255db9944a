package gearmonkey

// heap is a priority queue of items, ordered by time in Unix milliseconds. Each item knows its index, so that
// it can be removed.
type heap[T interface {
	comparable
	moved(place int) // 0 after removal
}] struct {
	items []entry[T] // items[0] is not used
}

type entry[T any] struct {
	at   int64
	item T
}

// first returns the earliest item, or the zero T.
func (h *heap[T]) first() (item T, at int64) {
	if len(h.items) < 2 {
		return item, 0
	}
	return h.items[1].item, h.items[1].at
}

func (h *heap[T]) add(at int64, item T) {
	if len(h.items) == 0 {
		h.items = make([]entry[T], 1)
	}
	h.items = append(h.items, entry[T]{at, item})
	h.up(len(h.items) - 1)
}

// remove removes the item at a place and calls its method moved with 0.
func (h *heap[T]) remove(place int) {
	last := len(h.items) - 1
	removed := h.items[place].item
	moved := h.items[last]
	h.items[last] = entry[T]{}
	h.items = h.items[:last]
	if place < last {
		h.items[place] = moved
		h.up(h.down(place))
	}
	removed.moved(0)
}

// up moves an item up until its parent is not later.
func (h *heap[T]) up(i int) {
	e := h.items[i]
	for ; i > 1 && e.at < h.items[i/2].at; i /= 2 {
		h.set(i, h.items[i/2])
	}
	h.set(i, e)
}

// down moves an item down until its children are not earlier, and returns its index.
func (h *heap[T]) down(i int) int {
	e := h.items[i]
	for 2*i < len(h.items) {
		child := 2 * i
		if child+1 < len(h.items) && h.items[child+1].at < h.items[child].at {
			child++
		}
		if e.at <= h.items[child].at {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, e)
	return i
}

func (h *heap[T]) set(i int, e entry[T]) {
	h.items[i] = e
	e.item.moved(i)
}

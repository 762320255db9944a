package gearman

// list is a chain whose links live in what they link, so that joining and
// leaving cost no allocation and no search.
type list[T any] struct {
	first, last *place[T]
	len         int
}

// place is one in a list. item says what stands there; it is set once.
type place[T any] struct {
	item       *T
	in         *list[T] // nil while it is in none
	prev, next *place[T]
}

func (l *list[T]) pushBack(k *place[T]) {
	k.in, k.prev, k.next = l, l.last, nil
	if l.last != nil {
		l.last.next = k
	} else {
		l.first = k
	}
	l.last = k
	l.len++
}

// remove takes k out of its list, if it is in one.
func (k *place[T]) remove() {
	l := k.in
	if l == nil {
		return
	}
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		l.last = k.prev
	}
	k.in, k.prev, k.next = nil, nil, nil
	l.len--
}

// all visits the items from the first to the last. The one being visited may
// leave the list.
func (l *list[T]) all(yield func(*T) bool) {
	for k := l.first; k != nil; {
		next := k.next
		if !yield(k.item) {
			return
		}
		k = next
	}
}

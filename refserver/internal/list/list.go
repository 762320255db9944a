// Package list has chains whose links live in what they link, so that joining and leaving
// cost no allocation and no search.
package list

// List is a chain of items. The zero value is empty.
type List[T any] struct {
	first, last *Place[T]
	len         int
}

// Place is one in a list. Item says what stands there; it is set once.
type Place[T any] struct {
	Item       *T
	in         *List[T] // nil while it is in none
	prev, next *Place[T]
}

// Len is the number of items.
func (l *List[T]) Len() int { return l.len }

// First returns the first item, or nil.
func (l *List[T]) First() *T {
	if l.first == nil {
		return nil
	}
	return l.first.Item
}

// PushBack puts a place, which must be in no list, at the end.
func (l *List[T]) PushBack(k *Place[T]) {
	k.in, k.prev, k.next = l, l.last, nil
	if l.last != nil {
		l.last.next = k
	} else {
		l.first = k
	}
	l.last = k
	l.len++
}

// PushFront puts it at the front.
func (l *List[T]) PushFront(k *Place[T]) {
	k.in, k.prev, k.next = l, nil, l.first
	if l.first != nil {
		l.first.prev = k
	} else {
		l.last = k
	}
	l.first = k
	l.len++
}

// Remove takes k out of its list, if it is in one.
func (k *Place[T]) Remove() {
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

// All visits the items from the first to the last. The one being visited may leave the
// list.
func (l *List[T]) All(yield func(*T) bool) {
	for k := l.first; k != nil; {
		next := k.next
		if !yield(k.Item) {
			return
		}
		k = next
	}
}

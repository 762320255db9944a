// Package list implements linked lists whose links are part of the items, so that adding and removing need no
// allocation and no search.
package list

// List is a doubly linked list of items. The zero value is empty.
type List[T any] struct {
	first, last *Element[T]
	len         int
}

// Element is the position of an item in a list. An item has one for each list that it can be in; Item must be set
// before the first use.
type Element[T any] struct {
	Item       *T
	in         *List[T] // nil while it is not in a list
	prev, next *Element[T]
}

// Len returns the number of items.
func (l *List[T]) Len() int { return l.len }

// First returns the first item, or nil if the list is empty.
func (l *List[T]) First() *T {
	if l.first == nil {
		return nil
	}
	return l.first.Item
}

// PushBack adds k, which must not be in a list, to the end.
func (l *List[T]) PushBack(k *Element[T]) {
	k.in, k.prev, k.next = l, l.last, nil
	if l.last != nil {
		l.last.next = k
	} else {
		l.first = k
	}
	l.last = k
	l.len++
}

// PushFront adds k, which must not be in a list, to the front.
func (l *List[T]) PushFront(k *Element[T]) {
	k.in, k.prev, k.next = l, nil, l.first
	if l.first != nil {
		l.first.prev = k
	} else {
		l.last = k
	}
	l.first = k
	l.len++
}

// Remove removes e from its list, if it is in one.
func (e *Element[T]) Remove() {
	l := e.in
	if l == nil {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.in, e.prev, e.next = nil, nil, nil
	l.len--
}

// All iterates over the items from first to last. The current item may be removed from the list.
func (l *List[T]) All(yield func(*T) bool) {
	for k := l.first; k != nil; {
		next := k.next
		if !yield(k.Item) {
			return
		}
		k = next
	}
}

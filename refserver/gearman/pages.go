package gearman

import "math/bits"

// id names an item that stands in pages. 0 names none.
type id uint32

// pages hold many items of one size and name them by number. Items refer to each
// other by these numbers, so that the garbage collector finds no pointers in a
// million jobs and need not look for any. An item keeps its address while it is in.
//
// A page whose items have all gone is given up, but for as many as are in use.
type pages[E any] struct {
	unit  int  // elements that an item takes
	shift uint // a page holds 1<<shift items
	list  []page[E]
	spare [][]E
	room  int // the page to fill next, counted from 1; 0 is none
	used  int // pages that are not empty
	len   int // items
}

// maxPage is the most items that a page can hold.
const maxPage = 1 << maxShift
const maxShift = 10

// page is one of them. What is free in it stands in bits: one for each item, and
// one for each word of those, so that room is found without a search.
type page[E any] struct {
	memory []E // nil while it is empty
	free   [maxPage / 64]uint64
	words  uint64 // which of free are not 0
	len    int
	next   int // page with room, as pages.room
}

// newPages takes the size of an item in elements and the items in a page.
func newPages[E any](unit int, shift uint) pages[E] {
	return pages[E]{unit: unit, shift: shift}
}

// add makes room for an item. What stood there before may still do.
func (p *pages[E]) add() id {
	if p.room == 0 {
		p.grow()
	}
	at := p.room - 1
	g := &p.list[at]
	if g.memory == nil {
		p.used++
		if last := len(p.spare) - 1; last >= 0 {
			g.memory, p.spare = p.spare[last], p.spare[:last]
		} else {
			g.memory = make([]E, p.unit<<p.shift)
		}
	}
	w := bits.TrailingZeros64(g.words) % len(g.free)
	k := bits.TrailingZeros64(g.free[w])
	if g.free[w] &= g.free[w] - 1; g.free[w] == 0 {
		if g.words &= g.words - 1; g.words == 0 {
			p.room = g.next
		}
	}
	g.len++
	p.len++
	return id(at<<p.shift | w<<6 | k)
}

// grow adds a page. The first item of all is left out, since 0 names none.
func (p *pages[E]) grow() {
	var g page[E]
	for k := range 1 << p.shift {
		g.free[k/64] |= 1 << (k % 64)
		g.words |= 1 << (k / 64)
	}
	if len(p.list) == 0 {
		g.free[0] &^= 1
	}
	p.list = append(p.list, g)
	p.room = len(p.list)
}

// remove ends an item's stay.
func (p *pages[E]) remove(i id) {
	at, k := int(i>>p.shift), int(i)&(1<<p.shift-1)
	g := &p.list[at]
	if g.words == 0 {
		g.next, p.room = p.room, at+1
	}
	g.free[k/64] |= 1 << (k % 64)
	g.words |= 1 << (k / 64)
	g.len--
	p.len--
	if g.len > 0 {
		return
	}
	p.used--
	p.spare = append(p.spare, g.memory)
	g.memory = nil
	for last := len(p.spare) - 1; last > p.used; last-- {
		p.spare[last] = nil
		p.spare = p.spare[:last]
	}
}

// at returns an item's memory.
func (p *pages[E]) at(i id) []E {
	k := int(i) & (1<<p.shift - 1) * p.unit
	return p.list[i>>p.shift].memory[k : k+p.unit : k+p.unit]
}

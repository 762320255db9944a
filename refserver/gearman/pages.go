package gearman

import "math/bits"

// id is the number of an item in pages. 0 means no item.
type id uint32

// pages stores many items of one size, which are identified by numbers. Items refer to each other by these numbers, not
// by pointers, so that the garbage collector need not scan a million jobs. The address of an item does not change.
//
// The memory of empty pages is kept for reuse, at most as many pages as are in use.
type pages[E any] struct {
	unit  int  // number of elements of an item
	shift uint // a page holds 1<<shift items
	list  []page[E]
	spare [][]E
	room  int // the first page with free items, counted from 1; 0: none
	used  int // number of pages that are not empty
	len   int // number of items
}

// maxPage is the maximum number of items of a page.
const maxPage = 1 << maxShift
const maxShift = 10

// page is one page. A bitmap has a bit for each free item, and words a bit for each word of the bitmap that is not 0,
// so that a free item is found without a search.
type page[E any] struct {
	memory []E // nil while the page is empty
	free   [maxPage / 64]uint64
	words  uint64 // the words of free that are not 0
	len    int
	next   int // the next page with free items, counted from 1; 0: none
}

// newPages returns pages whose items have unit elements each, and whose pages have 1<<shift items.
func newPages[E any](unit int, shift uint) pages[E] {
	return pages[E]{unit: unit, shift: shift}
}

// add allocates an item. Its memory may contain data of an earlier item.
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

// grow adds a page. The first item of the first page is not used, because the number 0 means no item.
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

// remove frees an item, which must exist.
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

// at returns the memory of an item.
func (p *pages[E]) at(i id) []E {
	k := int(i) & (1<<p.shift - 1) * p.unit
	return p.list[i>>p.shift].memory[k : k+p.unit : k+p.unit]
}

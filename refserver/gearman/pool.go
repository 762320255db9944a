package gearman

// pool stores items of one type in pages. L is an array of links: one for each chain that an item may be in at the same
// time.
type pool[T any, L links] struct {
	pages[node[T, L]]
	// the pages with the elements; a page is an array, so that indexing needs no bounds checks
	nodes []*[maxPage]node[T, L]
}

type node[T any, L links] struct {
	links L
	item  T
}

type links interface {
	[0]link | [1]link | [2]link
}

// link is the position of an item in a chain: its neighbors.
type link struct{ prev, next id }

func newPool[T any, L links]() pool[T, L] {
	return pool[T, L]{pages: newPages[node[T, L]](1, maxShift)}
}

func (p *pool[T, L]) node(i id) *node[T, L] {
	return &p.nodes[i>>maxShift][i%maxPage]
}

// at returns an item.
func (p *pool[T, L]) at(i id) *T { return &p.node(i).item }

// add allocates an item with the zero value.
func (p *pool[T, L]) add() (id, *T) {
	i := p.pages.add()
	for len(p.nodes) < len(p.list) {
		p.nodes = append(p.nodes, nil)
	}
	if at := i >> maxShift; p.nodes[at] == nil {
		p.nodes[at] = (*[maxPage]node[T, L])(p.list[at].memory)
	}
	return i, p.at(i)
}

// remove frees an item, which must not be in a chain.
func (p *pool[T, L]) remove(i id) {
	*p.node(i) = node[T, L]{}
	p.pages.remove(i)
	if at := i >> maxShift; p.list[at].memory == nil {
		p.nodes[at] = nil
	}
}

// chain is a doubly linked list of items of a pool. Adding and removing take constant time and no memory.
type chain struct {
	first, last id
	len         int32
}

// pushBack adds i to the end of c, with the k-th link of the item.
func (p *pool[T, L]) pushBack(c *chain, k int, i id) {
	p.node(i).links[k] = link{prev: c.last}
	if c.last != 0 {
		p.node(c.last).links[k].next = i
	} else {
		c.first = i
	}
	c.last = i
	c.len++
}

// pushFront adds i to the beginning of c, with the k-th link of the item.
func (p *pool[T, L]) pushFront(c *chain, k int, i id) {
	p.node(i).links[k] = link{next: c.first}
	if c.first != 0 {
		p.node(c.first).links[k].prev = i
	} else {
		c.last = i
	}
	c.first = i
	c.len++
}

// unlink removes i from c; i must be in c.
func (p *pool[T, L]) unlink(c *chain, k int, i id) {
	l := p.node(i).links[k]
	if l.prev != 0 {
		p.node(l.prev).links[k].next = l.next
	} else {
		c.first = l.next
	}
	if l.next != 0 {
		p.node(l.next).links[k].prev = l.prev
	} else {
		c.last = l.prev
	}
	c.len--
}

// in iterates over the items of c from first to last. The current item may be removed from the chain and from the pool.
func (p *pool[T, L]) in(c *chain, k int) func(yield func(id, *T) bool) {
	return func(yield func(id, *T) bool) {
		for i := c.first; i != 0; {
			n := p.node(i)
			next := n.links[k].next
			if !yield(i, &n.item) {
				return
			}
			i = next
		}
	}
}

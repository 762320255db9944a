package gearman

// index is a hash table of items by 32-bit hashes; different items rarely have the same hash.
//
// It consists of parts, each for the hashes with the same leading bits. When a part is full, only this part
// grows or is split, so that no addition takes long, as it would if the whole table grew.
type index struct {
	// parts by the leading bits of the hash; a part that covers fewer bits is in several consecutive elements
	parts []*part
	bits  int // number of leading bits
	len   int
}

// part is a hash table with linear probing: the trailing bits of a hash select the slot of an entry, or the next free
// slot is used.
type part struct {
	bits  int // number of leading bits that its hashes have in common
	slots []slot
	len   int
}

type slot struct {
	hash uint32
	item id // 0 while the slot is free
}

// A part starts with minSlots and doubles up to maxSlots, then it is split. If its hashes have maxBits leading bits in
// common, it doubles beyond maxSlots instead.
const (
	minSlots = 16
	maxSlots = 8192
	maxBits  = 20
)

func (ix *index) part(hash uint32) *part { return ix.parts[hash>>(32-ix.bits)] }

// find returns the item with the hash for which is returns true, or 0.
func (ix *index) find(hash uint32, is func(id) bool) id {
	if ix.len == 0 {
		return 0
	}
	slots := ix.part(hash).slots
	for k := hash; ; k++ {
		s := slots[int(k)&(len(slots)-1)]
		if s.item == 0 || s.hash == hash && is(s.item) {
			return s.item
		}
	}
}

// add adds an item with its hash, after it has grown or split the part for the hash if that part is full.
func (ix *index) add(hash uint32, i id) {
	if ix.parts == nil {
		ix.parts = []*part{{slots: make([]slot, minSlots)}}
	}
	for ix.part(hash).full() {
		ix.divide(hash)
	}
	ix.part(hash).add(slot{hash, i})
	ix.len++
}

func (p *part) full() bool { return p.len >= len(p.slots)/4*3 }

func (p *part) add(s slot) {
	k := s.hash
	for p.slots[int(k)&(len(p.slots)-1)].item != 0 {
		k++
	}
	p.slots[int(k)&(len(p.slots)-1)] = s
	p.len++
}

// divide makes room for a hash in its part: it doubles the part, or replaces it by two.
func (ix *index) divide(hash uint32) {
	old := ix.part(hash)
	if size := len(old.slots); size < maxSlots || old.bits == maxBits {
		slots := old.slots
		old.slots, old.len = make([]slot, 2*size), 0
		old.addAll(slots)
		return
	}
	if old.bits == ix.bits {
		parts := make([]*part, 2*len(ix.parts))
		for k := range parts {
			parts[k] = ix.parts[k/2]
		}
		ix.parts = parts
		ix.bits++
	}
	bits := old.bits + 1
	two := [2]*part{{bits: bits, slots: make([]slot, maxSlots)}, {bits: bits, slots: make([]slot, maxSlots)}}
	for _, s := range old.slots {
		if s.item != 0 {
			two[s.hash>>(32-bits)&1].add(s)
		}
	}
	places := len(ix.parts) >> old.bits
	first := int(hash>>(32-old.bits)) * places
	for k := range places {
		ix.parts[first+k] = two[2*k/places]
	}
}

func (p *part) addAll(slots []slot) {
	for _, s := range slots {
		if s.item != 0 {
			p.add(s)
		}
	}
}

// remove removes an item, which must be in the index.
func (ix *index) remove(hash uint32, i id) {
	p := ix.part(hash)
	last := len(p.slots) - 1
	gap := int(hash) & last
	for p.slots[gap].item != i {
		gap = (gap + 1) & last
	}
	// Move later entries into the gap, unless that would put them before the slot that their hash selects.
	for k := (gap + 1) & last; p.slots[k].item != 0; k = (k + 1) & last {
		if (k-int(p.slots[k].hash))&last >= (k-gap)&last {
			p.slots[gap] = p.slots[k]
			gap = k
		}
	}
	p.slots[gap] = slot{}
	p.len--
	if ix.len--; ix.len == 0 && ix.bits > 0 {
		*ix = index{} // frees the memory of a large index
	}
}

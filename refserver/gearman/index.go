package gearman

// index finds items by a hash, which tells nearly all of them apart.
//
// It consists of parts, one for all hashes that begin with the same bits. Only a
// part that is full is divided, so that no addition takes long, as one would at
// which all grows.
type index struct {
	parts []*part // by the first bits of the hash; one that is for fewer bits stands at several places
	bits  int     // how many
	len   int
}

// part holds its entries at the place that their hashes' last bits say, or
// in the next that is free.
type part struct {
	bits  int // that its hashes begin with
	slots []slot
	len   int
}

type slot struct {
	hash uint32
	item id // 0 while the slot is free
}

// A part begins small, and is divided when it would outgrow maxSlots. If hashes
// are alike in maxBits it grows nevertheless.
const (
	minSlots = 16
	maxSlots = 8192
	maxBits  = 20
)

func (x *index) part(hash uint32) *part { return x.parts[hash>>(32-x.bits)] }

// find returns the item with that hash that is the one, or 0.
func (x *index) find(hash uint32, is func(id) bool) id {
	if x.len == 0 {
		return 0
	}
	slots := x.part(hash).slots
	for k := hash; ; k++ {
		s := slots[int(k)&(len(slots)-1)]
		if s.item == 0 || s.hash == hash && is(s.item) {
			return s.item
		}
	}
}

func (x *index) add(hash uint32, i id) {
	if x.parts == nil {
		x.parts = []*part{{slots: make([]slot, minSlots)}}
	}
	for x.part(hash).full() {
		x.divide(hash)
	}
	x.part(hash).add(slot{hash, i})
	x.len++
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

// divide makes room in the part for a hash: it doubles the part, or puts two in
// its place.
func (x *index) divide(hash uint32) {
	old := x.part(hash)
	if size := len(old.slots); size < maxSlots || old.bits == maxBits {
		slots := old.slots
		old.slots, old.len = make([]slot, 2*size), 0
		old.addAll(slots)
		return
	}
	if old.bits == x.bits {
		parts := make([]*part, 2*len(x.parts))
		for k := range parts {
			parts[k] = x.parts[k/2]
		}
		x.parts = parts
		x.bits++
	}
	bits := old.bits + 1
	two := [2]*part{{bits: bits, slots: make([]slot, maxSlots)}, {bits: bits, slots: make([]slot, maxSlots)}}
	for _, s := range old.slots {
		if s.item != 0 {
			two[s.hash>>(32-bits)&1].add(s)
		}
	}
	places := len(x.parts) >> old.bits
	first := int(hash>>(32-old.bits)) * places
	for k := range places {
		x.parts[first+k] = two[2*k/places]
	}
}

func (p *part) addAll(slots []slot) {
	for _, s := range slots {
		if s.item != 0 {
			p.add(s)
		}
	}
}

// remove takes out an item that is in.
func (x *index) remove(hash uint32, i id) {
	p := x.part(hash)
	last := len(p.slots) - 1
	gap := int(hash) & last
	for p.slots[gap].item != i {
		gap = (gap + 1) & last
	}
	// Those behind it move up, unless that took them before their own place.
	for k := (gap + 1) & last; p.slots[k].item != 0; k = (k + 1) & last {
		if (k-int(p.slots[k].hash))&last >= (k-gap)&last {
			p.slots[gap] = p.slots[k]
			gap = k
		}
	}
	p.slots[gap] = slot{}
	p.len--
	if x.len--; x.len == 0 && x.bits > 0 {
		*x = index{} // it was large once
	}
}

package beanstalk

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"jobwire/refserver"
)

// testItem is an item of the heap under test.
type testItem struct {
	key    int64
	number uint64
	place  int
}

func (t *testItem) moved(place int) { t.place = place }

// TestHeap checks that the first item is always the smallest, and that every item knows its place, after any
// additions and removals.
func TestHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h heap[*testItem]
	var in []*testItem
	for n := range uint64(20_000) {
		if len(in) == 0 || rng.IntN(1000) < 520-int(n/100) { // it grows, then shrinks
			x := &testItem{key: int64(rng.IntN(50)), number: n}
			h.add(x.key, n, x)
			in = append(in, x)
		} else {
			i := rng.IntN(len(in))
			x := in[i]
			h.remove(x.place)
			in = slices.Delete(in, i, i+1)
			if x.place != 0 {
				t.Fatalf("what has left is told place %d", x.place)
			}
		}
		if h.len != len(in) {
			t.Fatalf("length %d, want %d", h.len, len(in))
		}
		if n%100 != 0 || len(in) == 0 {
			continue
		}
		least := slices.MinFunc(in, func(a, b *testItem) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
		})
		if h.first().item != least {
			t.Fatalf("first is %v, want %v", *h.first().item, *least)
		}
		for _, x := range in {
			if h.at(x.place).item != x {
				t.Fatalf("%v is not at place %d", *x, x.place)
			}
		}
	}
	if len(h.chunks) > h.len/chunk+2 {
		t.Errorf("%d chunks are held for %d entries", len(h.chunks), h.len)
	}
}

// TestRoomIsUsedAgain checks that the memory of deleted jobs is reused, and that a few remaining jobs take
// little memory.
func TestRoomIsUsedAgain(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, m *Machine, dial func() peerOf) {
		p := dial()
		for range 20 * pageSize {
			p.want("delete "+p.put(0, 0, 100, "x"), "DELETED")
		}
		var kept []string
		for i := range 20 * pageSize {
			id := p.put(0, 0, 100, "x")
			if i%(4*pageSize) == 0 {
				kept = append(kept, id)
			} else {
				p.want("delete "+id, "DELETED")
			}
		}
		for _, id := range kept {
			p.want("peek "+id, "FOUND "+id+" x")
		}
		if n := len(m.jobs.pages); n > len(kept)+1 {
			t.Errorf("%d pages are held for %d jobs", n, len(kept))
		}
		p.want("peek 0", "NOT_FOUND")
		p.want("delete 18446744073709551615", "NOT_FOUND")
	})
}

package gearman

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestPool adds and removes items at random. Each item must keep its address, its value and a unique ID, and memory must be freed when
// few items are left.
func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	p := newPool[int, [2]link]()
	type entry struct {
		at    *int
		value int
	}
	in := map[id]entry{}
	var ids []id
	add := func() {
		i, at := p.add()
		if _, taken := in[i]; taken || i == 0 || *at != 0 {
			t.Fatalf("a new item has ID %d and holds %d", i, *at)
		}
		*at = rng.Int()
		in[i] = entry{at, *at}
		ids = append(ids, i)
	}
	remove := func() {
		k := rng.IntN(len(ids))
		i := ids[k]
		if e := in[i]; p.at(i) != e.at || *e.at != e.value {
			t.Fatalf("item %d has moved or changed", i)
		}
		p.remove(i)
		delete(in, i)
		ids[k] = ids[len(ids)-1]
		ids = ids[:len(ids)-1]
	}
	for _, most := range []int{10, 5000, 100, 20_000, 3} {
		for len(ids) < most {
			add()
		}
		for range 2 * most {
			add()
			remove()
		}
		for len(ids) > most/2 {
			remove()
		}
		if p.len != len(ids) {
			t.Fatalf("%d items, len %d", len(ids), p.len)
		}
	}
	pages := len(p.spare)
	for _, g := range p.list {
		if g.memory != nil {
			pages++
		}
	}
	if pages > 3 {
		t.Errorf("one item is left, and %d pages", pages)
	}
}

// TestChain tests that items that are added at both ends of a chain and removed anywhere stay in order, also if they
// are in two chains.
func TestChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	p := newPool[int, [2]link]()
	var chains [2]chain
	var want [2][]id
	for range 20 {
		i, at := p.add()
		*at = int(i)
	}
	for range 3000 {
		k := rng.IntN(2)
		i := id(1 + rng.IntN(20))
		switch at := slices.Index(want[k], i); {
		case at >= 0:
			p.unlink(&chains[k], k, i)
			want[k] = slices.Delete(want[k], at, at+1)
		case rng.IntN(2) == 0:
			p.pushBack(&chains[k], k, i)
			want[k] = append(want[k], i)
		default:
			p.pushFront(&chains[k], k, i)
			want[k] = slices.Insert(want[k], 0, i)
		}
		var got []id
		for i, v := range p.in(&chains[k], k) {
			if int(i) != *v {
				t.Fatalf("item %d holds %d", i, *v)
			}
			got = append(got, i)
		}
		if !slices.Equal(got, want[k]) || int(chains[k].len) != len(got) {
			t.Fatalf("got %v, want %v", got, want[k])
		}
	}
}

// TestIndex tests that an index finds each item that was added and not removed, whatever the distribution of the
// hashes.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, hash := range map[string]func(id) uint32{
		"spread":         func(i id) uint32 { return uint32(i) * 0x9e3779b1 },
		"all alike":      func(id) uint32 { return 7 },
		"alike in front": func(i id) uint32 { return 0xabcd0000 | uint32(i)&0xffff },
		"alike in back":  func(i id) uint32 { return uint32(i)<<16 | 0xfff0 },
	} {
		t.Run(name, func(t *testing.T) {
			most, changes := 30_000, 100_000
			if name == "all alike" || name == "alike in back" {
				most, changes = 6500, 8000 // more than fit into one part
			}
			var x index
			in := map[id]bool{}
			find := func(i id) id { return x.find(hash(i), func(k id) bool { return k == i }) }
			for range changes {
				i := id(1 + rng.IntN(2*most))
				if len(in) >= most {
					for i = range in {
						break
					}
				}
				want := id(0)
				if in[i] {
					want = i
				}
				if got := find(i); got != want {
					t.Fatalf("found %d, want %d", got, want)
				}
				if in[i] {
					x.remove(hash(i), i)
					delete(in, i)
				} else {
					x.add(hash(i), i)
					in[i] = true
				}
			}
			for i := range in {
				if find(i) != i {
					t.Fatalf("%d is lost", i)
				}
			}
			for i := range in {
				x.remove(hash(i), i)
			}
			if x.len != 0 || find(1) != 0 {
				t.Errorf("%d are left", x.len)
			}
		})
	}
}

// TestHandleIndex tests that the index of handles finds the job of each number that is in use, and frees its memory
// when numbers are removed.
func TestHandleIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	n := newHandleIndex()
	in := map[uint64]id{}
	for next := uint64(1); next < 100_000; next++ {
		n.add(next, id(next%1000+1))
		in[next] = id(next%1000 + 1)
		for k := range in {
			if len(in) > 300 && k%1000 != 0 {
				n.remove(k)
				delete(in, k)
			}
			break
		}
		if k := rng.Uint64N(next + 10); n.find(k) != in[k] {
			t.Fatalf("number %d: %d, want %d", k, n.find(k), in[k])
		}
	}
	for k := range maps.Clone(in) {
		n.remove(k)
	}
	if len(n.blocks) != 0 {
		t.Errorf("%d blocks are left", len(n.blocks))
	}
}

// TestBlobStore tests that each stored text stays the same until it is removed, and that the memory for a short text is
// at most half as large again as the text.
func TestBlobStore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := newBlobStore()
	in := map[text][]byte{}
	sizes := []int{0, 1, 15, 16, 17, 24, 25, 1000, largest - 1, largest, largest + 1, 100_000}
	for range 5000 {
		size := sizes[rng.IntN(len(sizes))]
		if rng.IntN(2) == 0 {
			size = rng.IntN(300)
		}
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		cut := rng.IntN(size + 1)
		in[s.add(b[:cut], b[cut:])] = b
		for k, want := range in {
			if got := s.bytes(k); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes have changed", len(want))
			}
			if len(in) > 200 {
				s.remove(k)
				delete(in, k)
			}
			break
		}
	}
	for size := 1; size <= largest; size++ {
		if unit := s.classes[class(uint32(size))].unit; unit < size || unit > smallest && unit > size*3/2 {
			t.Fatalf("%d bytes take %d", size, unit)
		}
	}
}

// TestUniqueIDLookupMatchesLinearSearch compares the lookups of the store with a search of all jobs, for jobs of several functions with few
// unique IDs.
func TestUniqueIDLookupMatchesLinearSearch(t *testing.T) {
	m := New(Options{}).(*machine)
	rng := rand.New(rand.NewPCG(1, 1))
	type entry struct {
		fn, unique, workload string
		job                  *job
	}
	var in []entry
	for range 20_000 {
		e := entry{fmt.Sprint(rng.IntN(4)), []string{"", "-", "a", "b", "1"}[rng.IntN(5)], fmt.Sprint(rng.IntN(3)), nil}
		fn := m.functionNamed([]byte(e.fn))
		var want, oldest *job
		for _, o := range in {
			if e.unique != "" && o.fn == e.fn && o.unique == e.unique && (e.unique != "-" || o.workload == e.workload) {
				want = o.job
			}
			if o.unique == e.unique && oldest == nil {
				oldest = o.job
			}
		}
		if got := m.jobToMerge(fn, []byte(e.unique), []byte(e.workload)); got != want {
			t.Fatalf("%+v joins %v, want %v", e, got, want)
		}
		if got := m.oldest([]byte(e.unique)); got != oldest && e.unique != "" {
			t.Fatalf("the oldest job with %q is %v, want %v", e.unique, got, oldest)
		}
		if want == nil && len(in) < 30 {
			fn.total++
			e.job = m.add(fn, []byte(e.unique), nil, []byte(e.workload))
			in = append(in, e)
		} else if len(in) > 0 {
			k := rng.IntN(len(in))
			m.end(in[k].job)
			in = slices.Delete(in, k, k+1)
		}
	}
}

// fill queues background jobs.
func fill(m *machine, jobs int, named bool) {
	fn := m.functionNamed([]byte("f"))
	workload := []byte("sixteen bytes ok")
	var unique []byte
	for i := range jobs {
		if named {
			unique = fmt.Appendf(unique[:0], "unique-%d", i)
			if m.jobToMerge(fn, unique, workload) != nil {
				panic("a job has another's unique ID")
			}
		}
		fn.total++
		j := m.add(fn, unique, nil, workload)
		j.priority, j.background = normal, true
		m.enqueue(j)
	}
}

// size returns the size of all objects on the heap in bytes.
func size() int {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// TestMemory checks how much memory a queued job with a workload of 16 bytes takes, and that it is freed.
func TestMemory(t *testing.T) {
	const jobs = 200_000
	for _, c := range []struct {
		named bool
		most  int // bytes per job
	}{{false, 120}, {true, 230}} {
		m := New(Options{}).(*machine)
		before := size()
		fill(m, jobs, c.named)
		if each := (size() - before) / jobs; each > c.most {
			t.Errorf("with unique IDs: %v: a queued job takes %d bytes, more than %d", c.named, each, c.most)
		}
		for i := range m.byNumber.all {
			m.end(m.jobs.at(i))
		}
		if left := size() - before; left > 2<<20 {
			t.Errorf("with unique IDs: %v: %d bytes are left of %d jobs", c.named, left, jobs)
		}
		runtime.KeepAlive(m)
	}
}

// TestSizesOfJobs checks that jobs of any size are stored unchanged, and that their memory can be reused.
func TestSizesOfJobs(t *testing.T) {
	m := New(Options{}).(*machine)
	fn := m.functionNamed([]byte("f"))
	for range 3 {
		var jobs []*job
		for size := 1; size < 100_000; size = size*5/4 + 1 {
			jobs = append(jobs, m.add(fn, []byte(fmt.Sprint("u", size)), []byte("sum"), []byte(strings.Repeat("w", size))))
		}
		fn.total += len(jobs)
		size := 1
		for _, j := range jobs {
			unique, reducer, workload := m.parts(j)
			if string(unique) != fmt.Sprint("u", size) || string(reducer) != "sum" || string(workload) != strings.Repeat("w", size) {
				t.Errorf("%q, %q and %d bytes, want %d", unique, reducer, len(workload), size)
			}
			if m.find(m.handle(j)) != j {
				t.Errorf("%s is not found", m.handle(j))
			}
			size = size*5/4 + 1
		}
		for _, j := range jobs {
			m.end(j)
		}
		fn = m.functionNamed([]byte("f"))
	}
}

package input

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"jobwire/codec"
)

// Limits of the corpus, not counting the seeds: inputs, and bytes of inputs. Above a limit, a new input replaces the
// one with the least energy of some random ones.
const (
	maxCorpus = 8000
	maxBytes  = 48 << 20
	compared  = 16
)

// coverageBits is the binary logarithm of the size of the coverage map, which counts 1<<coverageBits different
// features.
const coverageBits = 18

// Corpus contains the seeds and the inputs that reached new coverage, with the history from which their energy is
// computed. It is safe for concurrent use.
type Corpus struct {
	mu         sync.Mutex
	hits       [1 << coverageBits]uint32 // how often each feature appeared
	reached    int                       // number of different features that appeared
	entries    []*CorpusEntry
	seeds      int
	bytes      int               // size of the inputs that are not seeds
	r          *rand.Rand        // chooses the inputs to compare when one must be replaced
	seedsLeft  map[bool][]*Input // seeds that were not run yet, by whether they contain pauses
	clean      map[string]*Input // inputs that leave nothing on the server, by shape
	leakTested map[string]bool   // shapes of the inputs that were repeated to look for leaks

	repeated map[string]bool // message classes of the inputs that were repeated to look for leaks
}

// CorpusEntry is an input of the corpus and the results of its mutations.
type CorpusEntry struct {
	Input  *Input
	rare   uint32 // its rarest feature
	picked int
	finds  int // how many of its mutations reached new coverage
	fails  int // how many of its mutations caused a failure that was already known
}

// NewCorpus returns a corpus of the seeds.
func NewCorpus(seeds []*Input) *Corpus {
	p := &Corpus{seeds: len(seeds), r: NewRand(uint64(len(seeds))), seedsLeft: map[bool][]*Input{},
		clean:      map[string]*Input{},
		leakTested: map[string]bool{}, repeated: map[string]bool{}}
	for _, in := range seeds {
		pauses := in.Waits() > 0
		p.seedsLeft[pauses] = append(p.seedsLeft[pauses], in)
		p.entries = append(p.entries, &CorpusEntry{Input: in})
	}
	return p
}

// Add counts the features, the coverage of an input, and adds the input to the corpus if a feature is new. It reports
// whether it has added the input. parent is the entry that was mutated, or nil.
func (co *Corpus) Add(in *Input, parent *CorpusEntry, features []uint64) bool {
	co.mu.Lock()
	defer co.mu.Unlock()
	fresh := false
	rare := uint32(0)
	for i, e := range features {
		at := uint32(e >> (64 - coverageBits))
		if co.hits[at]++; co.hits[at] == 1 {
			co.reached++
			fresh = true
		}
		if i == 0 || co.hits[at] < co.hits[rare] {
			rare = at
		}
	}
	if !fresh {
		return false
	}
	if parent != nil {
		parent.finds++
	}
	e := &CorpusEntry{Input: in, rare: rare}
	co.bytes += in.Bytes()
	for len(co.entries) > co.seeds && (len(co.entries)-co.seeds >= maxCorpus || co.bytes > maxBytes) {
		co.removeLeast()
	}
	co.entries = append(co.entries, e)
	return true
}

// removeLeast removes the input with the least energy of some random ones. It keeps the order of the others, because
// recent inputs are often selected.
func (co *Corpus) removeLeast() {
	own := co.entries[co.seeds:]
	at := co.r.IntN(len(own))
	for range compared {
		if i := co.r.IntN(len(own)); co.energy(own[i]) < co.energy(own[at]) {
			at = i
		}
	}
	co.bytes -= own[at].Input.Bytes()
	co.entries = slices.Delete(co.entries, co.seeds+at, co.seeds+at+1)
}

// big is the size in bytes above which an input is seldom mutated, because its execution takes long.
const big = 128 << 10

// SelectEntry selects an input for mutation: the one with the most energy of three random ones. It returns nil if the
// corpus is empty.
func (co *Corpus) SelectEntry(r *rand.Rand) *CorpusEntry {
	co.mu.Lock()
	defer co.mu.Unlock()
	var best *CorpusEntry
	for range 3 {
		e := co.any(r)
		if e == nil {
			return nil
		}
		if best == nil || co.energy(e) > co.energy(best) {
			best = e
		}
	}
	best.picked++
	return best
}

// energy returns the weight of an input in the selection and in the limit of the corpus. Inputs with rare features,
// with successful mutations and with few mutations have more energy. Large inputs, and inputs whose mutations repeat
// known failures, have less.
func (co *Corpus) energy(e *CorpusEntry) float64 {
	score := float64(1+4*e.finds) / float64(4+e.picked+16*e.fails)
	if n := co.hits[e.rare]; n > 0 && n < 16 {
		score *= 2
	}
	if e.Input.Bytes() > big {
		score /= 16
	}
	return score
}

// any returns a random input, with a preference for seeds and recent inputs. It returns nil if the corpus is empty.
func (co *Corpus) any(r *rand.Rand) *CorpusEntry {
	n := len(co.entries)
	if n == 0 {
		return nil
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		if co.seeds > 0 {
			return co.entries[r.IntN(co.seeds)]
		}
	case 3, 4, 5:
		if n > 64 {
			return co.entries[n-1-r.IntN(64)]
		}
	}
	return co.entries[r.IntN(n)]
}

// Failed lowers the energy of an input because one of its mutations caused a known failure. e may be nil.
func (co *Corpus) Failed(e *CorpusEntry) {
	if e != nil {
		co.mu.Lock()
		e.fails++
		co.mu.Unlock()
	}
}

// Seed returns the next seed that was not run yet, from the seeds with or without pauses. It returns nil if there is
// none.
func (co *Corpus) Seed(pauses bool) *Input {
	co.mu.Lock()
	defer co.mu.Unlock()
	left := co.seedsLeft[pauses]
	if len(left) == 0 {
		return nil
	}
	co.seedsLeft[pauses] = left[1:]
	return left[0]
}

// Limits of the inputs that are repeated to look for leaks: steps of an input, and number of inputs kept.
const (
	maxLeakSteps = 6
	maxClean     = 2000
)

// AddClean keeps an input for the search for leaks. The input must leave nothing on the server. Long inputs, bursts and
// inputs with pauses are ignored.
func (co *Corpus) AddClean(proto *codec.Protocol, in *Input) {
	if len(in.Steps) > maxLeakSteps || in.Mode == Burst || in.Waits() > 0 || in.Bytes() > big {
		return
	}
	shape := in.Shape(proto)
	co.mu.Lock()
	defer co.mu.Unlock()
	if !co.leakTested[shape] && len(co.clean) < maxClean {
		co.clean[shape] = in
	}
}

// LeakInputs removes and returns up to n inputs for the search for leaks, one for each shape. Inputs with a message
// class that was not repeated yet come first, and then shorter inputs.
func (co *Corpus) LeakInputs(n int) (all []*Input) {
	co.mu.Lock()
	defer co.mu.Unlock()
	order := func(a, b string) int {
		if x, y := co.isNew(a), co.isNew(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(len(co.clean[a].Steps), len(co.clean[b].Steps)), cmp.Compare(a, b))
	}
	for len(all) < n && len(co.clean) > 0 {
		shape := slices.MinFunc(slices.Collect(maps.Keys(co.clean)), order)
		co.leakTested[shape] = true
		all = append(all, co.clean[shape])
		delete(co.clean, shape)
		for class := range strings.FieldsSeq(shape) {
			co.repeated[class] = true
		}
	}
	return all
}

// isNew reports whether a shape contains a message class that was not repeated yet.
func (co *Corpus) isNew(shape string) bool {
	for class := range strings.FieldsSeq(shape) {
		if !co.repeated[class] {
			return true
		}
	}
	return false
}

// Size returns the number of inputs, and of different features that inputs have reached.
func (co *Corpus) Size() (inputs, features int) {
	co.mu.Lock()
	defer co.mu.Unlock()
	return len(co.entries), co.reached
}

// Added returns the inputs that are not seeds.
func (co *Corpus) Added() (all []*Input) {
	for _, e := range co.entries[co.seeds:] {
		all = append(all, e.Input)
	}
	return all
}

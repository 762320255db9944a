package fuzz

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"jobwire/codec"
)

// Limits of the corpus, not counting the seeds: inputs, and bytes of inputs. Above a limit, a new input replaces an old
// one.
const (
	maxCorpus = 20000
	maxBytes  = 48 << 20
)

// coverageBits is the binary logarithm of the size of the coverage map, which counts 1<<coverageBits different
// features.
const coverageBits = 18

// corpus contains the seeds and the inputs that reached new coverage, with the history from which their energy is
// computed. It is safe for concurrent use.
type corpus struct {
	mu         sync.Mutex
	hits       [1 << coverageBits]uint32 // how often each feature appeared
	reached    int                       // number of different features that appeared
	entries    []*corpusEntry
	seeds      int
	bytes      int               // size of the inputs that are not seeds
	seedsLeft  map[bool][]*Input // seeds that were not run yet, by whether they contain pauses
	clean      map[string]*Input // inputs that leave nothing on the server, by shape
	leakTested map[string]bool   // shapes of the inputs that were repeated to look for leaks

	repeated map[string]bool // message classes of the inputs that were repeated to look for leaks
}

// corpusEntry is an input of the corpus and the results of its mutations.
type corpusEntry struct {
	input  *Input
	rare   uint32 // its rarest feature
	picked int
	finds  int // how many of its mutations reached new coverage
	fails  int // how many of its mutations caused a failure that was already known
}

func newCorpus(seeds []*Input) *corpus {
	p := &corpus{seeds: len(seeds), seedsLeft: map[bool][]*Input{}, clean: map[string]*Input{},
		leakTested: map[string]bool{}, repeated: map[string]bool{}}
	for _, c := range seeds {
		pauses := c.waits() > 0
		p.seedsLeft[pauses] = append(p.seedsLeft[pauses], c)
		p.entries = append(p.entries, &corpusEntry{input: c})
	}
	return p
}

// add counts the features of an input, and adds the input to the corpus if a feature is new. It reports whether it has
// added the input. parent is the entry that was mutated, or nil.
func (p *corpus) add(c *Input, parent *corpusEntry, r *Record) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := false
	rare := uint32(0)
	for i, e := range r.features {
		at := uint32(e >> (64 - coverageBits))
		if p.hits[at]++; p.hits[at] == 1 {
			p.reached++
			fresh = true
		}
		if i == 0 || p.hits[at] < p.hits[rare] {
			rare = at
		}
	}
	if !fresh {
		return false
	}
	if parent != nil {
		parent.finds++
	}
	e := &corpusEntry{input: c, rare: rare}
	p.bytes += c.bytes()
	if own := len(p.entries) - p.seeds; own > 0 && (own >= maxCorpus || p.bytes > maxBytes) {
		at := p.seeds + p.reached%own
		p.bytes -= p.entries[at].input.bytes()
		p.entries[at] = e
	} else {
		p.entries = append(p.entries, e)
	}
	return true
}

// big is the size in bytes above which an input is seldom mutated, because its execution takes long.
const big = 128 << 10

// selectEntry selects an input for mutation: the one with the most energy of three random ones. It returns nil if the
// corpus is empty.
func (p *corpus) selectEntry(r *rand.Rand) *corpusEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *corpusEntry
	for range 3 {
		e := p.any(r)
		if e == nil {
			return nil
		}
		if best == nil || p.energy(e) > p.energy(best) {
			best = e
		}
	}
	best.picked++
	return best
}

// energy returns the weight of an input in the selection. Inputs with rare features and with successful mutations have
// more energy. Large inputs, and inputs whose mutations repeat known failures, have less.
func (p *corpus) energy(e *corpusEntry) float64 {
	score := float64(1+4*e.finds) / float64(4+e.picked+16*e.fails)
	if n := p.hits[e.rare]; n > 0 && n < 16 {
		score *= 2
	}
	if e.input.bytes() > big {
		score /= 16
	}
	return score
}

// any returns a random input, with a preference for seeds and recent inputs. It returns nil if the corpus is empty.
func (p *corpus) any(r *rand.Rand) *corpusEntry {
	n := len(p.entries)
	if n == 0 {
		return nil
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		if p.seeds > 0 {
			return p.entries[r.IntN(p.seeds)]
		}
	case 3, 4, 5:
		if n > 64 {
			return p.entries[n-1-r.IntN(64)]
		}
	}
	return p.entries[r.IntN(n)]
}

// failed lowers the energy of an input because one of its mutations caused a known failure. e may be nil.
func (p *corpus) failed(e *corpusEntry) {
	if e != nil {
		p.mu.Lock()
		e.fails++
		p.mu.Unlock()
	}
}

// seed returns the next seed that was not run yet, from the seeds with or without pauses. It returns nil if there is
// none.
func (p *corpus) seed(pauses bool) *Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.seedsLeft[pauses]
	if len(left) == 0 {
		return nil
	}
	p.seedsLeft[pauses] = left[1:]
	return left[0]
}

// Limits of the inputs that are repeated to look for leaks: steps of an input, and number of inputs kept.
const (
	maxLeakSteps = 6
	maxClean     = 2000
)

// addClean keeps an input for the search for leaks. The input must leave nothing on the server. Long inputs, bursts and
// inputs with pauses are ignored.
func (p *corpus) addClean(proto *codec.Protocol, c *Input) {
	if len(c.Steps) > maxLeakSteps || c.Mode == Burst || c.waits() > 0 || c.bytes() > big {
		return
	}
	shape := c.shape(proto)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leakTested[shape] && len(p.clean) < maxClean {
		p.clean[shape] = c
	}
}

// leakInputs removes and returns up to n inputs for the search for leaks, one for each shape. Inputs with a message
// class that was not repeated yet come first, and then shorter inputs.
func (p *corpus) leakInputs(n int) (all []*Input) {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := func(a, b string) int {
		if x, y := p.isNew(a), p.isNew(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(len(p.clean[a].Steps), len(p.clean[b].Steps)), cmp.Compare(a, b))
	}
	for len(all) < n && len(p.clean) > 0 {
		shape := slices.MinFunc(slices.Collect(maps.Keys(p.clean)), order)
		p.leakTested[shape] = true
		all = append(all, p.clean[shape])
		delete(p.clean, shape)
		for class := range strings.FieldsSeq(shape) {
			p.repeated[class] = true
		}
	}
	return all
}

// isNew reports whether a shape contains a message class that was not repeated yet.
func (p *corpus) isNew(shape string) bool {
	for class := range strings.FieldsSeq(shape) {
		if !p.repeated[class] {
			return true
		}
	}
	return false
}

func (p *corpus) size() (inputs, features int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries), p.reached
}

// added returns the inputs that are not seeds.
func (p *corpus) added() (all []*Input) {
	for _, e := range p.entries[p.seeds:] {
		all = append(all, e.input)
	}
	return all
}

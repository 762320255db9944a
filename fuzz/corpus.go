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

// Limits of the corpus without its seeds. A full corpus replaces old inputs.
const (
	maxCorpus = 20000
	maxBytes  = 48 << 20
)

// coverageBits is the size of the coverage map: it distinguishes 1<<coverageBits features.
const coverageBits = 18

// corpus holds the seeds and the inputs that reached new coverage, with the energy with which they are mutated.
type corpus struct {
	mu         sync.Mutex
	hits       [1 << coverageBits]uint32 // how often each feature appeared
	reached    int                       // features that appeared
	entries    []*corpusEntry
	seeds      int
	bytes      int               // size of the inputs that are not seeds
	seedsLeft  map[bool][]*Input // seeds that were not run yet, with pauses and without
	clean      map[string]*Input // inputs that leave nothing on the server, by shape
	leakTested map[string]bool   // the shapes of the inputs that were repeated

	repeated map[string]bool // the message classes of the repeated inputs
}

// corpusEntry is an input with its history.
type corpusEntry struct {
	input  *Input
	rare   uint32 // its rarest feature
	picked int
	finds  int // how many of its mutations reached new coverage
	fails  int // how many of its mutations failed as earlier mutations had failed
}

func newCorpus(seeds []*Input) *corpus {
	p := &corpus{seeds: len(seeds), seedsLeft: map[bool][]*Input{}, clean: map[string]*Input{}, leakTested: map[string]bool{}, repeated: map[string]bool{}}
	for _, c := range seeds {
		pauses := c.waits() > 0
		p.seedsLeft[pauses] = append(p.seedsLeft[pauses], c)
		p.entries = append(p.entries, &corpusEntry{input: c})
	}
	return p
}

// add counts the features of an input and adds the input if a feature is new. parent is the entry of which the input is a
// mutation, or nil.
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

// big is the size in bytes above which an input seldom justifies its execution time.
const big = 128 << 10

// selectEntry selects an input for mutation: the one with the most energy of three random ones. It returns nil if there is none.
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

// energy is higher for inputs with rare features, recent success and few repeated failures.
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

// any selects an input, often a seed or a recent one.
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

// failed lowers the energy of an input whose mutation failed in a known way.
func (p *corpus) failed(e *corpusEntry) {
	if e != nil {
		p.mu.Lock()
		e.fails++
		p.mu.Unlock()
	}
}

// seed returns the next seed, with pauses or without, that was not run yet, or nil.
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

// Limits of the inputs that are repeated to look for leaks.
const (
	maxLeakSteps = 6
	maxClean     = 2000
)

// addClean notes an input that leaves nothing on the server.
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

// leakInputs returns up to n inputs to repeat, from those that leave nothing on the server, one for each shape. Inputs with a
// class of messages that was not repeated yet come first; among equals, the shortest come first.
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

// isNew reports whether inputs of a shape have a class of messages that was not repeated yet.
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

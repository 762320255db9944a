package fuzz

import (
	"math/rand/v2"
	"sync"
)

// Limits of the corpus without its seeds. A full corpus replaces old inputs.
const (
	maxCorpus = 20000
	maxBytes  = 48 << 20
)

// corpus holds the inputs that reached new coverage.
type corpus struct {
	mu     sync.Mutex
	seen   map[uint64]struct{} // features
	inputs []*Input
	seeds  int
	bytes  int // of inputs that are not seeds
	read   int // by next

	avoid map[string]int // by class of a step: how often it crashed the server
}

func newCorpus(seeds []*Input) *corpus {
	return &corpus{seen: map[uint64]struct{}{}, inputs: append([]*Input(nil), seeds...), seeds: len(seeds), avoid: map[string]int{}}
}

// learn adds an input if its coverage is new, and reports whether it is.
func (p *corpus) learn(c *Input, features []uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := false
	for _, e := range features {
		if _, ok := p.seen[e]; !ok {
			p.seen[e] = struct{}{}
			fresh = true
		}
	}
	if fresh {
		p.bytes += c.bytes()
		if own := len(p.inputs) - p.seeds; own > 0 && (own >= maxCorpus || p.bytes > maxBytes) {
			at := p.seeds + len(p.seen)%own
			p.bytes -= p.inputs[at].bytes()
			p.inputs[at] = c
		} else {
			p.inputs = append(p.inputs, c)
		}
	}
	return fresh
}

// big is the size in bytes from which an input is seldom worth its time.
const big = 128 << 10

// pick selects an input, often a seed or a recent one. It returns nil if there is none.
func (p *corpus) pick(r *rand.Rand) *Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.any(r)
	for n := 0; n < 4 && c != nil && c.bytes() > big; n++ {
		c = p.any(r)
	}
	return c
}

func (p *corpus) any(r *rand.Rand) *Input {
	n := len(p.inputs)
	if n == 0 {
		return nil
	}
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		if p.seeds > 0 {
			return p.inputs[r.IntN(p.seeds)]
		}
	case 4, 5, 6:
		if n > 64 {
			return p.inputs[n-1-r.IntN(64)]
		}
	}
	return p.inputs[r.IntN(n)]
}

func (p *corpus) size() (inputs, features int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inputs), len(p.seen)
}

// next returns the inputs one after the other, the oldest first, and nil if all were returned.
func (p *corpus) next() *Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read >= len(p.inputs) {
		return nil
	}
	p.read++
	return p.inputs[p.read-1]
}

// penalize makes steps of a class, which crash the server, less frequent.
func (p *corpus) penalize(class string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.avoid[class]++
}

// skips reports whether to leave out a step of the class this time.
func (p *corpus) skips(class string, r *rand.Rand) bool {
	p.mu.Lock()
	n := p.avoid[class]
	p.mu.Unlock()
	return n > 0 && r.IntN(n+2) > 1
}

func (p *corpus) penalizing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.avoid) > 0
}

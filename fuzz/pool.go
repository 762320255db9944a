package fuzz

import (
	"math/rand/v2"
	"sync"
)

// Bounds of what is kept beside the seeds; then one takes the place of another.
const (
	maxPool  = 20000
	maxBytes = 48 << 20
)

// pool has the conversations that went where none had been.
type pool struct {
	mu    sync.Mutex
	seen  map[uint64]struct{} // edges
	convs []*Conv
	seeds int
	bytes int // of what is no seed
	read  int // by next

	avoid map[string]int // by class of a step: how often the server has ended of it
}

func newPool(seeds []*Conv) *pool {
	return &pool{seen: map[uint64]struct{}{}, convs: append([]*Conv(nil), seeds...), seeds: len(seeds), avoid: map[string]int{}}
}

// learn takes in where a conversation went. It reports whether that was new.
func (p *pool) learn(c *Conv, edges []uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := false
	for _, e := range edges {
		if _, ok := p.seen[e]; !ok {
			p.seen[e] = struct{}{}
			fresh = true
		}
	}
	if fresh {
		p.bytes += c.bytes()
		if own := len(p.convs) - p.seeds; own > 0 && (own >= maxPool || p.bytes > maxBytes) {
			at := p.seeds + len(p.seen)%own
			p.bytes -= p.convs[at].bytes()
			p.convs[at] = c
		} else {
			p.convs = append(p.convs, c)
		}
	}
	return fresh
}

// big is how many bytes make a conversation so slow that it is seldom worth its time.
const big = 128 << 10

// pick chooses one: often a seed, or a recent one. It is nil if there is none.
func (p *pool) pick(r *rand.Rand) *Conv {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.any(r)
	for n := 0; n < 4 && c != nil && c.bytes() > big; n++ {
		c = p.any(r)
	}
	return c
}

func (p *pool) any(r *rand.Rand) *Conv {
	n := len(p.convs)
	if n == 0 {
		return nil
	}
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		if p.seeds > 0 {
			return p.convs[r.IntN(p.seeds)]
		}
	case 4, 5, 6:
		if n > 64 {
			return p.convs[n-1-r.IntN(64)]
		}
	}
	return p.convs[r.IntN(n)]
}

func (p *pool) size() (convs, edges int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.convs), len(p.seen)
}

// next returns one after the other, from the oldest on; nil is the end for now.
func (p *pool) next() *Conv {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read >= len(p.convs) {
		return nil
	}
	p.read++
	return p.convs[p.read-1]
}

// shun has what a server ended of come less often, the oftener it did.
func (p *pool) shun(class string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.avoid[class]++
}

// shuns reports whether a step of that class is better left out this time.
func (p *pool) shuns(class string, r *rand.Rand) bool {
	p.mu.Lock()
	n := p.avoid[class]
	p.mu.Unlock()
	return n > 0 && r.IntN(n+2) > 1
}

func (p *pool) shunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.avoid) > 0
}

package fuzz

import (
	"context"
	"sync"
	"time"
)

// triageQueue holds candidates until they are reproduced, while fuzzing continues.
type triageQueue struct {
	f          *Fuzzer
	spent      time.Duration // time spent on examining
	mu         sync.Mutex
	candidates []*candidate
	waiting    map[string]bool // keys of these and of the one that is examined
	more       chan struct{}   // has an element after add; closed if no more candidates will be added
}

// candidate is a set of observations that are examined together.
type candidate struct {
	key          string
	observations []*observation
	whole        *Fault   // of the server as a whole
	done         []*Input // inputs that ran before
	kept         bool     // they leak descriptors
	grown        bool     // the observed input leaks memory
}

// maxCandidates is the capacity of the queue.
const maxCandidates = 500

func newTriageQueue(f *Fuzzer) *triageQueue {
	return &triageQueue{f: f, waiting: map[string]bool{}, more: make(chan struct{}, 1)}
}

// keyOf returns the provisional key of a candidate.
func (d *triageQueue) keyOf(m *candidate) string {
	switch {
	case m.kept:
		return Descriptors
	case m.whole != nil && len(m.observations) == 0:
		return m.whole.Oracle + " of many " + m.whole.Law
	}
	s := m.observations[0]
	return provisionalKey(d.f.cfg.Protocol, s.input, explainedBy(s.fault, m.whole))
}

// add queues a candidate, crashes first, unless one with the same key is queued.
func (d *triageQueue) add(m *candidate) {
	m.key = d.keyOf(m)
	if m.whole != nil && m.whole.ends() {
		d.f.observe(m.whole, m.inputs())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[m.key] || len(d.candidates) >= maxCandidates {
		return
	}
	d.waiting[m.key] = true
	if at := 0; m.whole != nil {
		for at < len(d.candidates) && d.candidates[at].whole != nil {
			at++
		}
		d.candidates = append(d.candidates[:at], append([]*candidate{m}, d.candidates[at:]...)...)
	} else {
		d.candidates = append(d.candidates, m)
	}
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// has reports whether a candidate with the key is queued or examined.
func (d *triageQueue) has(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting[key]
}

// take removes and returns the next candidate, or nil.
func (d *triageQueue) take() *candidate {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.candidates) == 0 {
		return nil
	}
	m := d.candidates[0]
	d.candidates = d.candidates[1:]
	return m
}

// work examines candidates until ctx ends, or the queue is closed and empty.
func (d *triageQueue) work(ctx context.Context) {
	for ctx.Err() == nil {
		if m := d.take(); m != nil {
			d.examine(m)
			continue
		}
		select {
		case _, open := <-d.more:
			if !open {
				return
			}
		case <-ctx.Done():
		}
	}
}

// some examines candidates while fuzzing is paused, for half of the time.
func (d *triageQueue) some(ctx context.Context) {
	for ctx.Err() == nil && (d.spent < time.Since(d.f.start)/2 || d.f.cfg.First) {
		m := d.take()
		if m == nil {
			return
		}
		d.examine(m)
	}
}

// examine reproduces a candidate.
func (d *triageQueue) examine(m *candidate) {
	f, start, told := d.f, time.Now(), d.f.stats.Findings
	switch {
	case m.kept:
		f.findDescriptorLeak(m.done)
	case m.grown:
		f.grown(m.observations[0].input)
	default:
		f.examine(m.observations, m.whole, m.done)
	}
	d.spent += time.Since(start)
	d.mu.Lock()
	delete(d.waiting, m.key)
	if f.stopped() && f.stats.Findings == told {
		d.candidates = append(d.candidates, m) // the run has ended
	}
	d.mu.Unlock()
	if f.cfg.First && f.stats.Findings > 0 {
		f.enough()
	}
}

// inputs returns the inputs that were running, or the last ones.
func (m *candidate) inputs() (all []*Input) {
	for _, s := range m.observations {
		all = append(all, s.input)
	}
	if len(all) == 0 {
		all = m.done[max(0, len(m.done)-lastInputs):]
	}
	return all
}

// old reports whether an observation is not new: a finding that the server survived, one that is suppressed, or one that is
// queued.
func (f *Fuzzer) old(c *Input, v *Fault) bool {
	key := provisionalKey(f.cfg.Protocol, c, v)
	if f.triageQueue.has(key) {
		return true
	}
	if f.suppressed(key, maxMisses) {
		return true
	}
	f.mu.Lock()
	told := f.quick[key] || f.bucketFull(c, v)
	f.mu.Unlock()
	if !told {
		return false
	}
	f.again.Add(1)
	f.penalize(c, v)
	return true
}

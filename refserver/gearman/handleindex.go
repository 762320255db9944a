package gearman

import (
	"maps"
	"slices"
)

// handleIndex finds jobs by the numbers of their handles. Numbers are assigned consecutively, so consecutive jobs are
// stored together, in blocks of perBlock numbers.
type handleIndex struct {
	blocks map[uint64]*block // by number / perBlock
	recent *block            // the block used last
	spare  []*block          // empty blocks for reuse
}

// block is an array of the jobs with perBlock consecutive numbers. It takes 1 KiB, even if only one job of them is
// left.
type block struct {
	first uint64 // number / perBlock
	len   int
	jobs  [perBlock]id
}

const perBlock = 252

// maxSpare is the maximum number of empty blocks that are kept for reuse.
const maxSpare = 64

func newHandleIndex() handleIndex { return handleIndex{blocks: map[uint64]*block{}, recent: &block{}} }

// block returns the block of a number, or nil.
func (s *handleIndex) block(n uint64) *block {
	if n /= perBlock; s.recent.first != n || s.recent.len == 0 {
		b := s.blocks[n]
		if b == nil {
			return nil
		}
		s.recent = b
	}
	return s.recent
}

func (s *handleIndex) add(n uint64, i id) {
	b := s.block(n)
	if b == nil {
		if last := len(s.spare) - 1; last >= 0 {
			b, s.spare = s.spare[last], s.spare[:last]
		} else {
			b = &block{}
		}
		b.first = n / perBlock
		s.blocks[b.first] = b
		s.recent = b
	}
	b.jobs[n%perBlock] = i
	b.len++
}

// find returns the job with the number, or 0.
func (s *handleIndex) find(n uint64) id {
	if b := s.block(n); b != nil {
		return b.jobs[n%perBlock]
	}
	return 0
}

// all iterates over the jobs in the order of their numbers, that is, of their submission. The current job may be
// removed.
func (s *handleIndex) all(yield func(id) bool) {
	for _, n := range slices.Sorted(maps.Keys(s.blocks)) {
		b := s.blocks[n]
		for k := range b.jobs {
			if i := b.jobs[k]; i != 0 && !yield(i) {
				return
			}
		}
	}
}

// remove removes a number, which must be present.
func (s *handleIndex) remove(n uint64) {
	b := s.block(n)
	b.jobs[n%perBlock] = 0
	if b.len--; b.len == 0 {
		delete(s.blocks, b.first)
		if len(s.spare) < maxSpare {
			s.spare = append(s.spare, b)
		}
	}
}

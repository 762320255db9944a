package gearman

import (
	"maps"
	"slices"
)

// numbers finds jobs by the numbers in their handles. As these count up, jobs
// that are submitted together stand together: in blocks that are found by what
// their numbers begin with.
type numbers struct {
	blocks map[uint64]*block
	recent *block // the one last used
	spare  []*block
}

// block is of 1 KiB. That is also what the number takes of a job that outlives all
// its neighbours.
type block struct {
	first uint64 // number / perBlock
	len   int
	jobs  [perBlock]id
}

const perBlock = 252

// maxSpare is how many empty blocks are kept.
const maxSpare = 64

func newNumbers() numbers { return numbers{blocks: map[uint64]*block{}, recent: &block{}} }

// block returns the block that a number belongs to, or nil.
func (s *numbers) block(n uint64) *block {
	if n /= perBlock; s.recent.first != n || s.recent.len == 0 {
		b := s.blocks[n]
		if b == nil {
			return nil
		}
		s.recent = b
	}
	return s.recent
}

func (s *numbers) add(n uint64, i id) {
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

// find returns the job with that number, or 0.
func (s *numbers) find(n uint64) id {
	if b := s.block(n); b != nil {
		return b.jobs[n%perBlock]
	}
	return 0
}

// all visits the jobs by number, which is as they were submitted. The one being
// visited may leave.
func (s *numbers) all(yield func(id) bool) {
	for _, n := range slices.Sorted(maps.Keys(s.blocks)) {
		b := s.blocks[n]
		for k := range b.jobs {
			if i := b.jobs[k]; i != 0 && !yield(i) {
				return
			}
		}
	}
}

// remove forgets a number that is in.
func (s *numbers) remove(n uint64) {
	b := s.block(n)
	b.jobs[n%perBlock] = 0
	if b.len--; b.len == 0 {
		delete(s.blocks, b.first)
		if len(s.spare) < maxSpare {
			s.spare = append(s.spare, b)
		}
	}
}

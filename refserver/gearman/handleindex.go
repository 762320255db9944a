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
func (h *handleIndex) block(n uint64) *block {
	if n /= perBlock; h.recent.first != n || h.recent.len == 0 {
		b := h.blocks[n]
		if b == nil {
			return nil
		}
		h.recent = b
	}
	return h.recent
}

// add records that the job i has the handle with the number n. It takes a new or spare block if the job is the first
// one of its block.
func (h *handleIndex) add(n uint64, i id) {
	b := h.block(n)
	if b == nil {
		if last := len(h.spare) - 1; last >= 0 {
			b, h.spare = h.spare[last], h.spare[:last]
		} else {
			b = &block{}
		}
		b.first = n / perBlock
		h.blocks[b.first] = b
		h.recent = b
	}
	b.jobs[n%perBlock] = i
	b.len++
}

// find returns the job with the number, or 0.
func (h *handleIndex) find(n uint64) id {
	if b := h.block(n); b != nil {
		return b.jobs[n%perBlock]
	}
	return 0
}

// all iterates over the jobs in the order of their numbers, that is, of their submission. The current job may be
// removed.
func (h *handleIndex) all(yield func(id) bool) {
	for _, n := range slices.Sorted(maps.Keys(h.blocks)) {
		b := h.blocks[n]
		for k := range b.jobs {
			if i := b.jobs[k]; i != 0 && !yield(i) {
				return
			}
		}
	}
}

// remove removes a number, which must be present.
func (h *handleIndex) remove(n uint64) {
	b := h.block(n)
	b.jobs[n%perBlock] = 0
	if b.len--; b.len == 0 {
		delete(h.blocks, b.first)
		if len(h.spare) < maxSpare {
			h.spare = append(h.spare, b)
		}
	}
}

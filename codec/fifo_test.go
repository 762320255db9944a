package codec_test

import (
	"slices"
	"testing"

	. "jobwire/codec"
)

// TestFIFO tests that a FIFO returns its elements in the order in which they were added, that a copy made before a Push
// discards the new element, and that steady use allocates no memory.
func TestFIFO(t *testing.T) {
	var q FIFO[int]
	var want []int
	check := func() {
		t.Helper()
		var got []int
		for i := range q.Len() {
			got = append(got, *q.At(i))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the queue is %v, want %v", got, want)
		}
	}
	for round := range 5 {
		for i := range 3 + round {
			*q.Push(0) = i
			want = append(want, i)
			check()
		}
		for range 2 {
			before := q
			q.Push(99)
			q = before // discards what was added
			check()
			q.Pop()
			want = want[1:]
			check()
		}
	}
	if n := testing.AllocsPerRun(100, func() { q.Pop(); q.Push(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

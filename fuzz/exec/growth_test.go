package exec

import "testing"

// TestGrowth tests that memory that grows in both halves of the rounds counts as a leak, also in large pieces or beside
// a garbage collector, and that growth at the beginning or too few rounds do not.
func TestGrowth(t *testing.T) {
	const leak = MinLeak * LeakExecutions // growth in one round that counts as a leak
	for _, tt := range []struct {
		what         string
		rounds       []int64 // growth of each, in bytes
		ended, leaks bool
	}{
		{"a leak", []int64{leak, leak, leak, leak, leak, leak}, false, true},
		{"a leak in large pieces", []int64{0, 3 * leak, 0, 0, 3 * leak, 0}, false, true},
		{"a leak beside a garbage collector", []int64{4 * leak, -leak, 2 * leak, -leak, 2 * leak, leak}, false, true},
		{"no growth", []int64{0, 0}, true, false},
		{"growth at the beginning", []int64{9 * leak, 0, 0, 0, 0, 0}, false, false},
		{"not all rounds", []int64{leak, leak, leak}, false, false},
		{"the first round", []int64{0}, false, false},
		{"a smaller leak", []int64{leak / 4, leak / 4, leak / 4, leak / 4, leak / 4, leak / 4}, true, false},
	} {
		g := Growth{At: []int64{1 << 20}, Runs: LeakExecutions}
		for _, n := range tt.rounds {
			g.At = append(g.At, g.At[len(g.At)-1]+n)
		}
		if g.Ended() != tt.ended || g.Leaks() != tt.leaks {
			t.Errorf("%s: ended %v, leaks %v", tt.what, g.Ended(), g.Leaks())
		}
	}
}

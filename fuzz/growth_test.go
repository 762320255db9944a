package fuzz

import "testing"

func TestGrowth(t *testing.T) {
	const leak = minLeak * leakExecutions // growth in one round that counts as a leak
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
		g := growth{at: []int64{1 << 20}, runs: leakExecutions}
		for _, n := range tt.rounds {
			g.at = append(g.at, g.at[len(g.at)-1]+n)
		}
		if g.ended() != tt.ended || g.leaks() != tt.leaks {
			t.Errorf("%s: ended %v, leaks %v", tt.what, g.ended(), g.leaks())
		}
	}
}

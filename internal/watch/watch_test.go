package watch

import "testing"

// TestMemoryLeak: a server with a garbage collector grows until a collection. Only growth that continues is a leak.
func TestMemoryLeak(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct {
		name     string
		resident int64                   // bytes before the first round
		after    func(round int64) int64 // bytes after a round, counted from 1
		leaks    bool
	}{
		{"leak", 30 * mib, func(n int64) int64 { return 30*mib + n*4*mib }, true},
		{"large server that leaks", 4096 * mib, func(n int64) int64 { return 4096*mib + n*4*mib }, true},
		{"small server that leaks", mib, func(n int64) int64 { return mib + n*LeakBytes }, true},
		{"leak that first fills reserved memory", 30 * mib, func(n int64) int64 { return 30*mib + (n-1)*4*mib }, true},
		{"growth below the limit", 30 * mib, func(n int64) int64 { return 30*mib + n*(LeakBytes-1) }, false},
		{"warm-up only", 30 * mib, func(n int64) int64 { return 30*mib + min(n, 2)*40*mib }, false},
		{"garbage until a collection", 75 * mib, func(n int64) int64 { return 75*mib + min(n, 7)*6*mib }, false},
		{"garbage, then a smaller heap", 75 * mib, func(n int64) int64 { return 75*mib + n%5*6*mib }, false},
	} {
		var round int64
		n, repetitions, err := MemoryLeak(row.resident, leakRuns, func() (Usage, error) {
			if round++; round > 1000 {
				t.Fatalf("%s: MemoryLeak does not end", row.name)
			}
			return Usage{Resident: row.after(round)}, nil
		})
		if err != nil || (n > 0) != row.leaks {
			t.Errorf("%s: %d bytes after %d repetitions (%v), want a leak: %v", row.name, n, repetitions, err, row.leaks)
		}
		if n > 0 && int64(repetitions) != (round-2)*leakRuns {
			t.Errorf("%s: %d repetitions reported of %d rounds after the warm-up", row.name, repetitions, round-2)
		}
	}
}

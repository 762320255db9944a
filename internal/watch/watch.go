// Package watch checks what the process of a server uses: processor time, memory and file descriptors.
package watch

import (
	"errors"
	"time"

	"jobwire/internal/target"
)

// Usage is what a process has.
type Usage struct {
	Resident    int64 // bytes
	Descriptors int
}

// Of reads what the process of a server has. It fails where there is none, or where the system
// does not tell.
func Of(t target.Target) (Usage, bool) { return usageOf(target.Pid(t)) }

// When a server at rest is said to spin.
const (
	spinShare = 0.85                   // of a core that it asks for
	spinTime  = 30 * time.Millisecond  // that it must have got
	spinLeast = 300 * time.Millisecond // looked at; on a busy machine it takes longer to get that
	spinMost  = 4 * time.Second
)

// Spinning reports whether a server that has nothing to do wants a core all the time. On a busy
// machine it may get little of one, so the time that it waits for it counts as well. It takes 10 ms
// where the server rests, and 4 s at most.
func Spinning(t target.Target) bool {
	const piece = 10 * time.Millisecond
	pid := target.Pid(t)
	time.Sleep(piece)
	if pid == 0 || rests(pid) {
		return false
	}
	had, wanted := wants(pid)
	for start := time.Now(); time.Since(start) < spinMost; {
		time.Sleep(piece)
		if rests(pid) {
			return false
		}
		now, asked := wants(pid)
		if took := time.Since(start); took > spinLeast && now-had > spinTime {
			return float64(asked-wanted)/float64(took) > spinShare
		}
	}
	return false
}

// rests reports whether no thread of a process has anything to do. Who spins may stop for a moment.
func rests(pid int) bool {
	for range 3 {
		if runnable(pid) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// AtRest returns what a server has when all have left, for which it is given a little time, until
// no more descriptors are left than there were; -1 is that nobody knows.
func AtRest(t target.Target, descriptors int) (u Usage, ok bool) {
	for n, last := 0, -1; n < 50; n++ {
		if u, ok = Of(t); !ok || u.Descriptors <= descriptors || descriptors < 0 && u.Descriptors == last {
			break
		}
		last = u.Descriptors
		time.Sleep(5 * time.Millisecond)
	}
	return u, ok
}

// Leak thresholds: what the server must keep of each of two rounds of repetitions.
const (
	KeepRuns = 24           // repetitions in a round that counts descriptors
	Keeps    = KeepRuns / 2 // descriptors

	LeakRuns  = 150     // repetitions in a round that measures memory
	LeakBytes = 3 << 20 // bytes

	maxGrowth = 256 << 20 // bytes that prove a leak in a server of any size
)

// rounds returns a function that performs one round of repetitions and returns what the server uses
// when all connections are closed.
func rounds(t target.Target, runs int, again func() error) func() (Usage, error) {
	first, _ := AtRest(t, -1)
	return func() (Usage, error) {
		for range runs {
			if err := again(); err != nil {
				return Usage{}, err
			}
		}
		at, ok := AtRest(t, first.Descriptors)
		if !ok {
			return at, errors.New("the server process has exited")
		}
		return at, nil
	}
}

// descriptorLeak returns how many descriptors two rounds have left open, or 0 if one of them left
// fewer than Keeps.
func descriptorLeak(t target.Target, round func() (Usage, error)) (int, error) {
	at, _ := AtRest(t, -1)
	first := at.Descriptors
	for range 2 {
		before := at.Descriptors
		var err error
		if at, err = round(); err != nil || at.Descriptors-before < Keeps {
			return 0, err
		}
	}
	return at.Descriptors - first, nil
}

// MemoryLeak returns how many bytes a server has kept of how many repetitions, or 0 if it does not
// leak. The server used resident bytes before; each call of round performs runs repetitions.
//
// Two rounds warm the server up. After them the server must keep LeakBytes of each round, at least
// two rounds and until it uses twice its first memory: a server with a garbage collector also grows
// until it collects.
func MemoryLeak(resident int64, runs int, round func() (Usage, error)) (bytes int64, repetitions int, err error) {
	most := min(resident, maxGrowth)
	var at Usage
	for range 2 {
		if at, err = round(); err != nil {
			return 0, 0, err
		}
	}
	for first := at.Resident; bytes < most || repetitions < 2*runs; bytes = at.Resident - first {
		before := at.Resident
		if at, err = round(); err != nil || at.Resident-before < LeakBytes {
			return 0, 0, err
		}
		repetitions += runs
	}
	return bytes, repetitions, nil
}

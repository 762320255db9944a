// Package watch checks what the process of a server uses: processor time, memory and file descriptors.
package watch

import (
	"errors"
	"time"

	"jobwire/internal/target"
)

// Usage contains the resources that a process uses.
type Usage struct {
	Resident    int64 // bytes
	Descriptors int
}

// Process contains what a process has used since its start, and what it uses now.
type Process struct {
	Usage
	Threads     int
	Waited      time.Duration // for a processor: the thread that waited the longest
	Ran, System time.Duration // its threads ran, and ran in the kernel
}

// Of returns the usage of a server's process. It returns false if there is none, or if the system is not supported.
func Of(t target.Target) (Usage, bool) { return usageOf(target.Pid(t)) }

// Criteria for a busy loop of an idle server.
const (
	spinShare = 0.85                  // minimum share of a core that the server wants
	spinTime  = 30 * time.Millisecond // minimum time for which it must have run
	// minimum duration of the measurement; longer on a busy machine, until spinTime is reached
	spinLeast = 300 * time.Millisecond
	spinMost  = 4 * time.Second
)

// Waited returns how long the thread of a server has waited for a processor that has waited the longest since its start,
// or 0 if this is unknown.
func Waited(t target.Target) time.Duration { return longestWait(target.Pid(t)) }

// Busy reports whether a thread of a server has something to do now. It returns false if this is unknown.
func Busy(t target.Target) bool {
	pid := target.Pid(t)
	return pid != 0 && !rests(pid)
}

// Spinning reports whether an idle server wants a core all the time. On a busy machine it may run only rarely, so the
// time for which it waits for a processor counts as well. Spinning takes 10 ms if the server is idle, and at most 4 s.
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

// rests reports whether no thread of a process has anything to do. It checks several times, because a thread in a busy
// loop may pause for a moment.
func rests(pid int) bool {
	for range 3 {
		if runnable(pid) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// AtRest returns the usage of a server after its connections were closed. It waits, for a short time, until the server
// has at most as many descriptors as given; if descriptors is -1, until their number is stable.
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

// Leak thresholds for the growth in each of two rounds of repetitions.
const (
	KeepRuns = 24           // number of repetitions in a round that counts open file descriptors
	Keeps    = KeepRuns / 2 // open descriptors

	leakRuns  = 150     // repetitions in a round that measures memory
	LeakBytes = 3 << 20 // bytes

	maxGrowth = 256 << 20 // growth in bytes that proves a leak in a server of any size
)

// rounds returns a function that performs one round of repetitions and returns the usage of the server after all
// connections are closed.
func rounds(t target.Target, again func() error) func(runs int) (Usage, error) {
	first, _ := AtRest(t, -1)
	return func(runs int) (Usage, error) {
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

// descriptorLeak performs three rounds of repetitions, and returns how many descriptors they have left open. It returns
// 0 after a round that left a descriptor open in fewer than half of its repetitions. The first round is short, because
// most servers leave none open.
func descriptorLeak(t target.Target, round func(runs int) (Usage, error)) (n, repetitions int, err error) {
	at, _ := AtRest(t, -1)
	first := at.Descriptors
	for _, runs := range []int{KeepRuns / 3, KeepRuns, KeepRuns} {
		before := at.Descriptors
		if at, err = round(runs); err != nil || at.Descriptors-before < runs/2 {
			return 0, 0, err
		}
		repetitions += runs
	}
	return at.Descriptors - first, repetitions, nil
}

// warmUp is the number of rounds whose growth does not count.
const warmUp = 2

// MemoryLeak returns the growth of a leaking server in bytes and the number of repetitions in which
// it grew, or 0 if the server does not leak. The server used resident bytes before; each call of
// round performs runs repetitions.
//
// The server must grow by LeakBytes in each round after the first one, in which it may fill memory that it has
// reserved. Two rounds warm it up. Then it must grow for at least two rounds and until it has grown by its initial
// size: the memory of a server with a garbage collector also grows until a collection.
func MemoryLeak(resident int64, runs int, round func() (Usage, error)) (bytes int64, repetitions int, err error) {
	most := min(resident, maxGrowth)
	at, first := Usage{Resident: resident}, resident
	for n := 1; bytes < most || repetitions < 2*runs; n++ {
		before := at.Resident
		if at, err = round(); err != nil || n > 1 && at.Resident-before < LeakBytes {
			return 0, 0, err
		}
		if n <= warmUp {
			first = at.Resident
			continue
		}
		repetitions += runs
		bytes = at.Resident - first
	}
	return bytes, repetitions, nil
}

// Package watch tells what the process of a server does and keeps when nobody is connected.
package watch

import (
	"errors"
	"fmt"
	"time"

	"jobwire/internal/target"
)

// What there is to watch, as the key @watch of a transcript names it.
const (
	Processor   = "processor"   // does it work though there is nothing to do?
	Memory      = "memory"      // does it keep some of each conversation?
	Descriptors = "descriptors" // does it keep open files or connections?
)

// All lists what there is.
var All = []string{Processor, Memory, Descriptors}

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

// What must stay behind, in each of two rounds of so many conversations, to be called a leak.
const (
	KeepRuns = 24
	Keeps    = KeepRuns / 2 // descriptors

	LeakRuns  = 150
	LeakBytes = 3 << 20
)

// After judges a server behind a conversation that all have left: it returns what is amiss, or "".
// again holds the conversation once more, as often as it takes to see a leak.
func After(what string, t target.Target, again func() error) (amiss string, err error) {
	if _, ok := Of(t); !ok {
		return "", errors.New("the server's process cannot be watched: it has to be started by --exec, on Linux")
	}
	switch what {
	case Processor:
		if Spinning(t) {
			return "a core is used all the time though all connections are closed", nil
		}
		return "", nil
	case Memory:
		n, err := grows(t, 2, LeakRuns, LeakBytes, again, func(u Usage) int64 { return u.Resident })
		if n > 0 {
			amiss = fmt.Sprintf("%d KiB more behind %d repetitions, all connections closed", n>>10, 2*LeakRuns)
		}
		return amiss, err
	case Descriptors:
		n, err := grows(t, 0, KeepRuns, Keeps, again, func(u Usage) int64 { return int64(u.Descriptors) })
		if n > 0 {
			amiss = fmt.Sprintf("%d descriptors more behind %d repetitions, all connections closed", n, 2*KeepRuns)
		}
		return amiss, err
	}
	return "", fmt.Errorf("nothing is called %q that can be watched: there are %q", what, All)
}

// grows returns how much more a server has behind two rounds of repetitions than before, if it is so
// much in each, else 0. The rounds to warm up come before that.
func grows(t target.Target, warm, runs int, least int64, again func() error, of func(Usage) int64) (int64, error) {
	at, _ := AtRest(t, -1)
	atFirst := at.Descriptors
	repeat := func() error {
		for range runs {
			if err := again(); err != nil {
				return err
			}
		}
		var ok bool
		if at, ok = AtRest(t, atFirst); !ok {
			return errors.New("the server's process is gone")
		}
		return nil
	}
	for range warm {
		if err := repeat(); err != nil {
			return 0, err
		}
	}
	begun := of(at)
	for range 2 {
		before := of(at)
		if err := repeat(); err != nil || of(at)-before < least {
			return 0, err
		}
	}
	return of(at) - begun, nil
}

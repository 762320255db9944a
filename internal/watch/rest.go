package watch

import (
	"errors"
	"time"

	"jobwire/internal/target"
)

// ErrNoProcess says that the process of a target cannot be observed.
var ErrNoProcess = errors.New("jobwire can observe only a process that it has started (--exec), on Linux")

// A server that has nothing to do may use this share of a processor core.
const RestShare = 0.25

const (
	restWindow = 100 * time.Millisecond // of a measurement
	restInARow = 2                      // measurements that show a server at rest
	restMost   = 3 * time.Second        // a server may still finish its work
)

// LoadAtRest returns the share of a processor core that a server uses that should have nothing to do. It measures until
// the share is at most [RestShare] twice in a row, and returns 0, or for 3 s, and returns the mean. Time for which
// the server waited for a processor counts as if it had not passed, so that a busy machine does not hide a busy server; a
// measurement that consists mostly of such time shows nothing.
func LoadAtRest(t target.Target) (share float64, err error) {
	pid := target.Pid(t)
	if _, ok := usageOf(pid); !ok {
		return 0, ErrNoProcess
	}
	var busy, idle time.Duration
	for begun, atRest := time.Now(), 0; atRest < restInARow; {
		if time.Since(begun) > restMost {
			return float64(busy) / float64(max(busy+idle, 1)), nil
		}
		from := time.Now()
		hadBefore, wantedBefore := wants(pid)
		time.Sleep(restWindow)
		had, wanted := wants(pid)
		ran, took := had-hadBefore, time.Since(from)
		rested := max(0, took-(wanted-wantedBefore))
		busy, idle = busy+ran, idle+rested
		if atRest++; ran+rested < took/4 || float64(ran) > RestShare*float64(ran+rested) {
			atRest = 0
		}
	}
	return 0, nil
}

// MemoryAtRest returns how many bytes more than before a server uses that should have nothing to do. It measures when the
// server has finished its work, after 3 s at most, and again for 3 s at most until they are at most limit.
func MemoryAtRest(t target.Target, before Usage, limit int64) (more int64, err error) {
	if _, err := LoadAtRest(t); err != nil {
		return 0, err
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		at, ok := Of(t)
		if !ok {
			return 0, ErrNoProcess
		}
		if more = at.Resident - before.Resident; more <= limit || time.Since(begun) > restMost {
			return more, nil
		}
	}
}

// LimitDescriptors sets how many file descriptors the process of a server may have open.
func LimitDescriptors(t target.Target, n int) error { return limitDescriptors(target.Pid(t), n) }

package watch

import (
	"errors"
	"time"

	"jobwire/internal/target"
)

// ErrNoProcess is returned if the process of a target cannot be observed.
var ErrNoProcess = errors.New("jobwire can observe only a process that it has started (--exec), on Linux")

// restShare is the share of a processor core that an idle server may use.
const restShare = 0.25

const (
	restWindow = 100 * time.Millisecond // duration of a measurement
	restInARow = 2                      // consecutive measurements that show an idle server
	// how long a server may take to finish its work, without the time for which it waits for a processor
	restMost  = 3 * time.Second
	restLimit = 20 * time.Second // the same, with that time
)

// loadAtRest returns the share of a processor core that a server uses although it should be idle. It returns 0 as soon
// as two consecutive measurements are at most [restShare], or else the mean after 3 s, or up to 20 s on a busy machine.
// Time for which the server waited for a processor is not counted, so that a busy machine does not hide a busy server.
// A measurement that consists mostly of such time, or at whose end the server waits for a processor, does not count as
// idle.
func loadAtRest(t target.Target) (share float64, err error) {
	pid := target.Pid(t)
	if _, ok := usageOf(pid); !ok {
		return 0, ErrNoProcess
	}
	first := measure(pid)
	for atRest, last := 0, first; atRest < restInARow; {
		time.Sleep(restWindow)
		now := measure(pid)
		took, unwaited, share := now.since(first)
		if unwaited > restMost || took > restLimit {
			return share, nil
		}
		// The kernel counts the time for which a thread waits for a processor only when the thread gets one. Until then, the
		// measurement is continued.
		if runnable(pid) {
			atRest = 0
			continue
		}
		took, unwaited, share = now.since(last)
		if atRest++; unwaited < took/4 || share > restShare {
			atRest = 0
		}
		last = now
	}
	return 0, nil
}

// measurement is how long a process has run, and has run or waited for a processor, at a time.
type measurement struct {
	at          time.Time
	had, wanted time.Duration
}

func measure(pid int) measurement {
	m := measurement{at: time.Now()}
	m.had, m.wanted = wants(pid)
	return m
}

// since returns the time since an earlier measurement, the part of it in which the process did not wait for a
// processor, and the share of that part in which it ran.
func (m measurement) since(before measurement) (took, unwaited time.Duration, share float64) {
	ran := m.had - before.had
	took = m.at.Sub(before.at)
	unwaited = ran + max(0, took-(m.wanted-before.wanted))
	return took, unwaited, float64(ran) / float64(max(unwaited, 1))
}

// memoryAtRest returns how many more bytes an idle server uses than before. It first waits until the server has
// finished its work, as long as [loadAtRest] does, and then until the result is at most limit, for at most 3 s.
func memoryAtRest(t target.Target, before Usage, limit int64) (more int64, err error) {
	if _, err := loadAtRest(t); err != nil {
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

// DescriptorLimit returns how many file descriptors the process of a server may have open, or 0 if that is unknown.
func DescriptorLimit(t target.Target) int { return descriptorLimit(target.Pid(t)) }

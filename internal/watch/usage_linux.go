package watch

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

// usageOf reads the usage of a process from /proc.
func usageOf(pid int) (u Usage, ok bool) {
	if pid == 0 {
		return u, false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, false
	}
	// The program name in parentheses may contain any bytes.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return u, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
	u.Resident = number(21) * pageSize
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return u, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	u.Descriptors = len(names)
	return u, err == nil
}

// wants returns how long the threads of a process have run, and how long they have run or waited for a processor: on a
// busy machine, a busy-looping thread waits most of the time.
func wants(pid int) (had, wanted time.Duration) {
	for ran, waited := range threads(pid) {
		had += ran
		wanted += ran + waited
	}
	return had, wanted
}

// longestWait returns how long the thread of a process has waited for a processor that has waited the longest.
func longestWait(pid int) (longest time.Duration) {
	for _, waited := range threads(pid) {
		longest = max(longest, waited)
	}
	return longest
}

// threads returns how long each thread of a process has run, and how long it has waited for a processor.
func threads(pid int) iter.Seq2[time.Duration, time.Duration] {
	return func(yield func(ran, waited time.Duration) bool) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, name := range tasks {
			var ran, waited time.Duration
			if b, err := os.ReadFile(name); err == nil {
				fmt.Sscan(string(b), &ran, &waited) // nanoseconds
			}
			if !yield(ran, waited) {
				return
			}
		}
	}
}

// processorTime returns how long the threads of a process have run, including those that have ended, or 0.
func processorTime(pid int) time.Duration {
	var t unix.Timespec
	clock := int32(^pid<<3 | 2) // CPUCLOCK_SCHED of the process: see clock_getcpuclockid(3)
	if pid == 0 || unix.ClockGettime(clock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func descriptorLimit(pid int) int {
	var limit unix.Rlimit
	if pid == 0 || unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit) != nil {
		return 0
	}
	return int(limit.Cur)
}

// runnable reports whether a thread of a process runs or waits for a processor.
func runnable(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if _, rest, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" ")); err == nil && ok && len(rest) > 0 &&
			rest[0] == 'R' {
			return true
		}
	}
	return false
}

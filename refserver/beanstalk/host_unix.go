//go:build unix

package beanstalk

import (
	"syscall"
	"time"
)

// cpuTime returns the process's CPU time so far.
func cpuTime() (user, system time.Duration) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
}

//go:build unix

package machine

import (
	"syscall"
	"time"
)

// ownTime returns the CPU time of this process, user and system, or -1 if it is not known.
func ownTime() time.Duration {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return -1
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

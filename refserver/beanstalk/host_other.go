//go:build !unix

package beanstalk

import "time"

// cpuTime returns zeros, because the CPU time is not available.
func cpuTime() (user, system time.Duration) { return 0, 0 }

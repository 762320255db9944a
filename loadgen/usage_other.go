//go:build !unix

package loadgen

import "time"

// ownTime returns -1: the processor time of this process is unknown.
func ownTime() time.Duration { return -1 }

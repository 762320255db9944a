//go:build !unix

package machine

import "time"

// ownTime returns -1, because the CPU time of this process is not known on this system.
func ownTime() time.Duration { return -1 }

package machine

import (
	"runtime/debug"
	"time"
)

// Usage is the CPU time of this process and its garbage collections since the process started.
type Usage struct {
	CPU    time.Duration // -1: not known on this system
	Pauses time.Duration // total time for which garbage collections stopped the process
	GCs    int64         // number of garbage collections
}

// ReadUsage returns the usage until now.
func ReadUsage() Usage {
	u := Usage{CPU: ownTime()}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.Pauses, u.GCs = gc.PauseTotal, gc.NumGC
	return u
}

// Since returns the usage between two times.
func (u Usage) Since(before Usage) Usage {
	return Usage{Elapsed(before.CPU, u.CPU), u.Pauses - before.Pauses, u.GCs - before.GCs}
}

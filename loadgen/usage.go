package loadgen

import (
	"runtime/debug"
	"time"
)

// usage is the processor time of this process, and its garbage collections.
type usage struct {
	cpu    time.Duration // -1: unknown on this system
	pauses time.Duration
	gcs    int64
}

func usageNow() usage {
	u := usage{cpu: ownTime()}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.pauses, u.gcs = gc.PauseTotal, gc.NumGC
	return u
}

func (u usage) since(before usage) usage {
	cpu := time.Duration(-1)
	if before.cpu >= 0 && u.cpu >= 0 {
		cpu = u.cpu - before.cpu
	}
	return usage{cpu, u.pauses - before.pauses, u.gcs - before.gcs}
}

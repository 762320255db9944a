package loadgen

import (
	"runtime/debug"
	"time"
)

// usage is the CPU time of this process and its garbage collections since the process started.
type usage struct {
	cpu    time.Duration // -1: not known on this system
	pauses time.Duration // total time for which garbage collections stopped the process
	gcs    int64         // number of garbage collections
}

func usageNow() usage {
	u := usage{cpu: ownTime()}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.pauses, u.gcs = gc.PauseTotal, gc.NumGC
	return u
}

// since returns the usage between two times.
func (u usage) since(before usage) usage {
	return usage{elapsed(before.cpu, u.cpu), u.pauses - before.pauses, u.gcs - before.gcs}
}

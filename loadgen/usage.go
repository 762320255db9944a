package loadgen

import (
	"runtime/debug"
	"syscall"
	"time"
)

// usage is the processor time of this process and what the collector stopped it for.
type usage struct {
	cpu    time.Duration
	pauses time.Duration
	gcs    int64
}

func usageNow() usage {
	var u usage
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) == nil {
		u.cpu = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.pauses, u.gcs = gc.PauseTotal, gc.NumGC
	return u
}

func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.pauses - before.pauses, u.gcs - before.gcs}
}

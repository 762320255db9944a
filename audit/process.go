package audit

import (
	"context"
	"maps"
	"slices"
	"time"

	"jobwire/audit/behavior"
	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// sampleInterval is the time between two samples of what a program uses.
const sampleInterval = 200 * time.Millisecond

// Watching returns a context in which the auditor observes what the processes of programs use: processor time, memory,
// file descriptors and threads. It observes programs until they end or ctx ends, and only on Linux.
func (a *Auditor) Watching(ctx context.Context) context.Context {
	return target.OnStart(ctx, func(pid int) { go a.sample(ctx, pid) })
}

// sample observes a process and its descendants.
func (a *Auditor) sample(ctx context.Context, pid int) {
	next := time.NewTicker(sampleInterval)
	defer next.Stop()
	for before := watch.Group(pid); len(before) > 0; {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		now, s := watch.Group(pid), behavior.Sample{}
		most := time.Duration(0)
		for _, id := range slices.Sorted(maps.Keys(now)) {
			p := now[id]
			s.Resident, s.Descriptors, s.Threads = s.Resident+p.Resident, s.Descriptors+p.Descriptors, s.Threads+p.Threads
			if was, known := before[id]; known && p.Ran > most {
				most, s.Process = p.Ran, id
				s.Ran, s.System, s.Waited = p.Ran-was.Ran, p.System-was.System, max(0, p.Waited-was.Waited)
			}
		}
		before = now
		a.mu.Lock()
		s.At = time.Since(a.begun)
		if a.now != nil {
			s.Pending = len(a.now.streams[codec.Server].Rest())
		}
		a.behavior.Sample(s)
		a.mu.Unlock()
	}
}

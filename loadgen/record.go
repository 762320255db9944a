package loadgen

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// stage is a part of a job's lifetime whose duration is measured.
type stage uint8

const (
	stageCreated stage = iota // from the submission (open loop: scheduled time) to the acknowledgement
	stageQueued               // from the acknowledgement to the assignment to a worker
	stageRun                  // from the assignment to the end of the job
	stageTotal                // from the submission (open loop: scheduled time) to the end of the job
	stageCount
)

// Stages are the names of the parts of a job's lifetime whose duration is measured: created, from the submission (in
// an open loop from the scheduled time) to the acknowledgement of the server; queued, from there to the assignment to
// a worker; run, from there to the end of the job; and total, from the submission or the scheduled time to the end.
var Stages = [stageCount]string{"created", "queued", "run", "total"}

// Range of the histograms in nanoseconds, and their precision in decimal digits. Values outside the range count as
// the nearest bound.
const (
	lowest  = int64(500)
	highest = int64(time.Hour)
	digits  = 3
)

// Histograms are the latency histograms of all stages, in nanoseconds from 500 ns to 1 h, with three significant
// digits.
type Histograms [stageCount]*hdrhistogram.Histogram

func newHistograms() (h Histograms) {
	for i := range h {
		h[i] = newHistogram()
	}
	return h
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(lowest, highest, digits) }

func (h Histograms) reset() {
	for i := range h {
		h[i].Reset()
	}
}

func (h Histograms) merge(o Histograms) {
	for i := range h {
		h[i].Merge(o[i])
	}
}

// histogramShard has the latencies of some of the connections since the last call of collect.
type histogramShard struct {
	mu   sync.Mutex
	hist Histograms // latencies; unset in a shard without connections
	done int64      // number of jobs that ended
}

// histogramShards is the number of shards. Histograms are large, so there are few; but there are enough that
// connections rarely wait for each other's lock.
const histogramShards = 8

// record adds the latencies of a client's last batch of messages to a shard. The caller has locked the connection.
func (r *run) record(c *ClientConn) {
	if c.unrecorded == 0 {
		return
	}
	n := c.unrecorded
	c.unrecorded = 0
	rec := &r.histogramShards[c.id%histogramShards]
	rec.mu.Lock()
	for st := range c.samples {
		h := rec.hist[st]
		for _, ns := range c.samples[st] {
			h.RecordValue(min(max(ns, lowest), highest))
		}
		c.samples[st] = c.samples[st][:0]
	}
	rec.done += n
	rec.mu.Unlock()
	if r.done.Add(n) == r.target {
		select {
		case r.ready <- struct{}{}:
		default:
		}
	}
}

// collect adds the latencies recorded since its last call to h, resets the shards, and returns the number of jobs
// that ended.
func (r *run) collect(h Histograms) (done int64) {
	for i := range r.histogramShards {
		rec := &r.histogramShards[i]
		rec.mu.Lock()
		if rec.done > 0 { // otherwise it has no latencies
			h.merge(rec.hist)
			rec.hist.reset()
			done += rec.done
			rec.done = 0
		}
		rec.mu.Unlock()
	}
	return done
}

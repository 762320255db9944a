package loadgen

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// stage is a part of a job's life that is timed.
type stage uint8

const (
	stageCreated stage = iota // submitted, or scheduled, to acknowledged
	stageQueued               // acknowledged to taken by a worker
	stageRun                  // taken to its end
	stageTotal                // submitted, or scheduled, to its end
	stageCount
)

// Stages are the names of the parts of a job's life that are timed, in their order: from its
// submission, or from its scheduled time, to the server's acknowledgement; from there to a
// worker's getting it; from there to its end; and from its submission to its end.
var Stages = [stageCount]string{"created", "queued", "run", "total"}

// Histograms count nanoseconds, from half a microsecond to an hour, in three digits.
const (
	lowest  = int64(500)
	highest = int64(time.Hour)
	digits  = 3
)

// Histograms are those of all stages, in nanoseconds.
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

// histogramShard takes the latencies of some of the connections.
type histogramShard struct {
	mu   sync.Mutex
	hist Histograms // of the interval
	done int64      // jobs ended, of the interval
}

// histogramShards is how many there are: few, since histograms are large, but enough that
// connections rarely wait for one another.
const histogramShards = 8

// record adds what a batch has brought. The caller holds the connection's lock.
func (r *run) record(c *ClientConn) {
	if c.fresh == 0 {
		return
	}
	n := c.fresh
	c.fresh = 0
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
		r.jobsReached()
	}
}

// collect takes what has been recorded since it was last called. It adds the latencies to h.
func (r *run) collect(h Histograms) (done int64) {
	for i := range r.histogramShards {
		rec := &r.histogramShards[i]
		rec.mu.Lock()
		h.merge(rec.hist)
		rec.hist.reset()
		done += rec.done
		rec.done = 0
		rec.mu.Unlock()
	}
	return done
}

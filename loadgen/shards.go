package loadgen

import (
	"sync"

	"jobwire/loadgen/latency"
)

// histogramShard has the latencies of some of the connections since the last call of collect.
type histogramShard struct {
	mu   sync.Mutex
	hist latency.Histograms // latencies; unset in a shard without connections
	done int64              // number of jobs that ended
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
			latency.Record(h, ns)
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
func (r *run) collect(h latency.Histograms) (done int64) {
	for i := range r.histogramShards {
		rec := &r.histogramShards[i]
		rec.mu.Lock()
		if rec.done > 0 { // otherwise it has no latencies
			h.Merge(rec.hist)
			rec.hist.Reset()
			done += rec.done
			rec.done = 0
		}
		rec.mu.Unlock()
	}
	return done
}

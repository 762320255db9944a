// Package latency has the histograms of how long the stages of a job take, and what reports and files contain of them:
// percentiles, a heat map, and HdrHistogram logs.
package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Stage is a part of a job's lifetime whose duration is measured.
type Stage uint8

const (
	Created Stage = iota // from the submission (open loop: scheduled time) to the acknowledgement
	Queued               // from the acknowledgement to the assignment to a worker
	Run                  // from the assignment to the end of the job
	Total                // from the submission (open loop: scheduled time) to the end of the job
)

// Stages are the names of the parts of a job's lifetime whose duration is measured: created, from the submission (in
// an open loop from the scheduled time) to the acknowledgement of the server; queued, from there to the assignment to
// a worker; run, from there to the end of the job; and total, from the submission or the scheduled time to the end.
var Stages = [...]string{"created", "queued", "run", "total"}

// Range of the histograms in nanoseconds, and their precision in decimal digits. Values outside the range count as
// the nearest bound.
const (
	lowest  = int64(500)
	highest = int64(time.Hour)
	digits  = 3
)

// Histograms are the latency histograms of all stages, in nanoseconds from 500 ns to 1 h, with three significant
// digits.
type Histograms [len(Stages)]*Histogram

// Histogram is a histogram of latencies in nanoseconds.
type Histogram = hdrhistogram.Histogram

// New returns empty histograms.
func New() (h Histograms) {
	for i := range h {
		h[i] = NewHistogram()
	}
	return h
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram { return hdrhistogram.New(lowest, highest, digits) }

// Record adds a latency in nanoseconds to a histogram.
func Record(h *Histogram, ns int64) { h.RecordValue(min(max(ns, lowest), highest)) }

// Reset removes all latencies.
func (h Histograms) Reset() {
	for i := range h {
		h[i].Reset()
	}
}

// Merge adds the latencies of o.
func (h Histograms) Merge(o Histograms) {
	for i := range h {
		h[i].Merge(o[i])
	}
}

// minTail is the number of samples that must be greater than a percentile for the percentile to be reported.
const minTail = 10

// Quantiles returns the percentiles of each stage, by the name of the stage.
func (h Histograms) Quantiles() map[string]Quantiles {
	all := make(map[string]Quantiles, len(Stages))
	for st, h := range h {
		all[Stages[st]] = QuantilesOf(h)
	}
	return all
}

// QuantilesOf returns the percentiles of a histogram of nanoseconds. Percentiles with too few samples are 0.
func QuantilesOf(h *Histogram) Quantiles {
	n := h.TotalCount()
	if n == 0 {
		return Quantiles{}
	}
	us := func(ns int64) Micros { return Micros(float64(ns) / 1e3) }
	at := func(q float64) Micros {
		if float64(n)*(100-q)/100 < minTail {
			return 0
		}
		return us(h.ValueAtQuantile(q))
	}
	return Quantiles{n, us(int64(h.Mean())), at(50), at(90), at(95), at(99), at(99.9), at(99.99), us(h.Max())}
}

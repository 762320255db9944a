package jobs

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Durations is a distribution of durations. Its quantiles are exact while it has few durations, then accurate to
// 1 percent or 1 microsecond.
type Durations struct {
	few  []int64                 // nanoseconds; most queues of a capture with many queues have few jobs
	many *hdrhistogram.Histogram // histogram in nanoseconds; nil until there are more than maxFew durations
}

const (
	maxFew     = 32
	resolution = int64(time.Microsecond)
	digits     = 2
)

// add adds a duration in nanoseconds; a negative one counts as 0. The first maxFew durations are kept exactly, further
// ones in a histogram, which grows as necessary.
func (d *Durations) add(ns int64) {
	ns = min(max(ns, 0), math.MaxInt64/4)
	if d.many == nil {
		if len(d.few) < maxFew {
			d.few = append(d.few, ns)
			return
		}
		d.many = hdrhistogram.New(resolution, int64(time.Second), digits)
		for _, v := range d.few {
			d.add(v)
		}
		d.few = nil
	}
	if d.many.RecordValue(ns) != nil { // larger than its maximum
		larger := hdrhistogram.New(resolution, 2*ns, digits)
		larger.Merge(d.many)
		larger.RecordValue(ns)
		d.many = larger
	}
}

// addAll adds the durations of another distribution.
func (d *Durations) addAll(o *Durations) {
	for _, v := range o.few {
		d.add(v)
	}
	if o.many != nil {
		for _, b := range o.many.Distribution() {
			for range b.Count {
				d.add(b.To)
			}
		}
	}
}

// Count returns the number of durations.
func (d *Durations) Count() int {
	if d.many != nil {
		return int(d.many.TotalCount())
	}
	return len(d.few)
}

// Quantile returns the duration that the fraction q of all durations does not exceed, or 0 if there are none.
func (d *Durations) Quantile(q float64) time.Duration {
	switch n := len(d.few); {
	case d.many != nil:
		return time.Duration(d.many.ValueAtQuantile(100 * q))
	case n > 0:
		return time.Duration(slices.Sorted(slices.Values(d.few))[min(max(int(q*float64(n)+0.5), 1), n)-1])
	}
	return 0
}

// MarshalJSON writes the count, and quantiles in nanoseconds.
func (d *Durations) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"count": int64(d.Count()), "p50": int64(d.Quantile(.5)),
		"p90": int64(d.Quantile(.9)), "p99": int64(d.Quantile(.99)), "max": int64(d.Quantile(1))})
}

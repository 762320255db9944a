package pcap

import (
	"encoding/json"
	"math/bits"
	"time"
)

// Durations is a histogram of durations, accurate to about 3 percent.
type Durations struct {
	counts []uint32 // up to the last bucket that is not zero
	n      int
}

func (d *Durations) add(ns int64) {
	v := uint64(max(ns, 0))
	i := int(v)
	if v >= 32 {
		e := bits.Len64(v) - 6
		i = (e+1)*32 + int(v>>e) - 32
	}
	for len(d.counts) <= i {
		d.counts = append(d.counts, 0)
	}
	d.counts[i]++
	d.n++
}

// addAll adds the durations of another histogram.
func (d *Durations) addAll(o *Durations) {
	for len(d.counts) < len(o.counts) {
		d.counts = append(d.counts, 0)
	}
	for i, c := range o.counts {
		d.counts[i] += c
	}
	d.n += o.n
}

// Count returns the number of durations.
func (d *Durations) Count() int { return d.n }

// Quantile returns the duration that the fraction q of all durations does not exceed, or 0 if there are none.
func (d *Durations) Quantile(q float64) time.Duration {
	left := int(q*float64(d.n) + 0.5)
	for i, c := range d.counts {
		if left -= int(c); c > 0 && left <= 0 {
			if i < 32 {
				return time.Duration(i)
			}
			e := i/32 - 1
			return time.Duration(uint64(i%32+32)<<e + 1<<e/2)
		}
	}
	return 0
}

// MarshalJSON writes the count, and quantiles in nanoseconds.
func (d *Durations) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"count": int64(d.n), "p50": int64(d.Quantile(.5)), "p90": int64(d.Quantile(.9)), "p99": int64(d.Quantile(.99)), "max": int64(d.Quantile(1))})
}

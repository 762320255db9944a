package loadgen

import "github.com/HdrHistogram/hdrhistogram-go"

// Summary is the latencies of one stage in nanoseconds. A percentile that too few samples
// stand behind is 0.
type Summary struct {
	Count                               int64
	Min, Mean, P50, P90, P99, P999, Max int64
}

// carries is how many samples have to lie beyond a percentile for it to be told.
const carries = 10

func summarize(h *hdrhistogram.Histogram) Summary {
	n := h.TotalCount()
	if n == 0 {
		return Summary{}
	}
	at := func(q float64) int64 {
		if float64(n)*(100-q)/100 < carries {
			return 0
		}
		return h.ValueAtQuantile(q)
	}
	return Summary{Count: n, Min: h.Min(), Mean: int64(h.Mean()), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: h.Max()}
}

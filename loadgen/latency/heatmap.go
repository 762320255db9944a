package latency

import (
	"math"
	"time"
)

// HeatMap collects the latency distributions of all intervals.
type HeatMap struct{ frames []HeatFrame }

// Rows of the heat map. Latencies are divided into rows on a logarithmic scale.
const (
	heatRows      = 96     // number of rows
	heatPerDouble = 4      // number of rows for each doubling of the latency
	heatMin       = 1000.0 // start of the first row, in nanoseconds
)

// heatRow returns the row of a latency in nanoseconds.
func heatRow(ns int64) int {
	row := int(math.Log2(float64(ns)/heatMin) * heatPerDouble)
	return min(max(row, 0), heatRows-1)
}

// heatEdge returns the latency at which a row begins, in nanoseconds.
func heatEdge(row int) float64 { return heatMin * math.Exp2(float64(row)/heatPerDouble) }

// Add adds the distribution of an interval.
func (m *HeatMap) Add(start, length time.Duration, h *Histogram) {
	fr := HeatFrame{start.Seconds(), length.Seconds(), make([]int64, heatRows)}
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			fr.Counts[heatRow(bar.From)] += bar.Count
		}
	}
	m.frames = append(m.frames, fr)
}

// Curve is the latency of a stage by percentile.
type Curve struct {
	Name   string       `json:"name"`   // name of the stage
	Points [][2]float64 `json:"points"` // pairs of a percentile and its latency in microseconds
}

// Heat is the number of jobs by latency, from the submission to the end, for each interval.
type Heat struct {
	Edges  []float64   `json:"edges"`  // bounds of the rows, in microseconds; one more than there are rows
	Frames []HeatFrame `json:"frames"` // the intervals
}

// HeatFrame is one interval of a [Heat].
type HeatFrame struct {
	At      float64 `json:"at"`      // seconds since the start of the measured part
	Seconds float64 `json:"seconds"` // length of the interval
	Counts  []int64 `json:"counts"`  // number of jobs in each row
}

// Spectrum returns the latency of every stage by percentile, up to the highest percentile that the number of samples
// supports. It has eight points for each tenfold decrease of the share of slower jobs: from 0 to 90 %, from 90 to 99
// %, and so on.
func (h *Histograms) Spectrum() []Curve {
	const pointsPerStep = 8
	var all []Curve
	for st, stage := range h {
		if stage == nil || stage.TotalCount() == 0 {
			continue
		}
		var at []float64
		for k := 0; ; k++ {
			beyond := math.Pow(10, -float64(k)/pointsPerStep)
			if beyond*float64(stage.TotalCount()) < 1 {
				break
			}
			at = append(at, 100*(1-beyond))
		}
		curve := Curve{Name: Stages[st]}
		for i, ns := range stage.ValueAtPercentilesSlice(at) {
			curve.Points = append(curve.Points, [2]float64{at[i], float64(ns) / 1e3})
		}
		all = append(all, curve)
	}
	return all
}

// Heat returns the heat map without the empty rows at both ends, or nil if it is empty.
func (m *HeatMap) Heat() *Heat {
	low, high := heatRows, -1
	for i := range m.frames {
		for row, n := range m.frames[i].Counts {
			if n > 0 {
				low, high = min(low, row), max(high, row)
			}
		}
	}
	if high < 0 {
		return nil
	}
	var out Heat
	for row := low; row <= high+1; row++ {
		out.Edges = append(out.Edges, heatEdge(row)/1e3)
	}
	for i := range m.frames {
		fr := m.frames[i]
		fr.Counts = fr.Counts[low : high+1]
		out.Frames = append(out.Frames, fr)
	}
	return &out
}

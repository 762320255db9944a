package loadgen

import "math"

// heatmap is what the page shows, and the saved report does not hold.
type heatmap struct {
	total  Histograms
	frames []frame
}

// frame is the distribution of one interval: how many jobs took so long from their
// submission to their end.
type frame struct {
	start, seconds float64
	counts         [heatRows]int64
}

// Rows of the heat map: so many for each doubling, from heatFrom nanoseconds on.
const (
	heatRows      = 96
	heatPerDouble = 4
	heatFrom      = 1000.0
)

// heatRow is the row of a latency.
func heatRow(ns int64) int {
	row := int(math.Log2(float64(ns)/heatFrom) * heatPerDouble)
	return min(max(row, 0), heatRows-1)
}

// heatEdge is the latency in nanoseconds at which a row begins.
func heatEdge(row int) float64 { return heatFrom * math.Exp2(float64(row)/heatPerDouble) }

// expose keeps the distribution of an interval.
func (f *heatmap) expose(iv *Interval) {
	fr := frame{start: iv.Start.Seconds(), seconds: iv.Length.Seconds()}
	for _, bar := range iv.Stages[stageTotal].Distribution() {
		if bar.Count > 0 {
			fr.counts[heatRow(bar.From)] += bar.Count
		}
	}
	f.frames = append(f.frames, fr)
}

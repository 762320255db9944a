package loadgen

import "math"

// heatmap collects the distributions of all intervals.
type heatmap struct{ frames []frame }

// frame is the distribution of one interval: how many jobs took so long from their
// submission to their end.
type frame struct {
	start, seconds float64
	counts         [heatRows]int64
}

// Rows of the heat map: so many for each doubling, from heatMin nanoseconds on.
const (
	heatRows      = 96
	heatPerDouble = 4
	heatMin       = 1000.0
)

// heatRow is the row of a latency.
func heatRow(ns int64) int {
	row := int(math.Log2(float64(ns)/heatMin) * heatPerDouble)
	return min(max(row, 0), heatRows-1)
}

// heatEdge is the latency in nanoseconds at which a row begins.
func heatEdge(row int) float64 { return heatMin * math.Exp2(float64(row)/heatPerDouble) }

// addInterval keeps the distribution of an interval.
func (f *heatmap) addInterval(iv *Interval) {
	fr := frame{start: iv.Start.Seconds(), seconds: iv.Length.Seconds()}
	for _, bar := range iv.Stages[stageTotal].Distribution() {
		if bar.Count > 0 {
			fr.counts[heatRow(bar.From)] += bar.Count
		}
	}
	f.frames = append(f.frames, fr)
}

// A Curve is the latency of a stage by percentile.
type Curve struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"` // percentile, microseconds
}

// Heat is how many jobs took how long from their submission to their end, in each interval.
type Heat struct {
	Edges  []float64   `json:"edges"` // of the rows, in microseconds: one more than there are counts
	Frames []HeatFrame `json:"frames"`
}

// HeatFrame is one interval of a Heat.
type HeatFrame struct {
	At      float64 `json:"at"` // seconds since the measured part began
	Seconds float64 `json:"seconds"`
	Counts  []int64 `json:"counts"`
}

// distribute enters the distributions of a run.
func (r *Report) distribute(f *heatmap, stages Histograms) {
	r.stages, r.Spectrum, r.Heat = stages, stages.spectrum(), f.heat()
}

// spectrum is the latency of every stage by percentile, as far as samples carry it: each
// tenfold step towards 100 has as many points.
func (hs *Histograms) spectrum() []Curve {
	const pointsPerStep = 8
	var all []Curve
	for st, h := range hs {
		if h == nil || h.TotalCount() == 0 {
			continue
		}
		var at []float64
		for k := 0; ; k++ {
			beyond := math.Pow(10, -float64(k)/pointsPerStep)
			if beyond*float64(h.TotalCount()) < 1 {
				break
			}
			at = append(at, 100*(1-beyond))
		}
		curve := Curve{Name: Stages[st]}
		for i, ns := range h.ValueAtPercentilesSlice(at) {
			curve.Points = append(curve.Points, [2]float64{at[i], float64(ns) / 1e3})
		}
		all = append(all, curve)
	}
	return all
}

// heat is the part of the heat map's rows in which there is anything.
func (f *heatmap) heat() *Heat {
	low, high := heatRows, -1
	for i := range f.frames {
		for row, n := range f.frames[i].counts {
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
	for i := range f.frames {
		fr := &f.frames[i]
		out.Frames = append(out.Frames, HeatFrame{fr.start, fr.seconds, fr.counts[low : high+1]})
	}
	return &out
}

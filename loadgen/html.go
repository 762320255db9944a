package loadgen

import (
	_ "embed"
	"html/template"
	"io"
	"math"

	"jobwire/internal/prose"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"grouped":  prose.Grouped,
	"plural64": func(n int64, what string) string { return plural(int(n), what) },
	"cores":    formatCores,
	"jobs":     formatJobs,
}).Parse(pageSource))

// What the template is given.
type (
	pageData struct {
		*Report
		Columns []string
		Stages  []pageStage
		Tallies []pageTally
		Figures pageFacts // what the script draws
	}
	pageStage struct {
		Name, Words string
		Cells       []string
	}
	pageTally struct {
		Count int64
		Words string
		Bad   bool
	}
	pageFacts struct {
		Spectrum []pageCurve `json:"spectrum"`
		Series   []pagePoint `json:"series"`
		Heat     pageHeat    `json:"heat"`
		Interval float64     `json:"interval"`
	}
	pageCurve struct {
		Name   string       `json:"name"`
		Points [][2]float64 `json:"points"` // percentile, microseconds
	}
	pagePoint struct {
		At    float64 `json:"at"` // seconds, when the interval began
		To    float64 `json:"to"`
		Rate  float64 `json:"rate"`
		Want  float64 `json:"want"` // the rate requested
		Depth int64   `json:"depth"`
		P50   Micros  `json:"p50"`
		P99   Micros  `json:"p99"`
		P999  Micros  `json:"p999"`
	}
	pageHeat struct {
		Edges  []float64   `json:"edges"` // of the rows, in microseconds
		Frames []heatFrame `json:"frames"`
	}
	heatFrame struct {
		At      float64 `json:"at"`
		Seconds float64 `json:"seconds"`
		Counts  []int64 `json:"counts"`
	}
)

// WriteHTML writes the report as one page that needs nothing else.
func WriteHTML(w io.Writer, r *Report) error {
	d := pageData{Report: r, Figures: pageFacts{Spectrum: r.heatmap.spectrum(), Series: []pagePoint{}, Heat: r.heatmap.heat(), Interval: r.Interval}}
	for _, c := range columns {
		d.Columns = append(d.Columns, c.name)
	}
	for i, name := range Stages {
		q := r.Latency[name]
		if q.Count == 0 {
			continue
		}
		row := pageStage{Name: name, Words: stageWords[i]}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.of(&q).String())
		}
		d.Stages = append(d.Stages, row)
	}
	for _, t := range tallies {
		if n := *t.count(&r.Account); n > 0 {
			d.Tallies = append(d.Tallies, pageTally{n, t.words, t.bad})
		}
	}
	for i := range r.Series {
		e := &r.Series[i]
		if e.Start < 0 {
			continue // the warm-up
		}
		q := e.Latency[Stages[stageTotal]]
		d.Figures.Series = append(d.Figures.Series, pagePoint{e.Start, e.Start + e.Seconds, math.Round(e.Rate()), math.Round(e.Requested), e.Depth, q.P50, q.P99, q.P999})
	}
	return pageTemplate.Execute(w, d)
}

// Plan is the load in words.
func (d pageData) Plan() string { return d.plan() + "; " + d.loop() }

// Notes are what to know before the figures are used.
func (d pageData) Notes() []string { return d.notes() }

// Whole is the latencies of the stage that the page shows over time: all of a job's life.
func (d pageData) Whole() Quantiles { return d.Latency[Stages[stageTotal]] }

// spectrum is the latency of every stage by percentile, as far as samples carry it: each
// tenfold step towards 100 has as many points.
func (f *heatmap) spectrum() []pageCurve {
	const pointsPerStep = 24
	all := []pageCurve{}
	for st, h := range f.total {
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
		curve := pageCurve{Name: Stages[st]}
		for i, ns := range h.ValueAtPercentilesSlice(at) {
			curve.Points = append(curve.Points, [2]float64{at[i], float64(ns) / 1e3})
		}
		all = append(all, curve)
	}
	return all
}

// heat is the part of the heat map's rows in which there is anything.
func (f *heatmap) heat() pageHeat {
	low, high := heatRows, -1
	for i := range f.frames {
		for row, n := range f.frames[i].counts {
			if n > 0 {
				low, high = min(low, row), max(high, row)
			}
		}
	}
	var out pageHeat
	if high < 0 {
		return out
	}
	for row := low; row <= high+1; row++ {
		out.Edges = append(out.Edges, heatEdge(row)/1e3)
	}
	for i := range f.frames {
		fr := &f.frames[i]
		out.Frames = append(out.Frames, heatFrame{fr.start, fr.seconds, fr.counts[low : high+1]})
	}
	return out
}

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
		Spectrum []Curve     `json:"spectrum"`
		Series   []pagePoint `json:"series"`
		Heat     Heat        `json:"heat"`
		Interval float64     `json:"interval"`
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
)

// WriteHTML writes the report as one page that needs nothing else.
func WriteHTML(w io.Writer, r *Report) error {
	d := pageData{Report: r, Figures: pageFacts{Spectrum: append([]Curve{}, r.Spectrum...), Series: []pagePoint{}, Interval: r.Interval}}
	if r.Heat != nil {
		d.Figures.Heat = *r.Heat
	}
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

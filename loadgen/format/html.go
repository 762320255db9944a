package format

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"math"
	"time"

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/internal/target"
	"jobwire/internal/version"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

//go:embed page*.html
var pageFiles embed.FS

//go:embed page.css
var pageStyle string

// pages are the HTML templates. page.html has the script functions that all pages share.
var pages = template.Must(page.New(template.FuncMap{
	"grouped":  prose.Grouped[int64],
	"plural64": prose.Count[int64],
	"plural":   prose.Count[int],
	"columns":  latency.ColumnNames,
	"cores":    formatCores,
	"jobs":     report.FormatJobs,
	"command":  target.Join,
}).ParseFS(pageFiles, "page*.html"))

// Data of the template page_run.html.
type (
	pageData struct {
		*report.Report
		Figures pageFacts // data of the figures
	}
	pageFacts struct {
		Spectrum   []latency.Curve `json:"spectrum"`
		Series     []pagePoint     `json:"series"`
		Heat       latency.Heat    `json:"heat"`
		Interval   float64         `json:"interval"`
		Objectives []pageObjective `json:"objectives"`
	}
	pagePoint struct {
		At    float64        `json:"at"` // start of the interval in seconds since the start of the measured part
		To    float64        `json:"to"`
		Rate  float64        `json:"rate"`
		Want  float64        `json:"want"` // requested rate, in jobs per second
		Depth int64          `json:"depth"`
		P50   latency.Micros `json:"p50"`
		P99   latency.Micros `json:"p99"`
		P999  latency.Micros `json:"p999"`
	}
	pageObjective struct {
		Text   string  `json:"text"`
		Stage  string  `json:"stage"` // stage of the latency; "": the objective is about the rate
		Metric string  `json:"metric"`
		Limit  float64 `json:"limit"` // in microseconds, or jobs per second
	}
)

// pageObjectives returns the objectives with these texts. It leaves out texts that it cannot parse, such as those of
// a baseline.
func pageObjectives(texts []string) []pageObjective {
	all := []pageObjective{}
	for _, text := range texts {
		if o, err := report.ParseObjective(text); err == nil {
			all = append(all, pageObjective{o.Text, o.Stage, o.Metric, o.Limit})
		}
	}
	return all
}

// HTML writes the report as one HTML page without references to other files.
func HTML(w io.Writer, r *report.Report) error {
	var objectives []string
	for _, o := range r.Objectives {
		objectives = append(objectives, o.Objective)
	}
	d := pageData{Report: r, Figures: pageFacts{Spectrum: append([]latency.Curve{}, r.Spectrum...), Series: []pagePoint{},
		Interval: r.Interval, Objectives: pageObjectives(objectives)}}
	if r.Heat != nil {
		d.Figures.Heat = *r.Heat
	}
	for i := range r.Series {
		e := &r.Series[i]
		if e.Start < 0 {
			continue // skip the warm-up
		}
		q := e.Latency[latency.Stages[latency.Total]]
		d.Figures.Series = append(d.Figures.Series,
			pagePoint{e.Start, e.Start + e.Seconds, math.Round(e.Rate()), math.Round(e.Requested), e.Depth, q.P50, q.P99,
				q.P999})
	}
	return pages.ExecuteTemplate(w, "page_run.html", d)
}

// newHead returns the header of a page, with the version of jobwire and the machine of the result.
func newHead(title string, began time.Time, jobwire version.Info, env *machine.Environment, facts ...string) page.Head {
	if env != nil {
		facts = append(facts, env.String())
	}
	return page.Head{Title: title, Began: began, Jobwire: jobwire, Facts: facts, Style: template.CSS(pageStyle)}
}

// Head returns the header of the page.
func (d pageData) Head() page.Head {
	h := newHead(d.Protocol+" "+d.Scenario, d.Started, d.Jobwire, d.Environment, plan(d.Report), loop(d.Report))
	if d.Share != nil {
		h.Facts = append(h.Facts, d.Share.String())
	}
	h.Target, h.Tone = d.Target, d.Tone()
	h.Verdict = d.Result().Symbol() + " " + string(d.Result()) + ": " + report.FormatJobs(d.Rate) + " jobs/s"
	return h
}

// Tone returns the CSS class for the verdict.
func (d pageData) Tone() string { return cmp.Or(d.Result().Tone(), "fair") }

// StageLatencies returns the stages that have latencies.
func (d pageData) StageLatencies() []stageLatency { return stageLatencies(d.Report) }

// TotalLatency returns the latency from the submission to the end of a job, which the page shows over time.
func (d pageData) TotalLatency() latency.Quantiles { return d.Latency[latency.Stages[latency.Total]] }

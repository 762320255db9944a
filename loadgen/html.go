package loadgen

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"time"

	"golang.org/x/perf/benchmath"

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
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
	"jobs":     formatJobs,
}).ParseFS(pageFiles, "page*.html"))

// Data of the template page_run.html.
type (
	pageData struct {
		*Report
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
		if o, err := ParseObjective(text); err == nil {
			all = append(all, pageObjective{o.Text, o.stage, o.metric, o.limit})
		}
	}
	return all
}

// WriteHTML writes the report as one HTML page without references to other files.
func WriteHTML(w io.Writer, r *Report) error {
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
	h := newHead(d.Protocol+" "+d.Scenario, d.Started, d.Jobwire, d.Environment, d.plan(), d.loop())
	if d.Share != nil {
		h.Facts = append(h.Facts, d.Share.String())
	}
	h.Target, h.Tone = d.Target, d.Tone()
	h.Verdict = verdictSymbols[d.Result()] + " " + string(d.Result()) + ": " + formatJobs(d.Rate) + " jobs/s"
	return h
}

var verdictSymbols = map[Verdict]string{Passed: "✓", Failed: "✗", Invalid: "?"}

// Tone returns the CSS class for the verdict.
func (d pageData) Tone() string {
	switch d.Result() {
	case Passed:
		return "good"
	case Failed:
		return "bad"
	}
	return "fair"
}

// TotalLatency returns the latency from the submission to the end of a job, which the page shows over time.
func (d pageData) TotalLatency() latency.Quantiles { return d.Latency[latency.Stages[latency.Total]] }

// Data of the template page_search.html.
type (
	searchPage struct {
		*SearchReport
		Rows    []searchRow
		Figures searchFacts
	}
	searchRow struct {
		*Trial
		Number  int
		Cells   []string // measured values of the objectives
		Reasons string   // why the trial did not pass
	}
	searchFacts struct {
		Objectives []pageObjective `json:"objectives"`
		Trials     []pageTrial     `json:"trials"`
	}
	pageTrial struct {
		Rate   float64    `json:"rate"`
		Result Verdict    `json:"result"`
		Values []*float64 `json:"values"` // measured values of the objectives, or null
	}
)

// Head returns the header of the page.
func (d searchPage) Head() page.Head {
	h := newHead(d.Protocol+" "+d.Scenario+": search for the highest rate", d.Started, d.Jobwire, d.Environment,
		fmt.Sprintf("%s of at least %v s", prose.Count(len(d.Trials), "trial"), d.Seconds))
	h.Target, h.Verdict = d.Target, d.Answer()
	return h
}

// WriteHTML writes the search as one HTML page without references to other files.
func (s *SearchReport) WriteHTML(w io.Writer) error {
	d := searchPage{SearchReport: s, Figures: searchFacts{Objectives: pageObjectives(s.SLO)}}
	for i := range s.Trials {
		t := &s.Trials[i]
		row, shown := searchRow{Trial: t, Number: i + 1}, pageTrial{Rate: t.Rate, Result: t.Result()}
		for _, o := range d.Figures.Objectives {
			v := t.value(o.Text)
			shown.Values = append(shown.Values, v)
			switch {
			case v == nil:
				row.Cells = append(row.Cells, "-")
			case o.Stage == "":
				row.Cells = append(row.Cells, formatJobs(*v))
			default:
				row.Cells = append(row.Cells, formatMicros(*v))
			}
		}
		if shown.Result != Passed {
			row.Reasons = t.Why
		}
		d.Rows, d.Figures.Trials = append(d.Rows, row), append(d.Figures.Trials, shown)
	}
	return pages.ExecuteTemplate(w, "page_search.html", d)
}

// value returns the measured value of an objective, or nil if it is not known.
func (t *Trial) value(objective string) *float64 {
	for _, o := range t.Objectives {
		if o.Objective == objective {
			return o.Value
		}
	}
	return nil
}

// Data of the template page_compare.html.
type (
	comparePage struct {
		*Comparison
		Answers []compareAnswer
		Header  []string
		Rows    [][]string
		Figures compareFacts
	}
	compareAnswer struct {
		Name  string
		Parts []comparePart
	}
	comparePart struct{ Class, Text string }

	compareFacts struct {
		First     string         `json:"first"`
		Tolerance float64        `json:"tolerance"`
		Charts    []compareChart `json:"charts"`
	}
	compareChart struct {
		Name string       `json:"name"`
		Rows []compareRow `json:"rows"`
	}
	compareRow struct {
		Title string `json:"title"`
		Text  string `json:"text"`
		Class string `json:"class"` // CSS class, see figure.difference
		Ratio
	}
)

// WriteHTML writes the comparison as one HTML page without references to other files. The page marks differences from
// the first server that are significant and larger than the tolerance (0.1: 10 %).
func (c *Comparison) WriteHTML(w io.Writer, tolerance float64) error {
	table := c.table()
	d := comparePage{Comparison: c, Header: table[0], Rows: table[1:],
		Figures: compareFacts{First: c.Targets[0].Name, Tolerance: tolerance}}
	for _, t := range c.Targets[1:] {
		chart, answer := compareChart{t.Name, []compareRow{}}, compareAnswer{Name: t.Name}
		for i := range figures {
			f := &figures[i]
			r, known := t.Ratios[f.key]
			if !known {
				continue
			}
			class, words := f.difference(r, tolerance)
			ratio, _, _ := r.texts()
			chart.Rows = append(chart.Rows, compareRow{f.title, ratio + " times, " + words, class, r})
			if f.ofTarget() {
				answer.Parts = append(answer.Parts, comparePart{class, fmt.Sprintf("%s %s times (%s)", f.title, ratio, words)})
			}
		}
		d.Answers, d.Figures.Charts = append(d.Answers, answer), append(d.Figures.Charts, chart)
	}
	return pages.ExecuteTemplate(w, "page_compare.html", d)
}

// difference describes a ratio in words: better or worse than 1, within the tolerance, or not significant. class is
// the CSS class for it: "good", "bad" or "".
func (f *figure) difference(r Ratio, tolerance float64) (class, words string) {
	significant := r.P != nil && *r.P < benchmath.DefaultThresholds.CompareAlpha
	if r.Low != nil {
		significant = *r.Low > 1 || *r.High < 1
	}
	switch {
	case significant && math.Abs(r.Ratio-1) <= tolerance, r.Low != nil && *r.Low >= 1-tolerance && *r.High <= 1+tolerance:
		return "", "within " + strconv.FormatFloat(100*tolerance, 'g', 3, 64) + " %"
	case r.Low == nil && r.P == nil:
		return "", "too few runs"
	case !significant:
		return "", "not significant"
	case !f.ofTarget():
		return "", "significant"
	case (r.Ratio > 1) == f.higher:
		return "good", "better"
	}
	return "bad", "worse"
}

// Title returns the title of the page, with the names of the servers.
func (d comparePage) Title() string {
	text := d.Targets[0].Name
	for _, t := range d.Targets[1 : len(d.Targets)-1] {
		text += ", " + t.Name
	}
	return fmt.Sprintf("%s %s: %s and %s compared", d.Runs[0].Protocol, d.Runs[0].Scenario, text,
		d.Targets[len(d.Targets)-1].Name)
}

// Head returns the header of the page, without a verdict: the page shows the results below the header, one line for
// each server.
func (d comparePage) Head() page.Head {
	r := d.Runs[0]
	return newHead(d.Title(), r.Started, r.Jobwire, r.Environment, r.plan(), r.loop())
}

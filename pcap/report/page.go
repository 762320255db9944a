// Package report shows what is in a capture. Pass the items of a [jobwire/pcap.Decoder] to a [Listing] or [JSONLines], which
// write each item, or to a [Summary] or [Page], which write counts, or an HTML page with timelines of jobs, at the end.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/pcap"
	"jobwire/pcap/jobs"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(page.New(template.FuncMap{"count": prose.Grouped[int]}).Parse(pageSource))

// Limits of a page.
const (
	pageTimelines = 20_000 // number of jobs from which the drawn jobs are chosen
	pageJobs      = 150    // number of drawn jobs
	pageUnusual   = 50     // number of drawn jobs with unusual events
	pageConns     = 50     // number of drawn connections
	pageTables    = 100    // rows of a table
)

// Page collects the data of an HTML page about a capture.
type Page struct {
	jobs     *jobs.Tracker
	sum      Summary
	traffic  traffic
	from, to int64
	messages int
}

// New returns an empty page.
func New() *Page {
	p := &Page{jobs: jobs.New()}
	p.jobs.KeepTimelines(pageTimelines)
	return p
}

// Add adds an item.
func (p *Page) Add(it *pcap.Item) {
	if p.from == 0 {
		p.from = it.At
	}
	p.to = max(p.to, it.At)
	p.jobs.Add(it)
	p.sum.Add(it)
	if it.Kind <= pcap.Violates {
		p.messages++
	}
	p.traffic.add(it, p.from)
}

// The data of the template.
type (
	pageData struct {
		Title, Span    string
		from           int64 // time of the first packet in nanoseconds since 1970, or 0
		Messages, Jobs int
		*Report
		Functions      []pageFunction
		Timelines      []pageTimeline
		TimelinesLeft  int
		Slots          int // number of time slots in the row of a connection
		Relative, Cut  bool
		Ticks, Clock   []pageTick
		Conns          []pageConn
		ConnsLeft      int
		Anomalies      []jobs.Anomaly
		AnomaliesLeft  int
		Tiles          []pageTile
		FunctionsLeft  int
		Forgotten      int
		NoJobs, Gapped bool
	}
	pageTile struct {
		Value, Words string
		Bad          bool
	}
	pageFunction struct {
		Name  string
		Stats *jobs.Stats
		Cells []string // p50 and p99 of wait, run and return
	}
	pageTimeline struct {
		Handle, Function, Words string
		Unusual, Cut            bool
		Bars                    []pageBar
		Cells                   []string // submitted, wait, run, return
	}
	pageBar struct {
		Class       string
		Left, Width string // percent
		Words       string
	}
	pageTick struct{ Left, Text string }
	pageConn struct {
		ID          int
		Role, Peer  string
		Up, Down    int
		Bars        []pageBar // messages to the server, then messages to the peer
		First, Last string
	}
)

// WriteHTML writes a self-contained page about a capture. d is the decoder that passed the items to the page.
func (p *Page) WriteHTML(w io.Writer, title string, d *pcap.Decoder) error {
	r := p.jobs.Report()
	data := pageData{Title: title, from: p.from, Span: shortly(time.Duration(p.to - p.from)), Messages: p.messages,
		Report: p.sum.Report(d), Forgotten: r.Forgotten}
	data.Anomalies, data.AnomaliesLeft = first(r.Anomalies, pageTables)
	total := data.functions(r)
	data.Jobs = total.Submitted
	data.NoJobs = total.Submitted+total.Assigned == 0
	data.Gapped = data.Missing > 0
	data.tiles(total)
	timelines, more := p.jobs.Timelines()
	data.timelines(timelines, more, p.from, p.to)
	data.Conns, data.ConnsLeft = p.traffic.rows()
	data.Clock, data.Slots = ticks(p.traffic.span()), p.traffic.last+1
	return pageTemplate.Execute(w, &data)
}

// Head returns the header of the page.
func (d *pageData) Head() page.Head {
	h := page.Head{Title: "Capture: " + d.Title, Verdict: "✓ no violations and no job anomalies", Tone: "good",
		Jobwire: d.Jobwire, Style: template.CSS(pageStyle)}
	if d.from > 0 {
		h.Began = time.Unix(0, d.from)
	}
	h.Facts = []string{prose.Count(d.Packets, "packet") + " in " + d.Span, prose.Count(d.Connections, "connection"),
		prose.Count(d.Jobs, "job") + ", " + prose.Grouped(d.Messages) + " messages"}
	if d.Unknown > 0 {
		h.Facts = append(h.Facts, prose.Count(d.Unknown, "connection")+" of an unknown protocol")
	}
	anomalies := len(d.Anomalies) + d.AnomaliesLeft
	switch {
	case d.Violations > 0:
		h.Verdict, h.Tone = fmt.Sprintf("✗ messages that break a rule: %s; job anomalies: %s", prose.Grouped(d.Violations),
			prose.Grouped(anomalies)), "bad"
	case anomalies > 0:
		h.Verdict, h.Tone = "△ job anomalies: "+prose.Grouped(anomalies), "fair"
	case d.Messages == 0:
		h.Verdict, h.Tone = "? no messages", "fair"
	case d.Missing > 0:
		h.Verdict, h.Tone = "? incomplete capture: no violations and no job anomalies found", "fair"
	}
	return h
}

// first returns at most n elements of a list, and the number of the others.
func first[T any](all []T, n int) ([]T, int) {
	if len(all) <= n {
		return all, 0
	}
	return all[:n], len(all) - n
}

// tiles sets the figures at the top of the page. Figures for failures are shown only if they are not 0.
func (d *pageData) tiles(total *jobs.Stats) {
	d.Tiles = []pageTile{{prose.Grouped(d.Messages), "messages", false},
		{prose.Grouped(d.Connections), "connections", false}}
	for _, t := range []struct {
		n     int
		words string
		bad   bool
	}{{total.Submitted, "jobs submitted", false}, {total.Completed, "completed", false}, {total.Failed, "failed", true},
		{total.Redelivered, "redelivered", true},
		{total.Unended, "jobs not ended", true}, {d.Violations, "messages that break a rule", true},
		{d.Gaps + d.CutPackets, "gaps: data missing in the capture", true}} {
		if t.n > 0 || !t.bad {
			d.Tiles = append(d.Tiles, pageTile{prose.Grouped(t.n), t.words, t.bad})
		}
	}
}

// functions fills the table of percentiles, and returns the sum of all functions.
func (d *pageData) functions(r *jobs.Report) *jobs.Stats {
	total := &jobs.Stats{}
	for _, name := range slices.Sorted(maps.Keys(r.Functions)) {
		s := r.Functions[name]
		total.Submitted += s.Submitted
		total.Assigned += s.Assigned
		total.Completed += s.Completed
		total.Failed += s.Failed
		total.Redelivered += s.Redelivered
		total.Unended += s.Unended
		f := pageFunction{Name: name, Stats: s}
		if name == "" {
			f.Name = "(not captured)"
		}
		for _, q := range []*jobs.Durations{&s.Wait, &s.Run, &s.Return} {
			for _, share := range []float64{.5, .99} {
				text := ""
				if q.Count() > 0 {
					text = shortly(q.Quantile(share))
				}
				f.Cells = append(f.Cells, text)
			}
		}
		d.Functions = append(d.Functions, f)
	}
	slices.SortStableFunc(d.Functions, func(a, b pageFunction) int { return b.Stats.Submitted - a.Stats.Submitted })
	d.Functions, d.FunctionsLeft = first(d.Functions, pageTables)
	return total
}

// shortly formats a duration with three digits.
func shortly(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d >= u.unit {
			v := float64(d) / float64(u.unit)
			digits := max(0, 2-int(math.Log10(v)))
			return strconv.FormatFloat(v, 'f', digits, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}

// percent formats a fraction as a CSS percentage.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "0%"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 3, 64) + "%"
}

// ticks returns about four ticks for an axis of span nanoseconds.
func ticks(span int64) []pageTick {
	if span <= 0 {
		return nil
	}
	unit := math.Pow(10, math.Floor(math.Log10(float64(span)/4)))
	step := unit
	for _, m := range []float64{2, 5, 10} {
		if float64(span)/step > 4.5 {
			step = m * unit
		}
	}
	var all []pageTick
	for v := 0.0; v <= float64(span)*.8; v += step {
		text := "0"
		if v > 0 {
			text = tickText(int64(v), int64(step))
		}
		all = append(all, pageTick{percent(int64(v), span), text})
	}
	return all
}

// tickText formats a time with the precision of the axis.
func tickText(v, step int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}} {
		if step >= u.unit || v >= u.unit && step >= u.unit/10 {
			text := strconv.FormatFloat(float64(v)/float64(u.unit), 'f', 3, 64)
			return strings.TrimRight(strings.TrimRight(text, "0"), ".") + u.name
		}
	}
	return ""
}

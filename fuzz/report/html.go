package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"jobwire/internal/page"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(page.New(template.FuncMap{
	"number":  func(i int) int { return i + 1 },
	"seen":    (*Finding).seen,
	"shows":   (*Finding).shows,
	"what":    (*Finding).what,
	"brief":   (*Finding).brief,
	"symptom": (*Finding).symptom,
	"line":    oneLine,
	"output":  func(f *Finding) string { return strings.Join(f.lastOutput(maxPageOutput), "\n") },
	"stack":   func(f *Finding) string { return strings.Join(f.Stack, "\n") },
	"tone":    tone,
}).Parse(pageSource))

// WriteHTML writes the report as one self-contained HTML page.
func WriteHTML(w io.Writer, r *Report) error { return pageTemplate.Execute(w, r) }

// Head returns the header of the page.
func (r *Report) Head() page.Head {
	h := page.Head{Title: "Fuzzing " + r.Title, Verdict: "✓ no findings", Tone: "good", Target: oneLine(r.Target),
		Began: r.Began, Jobwire: r.Jobwire, Style: template.CSS(pageStyle)}
	if len(r.Findings) > 0 {
		worst := r.Findings[0].Level
		h.Verdict, h.Tone = fmt.Sprintf("✗ %s, the most severe is %s", counted(len(r.Findings), "finding", "findings"),
			worst), tone(worst)
	}
	s := &r.Summary
	if len(r.Findings) == 0 && s.Unexamined > 0 {
		h.Verdict, h.Tone = "? "+s.Verdict(), "fair"
	}
	h.Facts = []string{s.Duration().String(), fmt.Sprintf("%d executions (%.0f/s)", s.Executions, s.Rate()),
		fmt.Sprintf("random seed %d", s.Seed)}
	return h
}

// tone returns the CSS class for a severity level.
func tone(level string) string {
	switch level {
	case "critical", "high":
		return "bad"
	case "medium":
		return "fair"
	}
	return "none"
}

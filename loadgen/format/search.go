package format

import (
	"fmt"
	"io"
	"math"

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/report"
)

// Trial writes one line about a trial, as progress output.
func Trial(w io.Writer, t *experiment.Trial) {
	fmt.Fprintf(w, "%10s jobs/s  %-7s  %s\n", prose.Grouped(int64(math.Round(t.Rate))), t.Result(), t.Why)
}

// SearchText writes the result of a search as text.
func SearchText(w io.Writer, b *experiment.LimitRange) error {
	rate := func(v float64) string {
		if v == 0 {
			return "none"
		}
		return prose.Grouped(int64(math.Round(v))) + " jobs/s"
	}
	_, err := fmt.Fprintf(w, "highest rate that passed       %s (%s)\nlowest rate that did not pass  %s (%s)\n",
		rate(b.Passed), b.Tried(b.Passed), rate(b.Failed), b.Tried(b.Failed))
	if b.Saturated {
		_, err = fmt.Fprintln(w, "In invalid trials, the load generator or its machine was the bottleneck, so the server may support\na higher rate. To see the reason, run bench with --rate and this rate.")
	}
	return err
}

// Data of the template page_search.html.
type (
	searchPage struct {
		*experiment.SearchReport
		Rows    []searchRow
		Figures searchFacts
	}
	searchRow struct {
		*experiment.Trial
		Number  int
		Cells   []string // measured values of the objectives
		Reasons string   // why the trial did not pass
	}
	searchFacts struct {
		Objectives []pageObjective `json:"objectives"`
		Trials     []pageTrial     `json:"trials"`
	}
	pageTrial struct {
		Rate   float64        `json:"rate"`
		Result report.Verdict `json:"result"`
		Values []*float64     `json:"values"` // measured values of the objectives, or null
	}
)

// Head returns the header of the page.
func (s searchPage) Head() page.Head {
	h := newHead(s.Protocol+" "+s.Scenario+": search for the highest rate", s.Started, s.Jobwire, s.Environment,
		fmt.Sprintf("%s of at least %v s", prose.Count(len(s.Trials), "trial"), s.Seconds))
	h.Target, h.Verdict = s.Target, s.Answer()
	return h
}

// SearchHTML writes the search as one HTML page without references to other files.
func SearchHTML(w io.Writer, s *experiment.SearchReport) error {
	d := searchPage{SearchReport: s, Figures: searchFacts{Objectives: pageObjectives(s.SLO)}}
	for i := range s.Trials {
		t := &s.Trials[i]
		row, shown := searchRow{Trial: t, Number: i + 1}, pageTrial{Rate: t.Rate, Result: t.Result()}
		for _, o := range d.Figures.Objectives {
			v := value(t, o.Text)
			shown.Values = append(shown.Values, v)
			switch {
			case v == nil:
				row.Cells = append(row.Cells, "-")
			case o.Stage == "":
				row.Cells = append(row.Cells, report.FormatJobs(*v))
			default:
				row.Cells = append(row.Cells, experiment.FormatMicros(*v))
			}
		}
		if shown.Result != report.Passed {
			row.Reasons = t.Why
		}
		d.Rows, d.Figures.Trials = append(d.Rows, row), append(d.Figures.Trials, shown)
	}
	return pages.ExecuteTemplate(w, "page_search.html", d)
}

// value returns the measured value of an objective, or nil if it is not known.
func value(t *experiment.Trial, objective string) *float64 {
	for _, o := range t.Objectives {
		if o.Objective == objective {
			return o.Value
		}
	}
	return nil
}

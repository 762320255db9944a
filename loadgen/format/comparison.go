package format

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/loadgen/experiment"
)

// ComparisonText writes the comparison as text.
func ComparisonText(w io.Writer, c *experiment.Comparison) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range comparisonTable(c) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
	for _, o := range c.Targets {
		fmt.Fprintf(&b, "\n%s: %s", o.Name, prose.Count(o.Runs, "run"))
	}
	fmt.Fprintln(&b)
	if notes := c.Notes(); len(notes) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(notes, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// comparisonTable returns the comparison as rows of text cells, the header first.
func comparisonTable(c *experiment.Comparison) [][]string {
	header := []string{"medians"}
	for i, o := range c.Targets {
		header = append(header, o.Name)
		if i > 0 {
			header = append(header, "times", "95 %", "p")
		}
	}
	rows := [][]string{header}
	for i := range experiment.Figures {
		f := &experiment.Figures[i]
		row := []string{f.Title}
		for k, o := range c.Targets {
			median := "-"
			if v, known := o.Medians[f.Key]; known {
				median = f.Format(v)
			}
			row = append(row, median)
			if k > 0 {
				ratio, interval, p := ratioTexts(o.Ratios[f.Key])
				row = append(row, ratio, interval, p)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// ratioTexts returns the cells of a ratio.
func ratioTexts(r experiment.Ratio) (ratio, interval, p string) {
	ratio, interval, p = "-", "-", "-"
	digits := func(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }
	if r.Ratio != 0 {
		ratio = digits(r.Ratio, 2)
	}
	if r.Low != nil {
		interval = digits(*r.Low, 2) + " to " + digits(*r.High, 2)
	}
	if r.P != nil {
		p = digits(*r.P, 3)
	}
	return ratio, interval, p
}

// Data of the template page_compare.html.
type (
	comparePage struct {
		*experiment.Comparison
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
		Class string `json:"class"` // CSS class, see Figure.Difference
		experiment.Ratio
	}
)

// ComparisonHTML writes the comparison as one HTML page without references to other files. The page marks differences from
// the first server that are significant and larger than the tolerance (0.1: 10 %).
func ComparisonHTML(w io.Writer, c *experiment.Comparison, tolerance float64) error {
	table := comparisonTable(c)
	d := comparePage{Comparison: c, Header: table[0], Rows: table[1:],
		Figures: compareFacts{First: c.Targets[0].Name, Tolerance: tolerance}}
	for _, t := range c.Targets[1:] {
		chart, answer := compareChart{t.Name, []compareRow{}}, compareAnswer{Name: t.Name}
		for i := range experiment.Figures {
			f := &experiment.Figures[i]
			r, known := t.Ratios[f.Key]
			if !known {
				continue
			}
			class, words := f.Difference(r, tolerance)
			ratio, _, _ := ratioTexts(r)
			chart.Rows = append(chart.Rows, compareRow{f.Title, ratio + " times, " + words, class, r})
			if f.OfTarget() {
				answer.Parts = append(answer.Parts, comparePart{class, fmt.Sprintf("%s %s times (%s)", f.Title, ratio, words)})
			}
		}
		d.Answers, d.Figures.Charts = append(d.Answers, answer), append(d.Figures.Charts, chart)
	}
	return pages.ExecuteTemplate(w, "page_compare.html", d)
}

// Title returns the title of the page, with the names of the servers.
func (c comparePage) Title() string {
	text := c.Targets[0].Name
	for _, t := range c.Targets[1 : len(c.Targets)-1] {
		text += ", " + t.Name
	}
	return fmt.Sprintf("%s %s: %s and %s compared", c.Runs[0].Protocol, c.Runs[0].Scenario, text,
		c.Targets[len(c.Targets)-1].Name)
}

// Head returns the header of the page, without a verdict: the page shows the results below the header, one line for
// each server.
func (c comparePage) Head() page.Head {
	r := c.Runs[0]
	return newHead(c.Title(), r.Started, r.Jobwire, r.Environment, plan(r), loop(r))
}

package format

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"jobwire/internal/page"
	"jobwire/internal/prose"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/latency"
)

// crashHeader has the titles of the columns of crashTable.
var crashHeader = []string{"kill", "acknowledged", "completed", "kept", "lost", "loss window", "repeated", "restart"}

// crashTable returns the figures of each round, and of all rounds together.
func crashTable(r *experiment.CrashReport) (rows [][]string) {
	add := func(name string, c *loadgen.CrashRound) {
		window := "-"
		if c.Lost > 0 {
			window = seconds(c.Window)
		}
		rows = append(rows, []string{name, prose.Grouped(c.Acknowledged), prose.Grouped(c.Completed), prose.Grouped(c.Kept),
			prose.Grouped(c.Lost), window,
			prose.Grouped(c.Repeated), seconds(c.Restart)})
	}
	for i := range r.Rounds {
		add(fmt.Sprint(i+1), &r.Rounds[i])
	}
	add("all", &r.Total)
	return rows
}

// crashLoad describes the load in words.
func crashLoad(r *experiment.CrashReport) string {
	return fmt.Sprintf("%s, window %s, %s", prose.Count(r.Clients, "client"), prose.Grouped(int64(r.Window)),
		prose.Count(len(r.Rounds), "kill"))
}

// CrashText writes the report of a crash test as text.
func CrashText(w io.Writer, r *experiment.CrashReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s on %s\n  %s\n\n", r.Protocol, r.Scenario, r.Target, crashLoad(r))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{crashHeader}, crashTable(r)...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
	b.WriteByte('\n')
	for _, note := range r.Notes() {
		wrap(&b, "note", note)
	}
	if r.Total.First != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(r.Total.First, "\n"))
	}
	wrap(&b, "verdict", r.Answer())
	_, err := io.WriteString(w, b.String())
	return err
}

// crashPage has the data of the template page_crash.html.
type crashPage struct {
	*experiment.CrashReport
	Header []string
	Rows   [][]string
}

// Head returns the header of the page.
func (c crashPage) Head() page.Head {
	h := newHead(c.Protocol+" "+c.Scenario, c.Started, c.Jobwire, c.Environment, crashLoad(c.CrashReport))
	h.Target, h.Verdict = c.Target, c.Answer()
	return h
}

// CrashHTML writes the report of a crash test as one HTML page without references to other files.
func CrashHTML(w io.Writer, r *experiment.CrashReport) error {
	return pages.ExecuteTemplate(w, "page_crash.html", crashPage{r, crashHeader, crashTable(r)})
}

// seconds formats a time in seconds, with a suitable unit.
func seconds(s float64) string { return latency.Micros(s * 1e6).String() }

// Package format writes reports: as text, JSON and HTML, and in the formats of other programs.
package format

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"jobwire/internal/prose"
	"jobwire/loadgen"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// wrap writes a paragraph with a heading in the first 11 columns, wrapped at 80 columns.
func wrap(b *strings.Builder, heading, s string) {
	b.WriteString(prose.Wrap(fmt.Sprintf("%-11s", heading), strings.Repeat(" ", 11), s, prose.Width) + "\n")
}

// Text writes the report as text.
func Text(w io.Writer, r *report.Report) error {
	var b strings.Builder
	textConfig(&b, r)
	b.WriteByte('\n')
	if r.Requested != "" {
		fmt.Fprintf(&b, "%s jobs/s requested, %s jobs/s achieved", report.FormatJobs(r.RateRequested), report.FormatJobs(r.Rate))
		if r.RateRequested > 0 {
			fmt.Fprintf(&b, " (%.0f %%)", 100*r.Rate/r.RateRequested)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s jobs in %.2f s: %s jobs/s\n\n", prose.Grouped(r.Jobs), r.Seconds, report.FormatJobs(r.Rate))
	textLatency(&b, r)
	textAccount(&b, r)
	textProcessors(&b, r)
	textVerdict(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

// plan describes the clients and workers.
func plan(r *report.Report) string {
	text := prose.Count(r.Clients, "client")
	if r.Workers > 0 {
		upTo := ""
		if r.Grabs > 1 {
			upTo = "up to "
		}
		text += fmt.Sprintf(", %s with %s%s each, %s", prose.Count(r.Workers, "worker"), upTo,
			prose.Count(r.Grabs, "job request"), prose.Count(r.Functions, "function"))
	}
	if r.Zipf > 0 {
		text += fmt.Sprintf(" (Zipf %g)", r.Zipf)
	}
	if r.Reconnects > 0 {
		text += ", " + prose.Count(r.Reconnects, "reconnection")
	}
	return text
}

// loop describes the load: closed or open loop, payload and seed.
func loop(r *report.Report) string {
	if r.Requested == "" {
		return fmt.Sprintf("closed loop, window %s; payload %s B; seed %d", prose.Grouped(int64(r.Window)), r.Payload, r.Seed)
	}
	return fmt.Sprintf("open loop, %s jobs/s; payload %s B; seed %d", r.Requested, r.Payload, r.Seed)
}

// textConfig writes the configuration of the run.
func textConfig(b *strings.Builder, r *report.Report) {
	fmt.Fprintf(b, "%s %s on %s\n  %s\n  %s", r.Protocol, r.Scenario, r.Target, plan(r), loop(r))
	if r.Share != nil {
		fmt.Fprintf(b, "; %s", r.Share)
	}
	fmt.Fprintf(b, "; jobwire %s\n", cmp.Or(r.Jobwire.Version, "of unknown version"))
	if r.Merged != nil {
		textMerged(b, r.Merged)
	}
}

// stageWords describes where each stage begins and ends.
var stageWords = [len(latency.Stages)]string{"submit -> ack", "ack -> worker", "worker -> end", "submit -> end"}

// stageLatency is the latency of one stage, for a table.
type stageLatency struct {
	Name, Words string           // name, and where the stage begins and ends
	Cells       []latency.Micros // in the order of columns
}

// stageLatencies returns the stages that have latencies.
func stageLatencies(r *report.Report) (all []stageLatency) {
	for i, name := range latency.Stages {
		q := r.Latency[name]
		if q.Count == 0 {
			continue
		}
		s := stageLatency{Name: name, Words: stageWords[i]}
		for _, c := range latency.Columns {
			s.Cells = append(s.Cells, c.Of(&q))
		}
		all = append(all, s)
	}
	return all
}

// textLatency writes the table of latencies by stage, with the columns for text, and notes about late submissions and
// about jobs that ended after the measurement.
func textLatency(b *strings.Builder, r *report.Report) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "latency\t")
	for _, c := range latency.Columns {
		if c.Text {
			fmt.Fprint(t, c.Name, "\t")
		}
	}
	fmt.Fprintln(t)
	for _, s := range stageLatencies(r) {
		fmt.Fprint(t, s.Name, "\t")
		for i, c := range latency.Columns {
			if c.Text {
				fmt.Fprint(t, s.Cells[i], "\t")
			}
		}
		fmt.Fprintf(t, "  %s\n", s.Words)
	}
	t.Flush()
	if r.Pacing != nil {
		fmt.Fprintf(b, "latency counts from the scheduled time; jobs were submitted late by\n%s on average, p99 %s, at most %s\n", r.Pacing.Mean, r.Pacing.P99, r.Pacing.Max)
	}
	if r.Independence != nil {
		b.WriteString(prose.Wrap("", "", r.Independence.String(), prose.Width) + "\n")
	}
	if r.AfterWindow > 0 {
		fmt.Fprintf(b, "%s finished after the measurement; their latencies are included\n", prose.Count(r.AfterWindow, "job"))
	}
	b.WriteByte('\n')
}

// textAccount writes the number of submitted jobs, the numbers of jobs that were lost or went wrong, the result of the
// order check, and a description of the first such job.
func textAccount(b *strings.Builder, r *report.Report) {
	text := prose.Grouped(r.Submitted) + " submitted, warm-up included"
	if r.NoFaults() {
		text += "; none lost, duplicated, corrupted, refused or answered wrongly"
	}
	wrap(b, "jobs", text)
	for _, t := range r.Tallies() {
		wrap(b, "", prose.Grouped(t.Count)+" "+t.Words)
	}
	switch {
	case r.Linear == nil:
	case r.Linear.Holds:
		wrap(b, "order", "first in, first out, as far as the times of requests and replies show")
	default:
		wrap(b, "order", "NOT first in, first out: "+r.Linear.Why)
	}
	if r.First != "" {
		fmt.Fprintf(b, "           the first of these:\n")
		for line := range strings.Lines(strings.TrimRight(r.First, "\n")) {
			fmt.Fprintf(b, "             %s", line)
		}
		b.WriteByte('\n')
	}
}

// formatCores formats a number of busy processors, or returns "-" if it is not known.
func formatCores(c *float64) string {
	if c == nil {
		return "-"
	}
	return strconv.FormatFloat(*c, 'f', 2, 64)
}

// textProcessors writes the CPU time per job, the number of busy processors, garbage collections, the trend of the
// latency and the machine.
func textProcessors(b *strings.Builder, r *report.Report) {
	wrap(b, "CPU", fmt.Sprintf("per job: %s in the target, %s in the load generator", r.CPU.Target, r.CPU.Generator))
	wrap(b, "processors", fmt.Sprintf("busy on average: target %s, load generator %s (of %d), other programs %s",
		formatCores(r.Cores.Target), formatCores(r.Cores.Generator), r.Processors, formatCores(r.Cores.Foreign)))
	text := prose.Count(r.Collections, "collection") + " in the load generator"
	if r.Pauses > 0 {
		text += fmt.Sprintf(", paused for %s in total", latency.Micros(r.Pauses))
	}
	wrap(b, "GC", text)
	if r.Stationary != nil {
		wrap(b, "trend", r.Stationary.String())
	}
	if r.Environment != nil {
		wrap(b, "machine", r.Environment.String())
	}
}

// textVerdict writes the objectives, the verdict with its reasons, and the notes.
func textVerdict(b *strings.Builder, r *report.Report) {
	for i := range r.Objectives {
		o := &r.Objectives[i]
		wrap(b, "objective", fmt.Sprintf("%s: %s, %s", o.Objective, o.Result, o.Why))
	}
	v, why := r.Conclusion()
	if len(why) == 0 {
		wrap(b, "verdict", string(v))
	}
	for i, reason := range why {
		first, rest, _ := strings.Cut(reason, "\n")
		if i == 0 {
			wrap(b, "verdict", string(v)+": "+first)
		} else {
			wrap(b, "", first)
		}
		for line := range strings.Lines(rest) { // output of the target program
			fmt.Fprintf(b, "           %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, note := range r.Notes() {
		wrap(b, "note", note)
	}
}

// textMerged writes the list of shares.
func textMerged(b *strings.Builder, m *report.Merged) {
	lines := []string{m.Summary()}
	for i := range m.Parts {
		lines = append(lines, m.Parts[i].Text())
	}
	for _, file := range m.LeftOut {
		lines = append(lines, "left out: "+file)
	}
	for _, line := range lines {
		b.WriteString(prose.Wrap("  ", "    ", line, prose.Width) + "\n")
	}
}

// Interval writes one progress line about an interval, without a newline. measured reports whether the interval
// is in the measured part.
func Interval(w io.Writer, iv *loadgen.Interval, measured bool) {
	if iv.Draining {
		fmt.Fprintf(w, "   after  %10s jobs/s after the measurement; %s left", prose.Grouped(int64(iv.Rate())),
			prose.Grouped(iv.Depth))
		return
	}
	total := iv.JobLatency()
	at := "warm-up"
	if measured {
		at = fmt.Sprintf("%.1f s", (iv.Start + iv.Length).Seconds())
	}
	a := &iv.Account
	fmt.Fprintf(w, "%8s  %10s jobs/s  p50 %-8s p99 %-8s max %-8s %s in flight",
		at, prose.Grouped(int64(iv.Rate())), total.P50, total.P99, total.Max, prose.Grouped(iv.Depth))
	if bad := a.Duplicated + a.AnsweredTwice + a.Misdirected + a.Corrupted + a.Refused; bad > 0 {
		fmt.Fprintf(w, "  %s WRONG", prose.Grouped(bad))
	}
	if a.Redelivered > 0 {
		fmt.Fprintf(w, "  %s redelivered", prose.Grouped(a.Redelivered))
	}
}

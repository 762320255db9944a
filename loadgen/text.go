package loadgen

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
)

// String writes three digits and the unit that suits them. A time that is not known is a dash.
func (m Micros) String() string {
	if m == 0 {
		return "-"
	}
	v, unit := float64(m), "us"
	switch {
	case v >= 999_500:
		v, unit = v/1e6, "s"
	case v >= 999.5:
		v, unit = v/1e3, "ms"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(v))))
	return strconv.FormatFloat(v, 'f', min(decimals, 2), 64) + " " + unit
}

// Grouped writes a number with commas at its thousands.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is a number and what there are so many of.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Grouped(int64(n)) + " " + what + "s"
}

// WriteText writes the report for people.
func WriteText(w io.Writer, r *Report) error {
	var b strings.Builder
	r.textPlan(&b)
	fmt.Fprintf(&b, "\n%s jobs in %.2f s: %s jobs/s\n\n", Grouped(r.Jobs), r.Seconds, Grouped(int64(math.Round(r.Rate))))
	r.textLatency(&b)
	r.textAccount(&b)
	r.textProcessors(&b)
	r.textVerdict(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// textPlan tells what was run.
func (r *Report) textPlan(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s, on %s\n", r.Protocol, r.Scenario, r.Target)
	fmt.Fprintf(b, "  %s, %s, %s; ", plural(r.Clients, "client"), plural(r.Workers, "worker"), plural(r.Functions, "function"))
	if r.Requested == "" {
		fmt.Fprintf(b, "window %s, ", Grouped(int64(r.Window)))
	} else {
		fmt.Fprintf(b, "open loop at %s/s, ", r.Requested)
	}
	fmt.Fprintf(b, "%s outstanding for each worker\n  payload %s B; seed %d", plural(r.Grabs, "grab"), r.Payload, r.Seed)
	if r.Share != "" {
		fmt.Fprintf(b, "; share %s", r.Share)
	}
	b.WriteByte('\n')
}

// columns are the percentiles that reports tell.
var columns = []struct {
	name    string
	samples int64 // that carry it
	of      func(*Quantiles) Micros
}{
	{"p50", 2 * carries, func(q *Quantiles) Micros { return q.P50 }},
	{"p90", 10 * carries, func(q *Quantiles) Micros { return q.P90 }},
	{"p99", 100 * carries, func(q *Quantiles) Micros { return q.P99 }},
	{"p99.9", 1000 * carries, func(q *Quantiles) Micros { return q.P999 }},
	{"max", 1, func(q *Quantiles) Micros { return q.Max }},
	{"mean", 1, func(q *Quantiles) Micros { return q.Mean }},
}

// stageWords say what the stages are.
var stageWords = [stageCount]string{"submitted to created", "created to assigned", "assigned to completed", "submitted to its end"}

func (r *Report) textLatency(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "latency\t")
	for _, c := range columns {
		fmt.Fprint(t, c.name, "\t")
	}
	fmt.Fprintln(t)
	for i, name := range Stages {
		q := r.Latency[name]
		if q.Count == 0 {
			continue
		}
		fmt.Fprint(t, name, "\t")
		for _, c := range columns {
			fmt.Fprint(t, c.of(&q), "\t")
		}
		fmt.Fprintf(t, "  %s\n", stageWords[i])
	}
	t.Flush()
	if r.Pacing != nil {
		fmt.Fprintf(b, "latency counts from when a job was due; it was submitted %s later on average, %s at most\n", r.Pacing.Mean, r.Pacing.Max)
	}
	if r.Settled > 0 {
		fmt.Fprintf(b, "%s came to their end behind the measured part; their latencies count\n", plural(int(r.Settled), "job"))
	}
	b.WriteByte('\n')
}

func (r *Report) textAccount(b *strings.Builder) {
	fmt.Fprintf(b, "jobs       %s submitted, warm-up included", Grouped(r.Submitted))
	if r.Sound() {
		b.WriteString("; none lost, duplicated, corrupted, refused or answered wrongly")
	}
	b.WriteByte('\n')
	for _, t := range tallies {
		if n := *t.count(r); n > 0 {
			fmt.Fprintf(b, "           %s %s\n", Grouped(n), t.words)
		}
	}
	switch {
	case r.Linear == nil:
	case r.Linear.Holds:
		b.WriteString("queue      first in, first out, as far as the times of all requests and replies can tell\n")
	default:
		fmt.Fprintf(b, "queue      NOT first in, first out: %s\n", r.Linear.Why)
	}
	if r.Anomaly != "" {
		fmt.Fprintf(b, "           the first of them:\n")
		for line := range strings.Lines(strings.TrimRight(r.Anomaly, "\n")) {
			fmt.Fprintf(b, "             %s", line)
		}
		b.WriteByte('\n')
	}
}

// formatCores writes how many processors were busy. What is not known is a dash.
func formatCores(c *float64) string {
	if c == nil {
		return "-"
	}
	return strconv.FormatFloat(*c, 'f', 2, 64)
}

func (r *Report) textProcessors(b *strings.Builder) {
	fmt.Fprintf(b, "CPU        %s a job in the target, %s in the generator; processors busy: target %s, generator %s of %d, others %s\n",
		r.CPU.Target, r.CPU.Generator, formatCores(r.Cores.Target), formatCores(r.Cores.Generator), r.Processors, formatCores(r.Cores.Foreign))
	fmt.Fprintf(b, "collector  %s of the generator", plural(int(r.Collections), "collection"))
	if r.Pauses > 0 {
		fmt.Fprintf(b, ", which paused it for %s in all", Micros(r.Pauses))
	}
	b.WriteByte('\n')
}

// textVerdict says whether everything held, and how far the figures are to be trusted.
func (r *Report) textVerdict(b *strings.Builder) {
	for i := range r.Objectives {
		o := &r.Objectives[i]
		fmt.Fprintf(b, "objective  %s: %s\n", o.Objective, o.Why)
	}
	switch {
	case r.Held():
		b.WriteString("verdict    held")
	case r.Interrupted && r.Sound():
		b.WriteString("verdict    interrupted; nothing went wrong until then")
	case r.Error != "":
		fmt.Fprintf(b, "verdict    FELL SHORT: the run ended early: %s", strings.ReplaceAll(r.Error, "\n", "\n           "))
	default:
		b.WriteString("verdict    FELL SHORT")
	}
	b.WriteByte('\n')
	if r.Saturated {
		fmt.Fprintf(b, "           the generator was saturated, so these figures are its own, not the target's: %s\n", r.Saturation)
	}
	if r.Disturbed() {
		fmt.Fprintf(b, "           others kept %.2f of this machine's %s busy, so it may be faster than this\n", *r.Cores.Foreign, plural(runtime.NumCPU(), "processor"))
	}
}

// WriteInterval writes a line about an interval, for those who watch, without its end.
func WriteInterval(w io.Writer, iv *Interval, measured bool) {
	if iv.Behind {
		fmt.Fprintf(w, "  behind  %10s jobs/s are done, which is not measured; %s are left", Grouped(int64(iv.Rate())), Grouped(iv.Depth))
		return
	}
	total := &iv.Summary[stageTotal]
	if total.Count == 0 {
		total = &iv.Summary[stageCreated]
	}
	at := "before"
	if measured {
		at = fmt.Sprintf("%.1f s", (iv.Start + iv.Length).Seconds())
	}
	us := func(ns int64) Micros { return Micros(float64(ns) / 1e3) }
	a := &iv.Account
	fmt.Fprintf(w, "%8s  %10s jobs/s  p50 %-8s p99 %-8s max %-8s %s under way",
		at, Grouped(int64(iv.Rate())), us(total.P50), us(total.P99), us(total.Max), Grouped(iv.Depth))
	if bad := a.Duplicated + a.AnsweredTwice + a.Misdirected + a.Corrupted + a.Refused; bad > 0 {
		fmt.Fprintf(w, "  %s WRONG", Grouped(bad))
	}
	if a.Redelivered > 0 {
		fmt.Fprintf(w, "  %s redelivered", Grouped(a.Redelivered))
	}
}

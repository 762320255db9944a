package conform

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/play"
)

// Report is a finished run.
type Report struct {
	Protocol *codec.Protocol
	Target   string
	Results  []Result
	Took     time.Duration
}

// Count returns how many cases have the verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, c := range r.Results {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Failed reports whether any case fell short.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Results, func(c Result) bool { return c.Verdict.FallsShort() })
}

// Lost reports whether the target died and not one case found anything good in it: a
// server that dies of a case or two and is restarted has been judged, one that dies of all has not.
func (r *Report) Lost() bool {
	return r.Count(Died) > 0 && r.Count(Passed)+r.Count(Lax) == 0
}

// Judged reports whether any case came to a verdict about the target.
func (r *Report) Judged() bool {
	return r.Count(Skipped)+r.Count(Inconclusive) < len(r.Results)
}

// Unreachable reports whether not one case found a target to judge.
func (r *Report) Unreachable() bool {
	return len(r.Results) > 0 && r.Count(Unreachable)+r.Count(Skipped) == len(r.Results) && r.Count(Unreachable) > 0
}

// Text writes a run for people.
type Text struct {
	W       io.Writer
	Color   bool
	Verbose bool // name the cases that passed too
	section string
	note    string // of the case before
}

var colors = map[Verdict]string{Passed: "32", Lax: "33", Known: "33", Flaky: "33", Inconclusive: "33", Skipped: "90"}

func (t *Text) paint(v Verdict, s string) string {
	if !t.Color {
		return s
	}
	return "\x1b[" + cmp.Or(colors[v], "31") + "m" + s + "\x1b[0m"
}

// Case writes one result; a failed one with its conversation.
func (t *Text) Case(r Result) {
	if (r.Verdict == Passed || r.Verdict == Skipped) && !t.Verbose {
		return
	}
	c := r.Case
	if c.Section != t.section {
		t.section = c.Section
		fmt.Fprintf(t.W, "\n%s\n", c.Section)
	}
	fmt.Fprintf(t.W, "  %s  %s  %s\n", t.paint(r.Verdict, fmt.Sprintf("%-12s", r.Verdict)), c.ID, c.About)
	if r.Note != "" && r.Note != t.note {
		fmt.Fprintf(t.W, "      %s\n", strings.ReplaceAll(r.Note, "\n", "\n      "))
	}
	t.note = r.Note
	if r.Verdict != Failed && r.Verdict != Died && r.Verdict != Unsteady && r.Verdict != Inconclusive || r.Play == nil {
		return
	}
	for _, id := range c.Rules {
		rule := c.Script.Protocol.Rule(id)
		fmt.Fprintf(t.W, "      %s [%s, %s]: %s\n", id, rule.Level, rule.Section, rule.Text)
	}
	fmt.Fprintln(t.W)
	play.WriteReport(t.W, c.Script, r.Play, play.ReportOptions{Color: t.Color, Indent: "      "})
}

// Summary writes the closing lines.
func (t *Text) Summary(r *Report) {
	fmt.Fprintf(t.W, "\n%s, judged against %s: %d cases", r.Target, r.Protocol.Title, len(r.Results))
	sep := ": "
	for _, v := range Verdicts {
		if n := r.Count(v); n > 0 {
			fmt.Fprintf(t.W, "%s%s", sep, t.paint(v, fmt.Sprintf("%d %s", n, v)))
			sep = ", "
		}
	}
	fmt.Fprintf(t.W, " in %.1f s\n", r.Took.Seconds())
}

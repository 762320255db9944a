package conform

import (
	"encoding/json"
	"fmt"
	"io"
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
	return r.Count(Failed)+r.Count(Died)+r.Count(Unreachable) > 0
}

// Unreachable reports whether not one case found a target to judge.
func (r *Report) Unreachable() bool {
	return len(r.Results) > 0 && r.Count(Unreachable)+r.Count(Skipped) == len(r.Results) && r.Count(Unreachable) > 0
}

// verdicts in the order in which summaries name them.
var verdicts = []Verdict{Passed, Lax, Failed, Died, Unreachable, Skipped}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	type caseJSON struct {
		ID      string         `json:"id"`
		Section string         `json:"section"`
		About   string         `json:"about"`
		Rules   []codec.RuleID `json:"rules"`
		Level   codec.Level    `json:"level"`
		Verdict Verdict        `json:"verdict"`
		Seconds float64        `json:"seconds"`
		Note    string         `json:"note,omitempty"`
		Broken  codec.RuleID   `json:"broken,omitempty"`
		File    string         `json:"file"`
		Line    int            `json:"line"`
	}
	out := struct {
		Protocol string         `json:"protocol"`
		Target   string         `json:"target"`
		Seconds  float64        `json:"seconds"`
		Summary  map[string]int `json:"summary"`
		Cases    []caseJSON     `json:"cases"`
	}{r.Protocol.Name, r.Target, r.Took.Seconds(), map[string]int{"cases": len(r.Results)}, []caseJSON{}}
	for _, v := range verdicts {
		out.Summary[string(v)] = r.Count(v)
	}
	for _, res := range r.Results {
		c := res.Case
		j := caseJSON{c.ID, c.Section, c.About, c.Rules, c.Level, res.Verdict, res.Took.Seconds(), res.Note, "", c.Script.File, c.Script.Line}
		if res.Play != nil && res.Play.Failure != nil {
			j.Broken = res.Play.Failure.Rule()
			j.Line = res.Play.Failure.Step.Line
		}
		out.Cases = append(out.Cases, j)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// Text writes a run for people.
type Text struct {
	W       io.Writer
	Color   bool
	Verbose bool // name the cases that passed too
	section string
}

var colors = map[Verdict]string{Passed: "32", Lax: "33", Failed: "31", Died: "31", Unreachable: "31", Skipped: "90"}

func (t *Text) paint(v Verdict, s string) string {
	if !t.Color {
		return s
	}
	return "\x1b[" + colors[v] + "m" + s + "\x1b[0m"
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
	fmt.Fprintf(t.W, "  %s  %s  %s\n", t.paint(r.Verdict, fmt.Sprintf("%-11s", r.Verdict)), c.ID, c.About)
	if r.Note != "" {
		fmt.Fprintf(t.W, "      %s\n", r.Note)
	}
	if r.Verdict == Passed || r.Verdict == Lax || r.Play == nil {
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
	for _, v := range verdicts {
		if n := r.Count(v); n > 0 {
			fmt.Fprintf(t.W, "%s%s", sep, t.paint(v, fmt.Sprintf("%d %s", n, v)))
			sep = ", "
		}
	}
	fmt.Fprintf(t.W, " in %.1f s\n", r.Took.Seconds())
}

package audit

import (
	"bytes"
	"fmt"
	"io"

	"jobwire/codec"
	"jobwire/internal/version"
)

// WriteOutcomes writes a table of outcomes as text, with the reasons of failures.
func WriteOutcomes(w io.Writer, p *codec.Protocol, all []Outcome, o Shown) error {
	var out []byte
	fell := 0
	for i := range all {
		x := &all[i]
		mark := "  "
		if !x.Passed() {
			mark, fell = "! ", fell+1
		}
		runs := ""
		if x.Runs > 1 {
			runs = fmt.Sprintf(", %d repetitions", x.Runs)
		}
		out = fmt.Appendf(out, "%s%-10s %-16s %-15s %5.1f s%s\n", mark, x.Role, x.Profile.Name, x.Verdict, x.Took.Seconds(), runs)
		if !x.Passed() {
			out = fmt.Appendf(out, "    %s\n", x.Profile.About)
			if x.Note != "" {
				out = fmt.Appendf(out, "    %s\n", x.Note)
			}
		}
		for k := range x.Breaches {
			b := &x.Breaches[k]
			out = fmt.Appendf(out, "    violates %s (%s)\n", b.Rule.ID, b.Rule.Level)
			for line := range bytes.Lines(b.First[0].AppendText(nil, p, o)) {
				out = append(append(out, "      "...), line...)
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s\n%d runs under fault profiles: %d passed, %d failed; jobwire %s\n", out, len(all), len(all)-fell, fell, version.Number)
	return err
}

// WriteOutcomesJSON writes outcomes as one object.
func WriteOutcomesJSON(w io.Writer, p *codec.Protocol, all []Outcome) error {
	type breach struct {
		Rule  codec.RuleID `json:"rule"`
		Level codec.Level  `json:"level"`
		First jsonFinding  `json:"first"`
	}
	type outcome struct {
		Role     string   `json:"role"`
		Profile  string   `json:"fault_profile"`
		Verdict  Verdict  `json:"verdict"`
		Held     bool     `json:"passed"`
		Note     string   `json:"note,omitempty"`
		Runs     int      `json:"repetitions"`
		Seconds  float64  `json:"seconds"`
		Breaches []breach `json:"violated_rules"`
	}
	rows := []outcome{}
	for i := range all {
		x := &all[i]
		row := outcome{x.Role, x.Profile.Name, x.Verdict, x.Passed(), x.Note, x.Runs, x.Took.Seconds(), []breach{}}
		for k := range x.Breaches {
			b := &x.Breaches[k]
			row.Breaches = append(row.Breaches, breach{b.Rule.ID, b.Rule.Level, b.First[0].json(p)})
		}
		rows = append(rows, row)
	}
	return writeJSON(w, map[string]any{"jobwire": version.Get(), "protocol": p.Name, "outcomes": rows})
}

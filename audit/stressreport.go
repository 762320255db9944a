package audit

import (
	"bytes"
	"fmt"
	"io"

	"jobwire/codec"
	"jobwire/internal/version"
)

// AppendText appends an outcome as text: a line, and what happened if the driver failed.
func (x *Outcome) AppendText(dst []byte, p *codec.Protocol, o Shown) []byte {
	mark, runs := "  ", ""
	if !x.Passed() {
		mark = "! "
	}
	ok := x.Passed() && (!x.Profile.Reported || x.Verdict == Completed || x.Verdict == Unsupported)
	if x.Passed() && !ok {
		mark = "~ "
	}
	if x.Runs > 1 {
		runs = fmt.Sprintf(", %d repetitions", x.Runs)
	}
	dst = fmt.Appendf(dst, "%s%-10s %-16s %-15s %5.1f s%s\n", mark, x.Role, x.Profile.Name, x.Verdict, x.Took.Seconds(), runs)
	if !ok {
		dst = fmt.Appendf(dst, "    Fault profile: %s%s\n", x.Profile.About, x.Profile.Note())
		if x.Task != "" {
			dst = fmt.Appendf(dst, "    Task: %s\n", shortened(x.Task))
		}
		if x.Note != "" {
			dst = fmt.Appendf(dst, "    Result: %s\n", x.Note)
		}
		if len(x.Recent) > 0 && (x.Verdict != Completed) {
			dst = append(dst, "    The last messages, with seconds since the start:\n"...)
			pr := o.printer(p)
			for i := range x.Recent {
				m := &x.Recent[i]
				dst = pr.AppendLine(fmt.Appendf(dst, "    %7.3f  ", m.At.Seconds()), m.Actor, &m.Frame)
			}
		}
	}
	for k := range x.Breaches {
		b := &x.Breaches[k]
		dst = fmt.Appendf(dst, "    violates %s (%s)\n", b.Rule.ID, b.Rule.Level)
		for line := range bytes.Lines(b.First[0].AppendText(nil, p, o)) {
			dst = append(append(dst, "      "...), line...)
		}
	}
	return dst
}

// StressCoverage returns which rules the messages of all runs have exercised, by role.
func StressCoverage(p *codec.Protocol, all []Outcome) []Part {
	type subject struct {
		rule codec.RuleID
		side codec.Side
	}
	sum, at := Report{Protocol: p}, map[subject]int{}
	for i := range all {
		for _, r := range all[i].reports {
			sum.roles |= r.roles
			for _, c := range r.Rules {
				k, ok := at[subject{c.Rule.ID, c.Side}]
				if !ok {
					at[subject{c.Rule.ID, c.Side}] = len(sum.Rules)
					sum.Rules = append(sum.Rules, c)
					continue
				}
				sum.Rules[k].Add(&c)
			}
		}
	}
	return sum.Parts()
}

// SummarizeOutcomes writes how many outcomes passed, and which rules were exercised.
func SummarizeOutcomes(w io.Writer, p *codec.Protocol, all []Outcome) error {
	failed := 0
	for i := range all {
		if !all[i].Passed() {
			failed++
		}
	}
	out := fmt.Appendf(nil, "\n%d runs under fault profiles: %d passed, %d failed; jobwire %s\n", len(all), len(all)-failed, failed, version.Number)
	for _, part := range StressCoverage(p, all) {
		out = fmt.Appendf(out, "%s: %d of %d rules exercised (%d%%)\n", part.Role, len(part.Exercised), len(part.Exercised)+len(part.Missing), part.Percent())
		out = appendRules(out, "  not exercised:", p, part.Missing)
	}
	_, err := w.Write(out)
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
		Task     string   `json:"task,omitempty"`
		Note     string   `json:"note,omitempty"`
		Recent   []string `json:"last_messages,omitempty"`
		Runs     int      `json:"repetitions"`
		Seconds  float64  `json:"seconds"`
		Breaches []breach `json:"violated_rules"`
	}
	rows := []outcome{}
	for i := range all {
		x := &all[i]
		row := outcome{x.Role, x.Profile.Name, x.Verdict, x.Passed(), x.Task, x.Note, nil, x.Runs, x.Took.Seconds(), []breach{}}
		pr := (&Shown{}).printer(p)
		for k := range x.Recent {
			m := &x.Recent[k]
			row.Recent = append(row.Recent, fmt.Sprintf("%.3f %s", m.At.Seconds(), bytes.TrimSuffix(pr.AppendLine(nil, m.Actor, &m.Frame), []byte("\n"))))
		}
		for k := range x.Breaches {
			b := &x.Breaches[k]
			row.Breaches = append(row.Breaches, breach{b.Rule.ID, b.Rule.Level, b.First[0].json(p)})
		}
		rows = append(rows, row)
	}
	return writeJSON(w, map[string]any{"jobwire": version.Get(), "protocol": p.Name, "outcomes": rows})
}

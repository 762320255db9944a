package audit

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/internal/prose"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

// maxOthers is how many other failed tasks of a run are shown.
const maxOthers = 5

// AppendText appends an outcome as text: one line, and a description of the failure, if any.
func (o *Outcome) AppendText(dst []byte, p *codec.Protocol, opts TextOptions) []byte {
	mark, runs := "  ", ""
	switch {
	case !o.Passed():
		mark = "! "
	case !o.completed():
		mark = "~ "
	case o.Verdict == verdict.Inconclusive:
		mark = "? "
	}
	if o.Runs > 1 {
		runs = fmt.Sprintf(", %d repetitions", o.Runs)
	}
	if o.SkippedHung > 0 {
		runs += fmt.Sprintf(", %d left out", o.SkippedHung)
	}
	if o.Unsupported > 0 {
		runs += fmt.Sprintf(", %d of %d tasks unsupported", o.Unsupported, o.Tasks)
	}
	if o.Omitted > 0 {
		runs += fmt.Sprintf(", tasks left out: %d", o.Omitted)
	}
	dst = fmt.Appendf(dst, "%s%-10s %-16s %-15s %5.1f s%s\n", mark, o.Role, o.FaultProfile.Name, o.Verdict,
		o.Took.Seconds(),
		runs)
	if mark != "  " {
		dst = fmt.Appendf(dst, "    Fault profile: %s%s\n", o.FaultProfile.About, o.FaultProfile.Note())
		if o.Task != "" {
			dst = fmt.Appendf(dst, "    Task: %s\n", shortened(o.Task))
		}
		if o.Note != "" {
			dst = fmt.Appendf(dst, "    Result: %s\n", strings.ReplaceAll(o.Note, "\n", "\n    "))
		}
		if o.Fault != "" {
			dst = fmt.Appendf(dst, "    Fault at %s\n", o.Fault)
		}
		if len(o.Recent) > 0 && (o.Verdict != verdict.Completed) {
			dst = append(dst, "    The last messages, with seconds since the start:\n"...)
			pr := opts.printer(p)
			for i := range o.Recent {
				m := &o.Recent[i]
				dst = pr.AppendLine(fmt.Appendf(dst, "    %7.3f  ", m.At.Seconds()), m.Actor, &m.Frame)
			}
		}
		for i := range o.Others[:min(len(o.Others), maxOthers)] {
			f := &o.Others[i]
			dst = fmt.Appendf(dst, "    Also %s: %s\n", f.Verdict, shortened(f.Task))
			dst = fmt.Appendf(dst, "      %s\n", f.Note)
		}
		if n := len(o.Others) - maxOthers; n > 0 {
			dst = fmt.Appendf(dst, "    %d more tasks failed; --format json has them\n", n)
		}
	}
	for k := range o.BrokenRules {
		b := &o.BrokenRules[k]
		dst = fmt.Appendf(dst, "    violates %s (%s)\n", b.Rule.ID, b.Rule.Level)
		for line := range bytes.Lines(b.First[0].AppendText(nil, p, opts)) {
			dst = append(append(dst, "      "...), line...)
		}
	}
	dst = appendBehavior(dst, "    ", o.Behavior)
	if o.Command != "" && !o.Passed() {
		dst = fmt.Appendf(dst, "    To repeat: %s\n", o.Command)
	}
	return dst
}

// class returns what an outcome means for the run. A failure under a profile that the protocol does not require a
// library to handle is excused.
func (o *Outcome) class() verdict.Class {
	switch row := o.Verdict.Row(); {
	case !o.Passed() && row.Class == verdict.Error:
		return verdict.Error
	case !o.Passed():
		return verdict.Failure
	case o.Inconclusive(), o.Untested(), o.Verdict == verdict.NotApplicable, o.Verdict == verdict.Unsupported:
		return verdict.Skip
	case !o.completed(), o.Levels.fail(o.BrokenRules, o.Behavior):
		return verdict.Excused
	case len(o.BrokenRules) > 0, len(o.Behavior) > 0:
		return verdict.Note
	}
	return verdict.Pass
}

// summary returns the verdict with its explanation, or with the rules that were violated, in one line.
func (o *Outcome) summary() string {
	all := []string{string(o.Verdict)}
	note, _, _ := strings.Cut(o.Note, "\n")
	if note == "" && o.Untested() {
		note = "the driver sent no message"
	}
	if note != "" {
		all[0] += ": " + note
	}
	for i := range o.BrokenRules {
		all = append(all, "violates "+string(o.BrokenRules[i].Rule.ID))
	}
	for i := range o.Behavior {
		all = append(all, "does not follow "+string(o.Behavior[i].Rule.ID))
	}
	return strings.Join(all, "; ")
}

// StressReport is the result of a stress test.
type StressReport struct {
	Protocol    *codec.Protocol
	Began       time.Time
	Outcomes    []Outcome
	Interrupted bool
	Err         error // why the runs ended early; nil: they did not
}

// Failed reports whether a driver failed or violated a rule.
func (r *StressReport) Failed() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return !o.Passed() })
}

// Stopped returns why the stress test has not passed although no driver failed, or why it ended early, or "".
func (r *StressReport) Stopped() string {
	inconclusive, finished := 0, 0
	for i := range r.Outcomes {
		if r.Outcomes[i].Inconclusive() {
			inconclusive++
		}
		if !r.Outcomes[i].Unfinished {
			finished++
		}
	}
	switch roles := UntestedRoles(r.Outcomes); {
	case r.Interrupted:
		return fmt.Sprintf("the run was interrupted after %s", prose.Count(finished, "run"))
	case r.Err != nil:
		return r.Err.Error()
	case r.Failed():
		return ""
	case len(roles) > 0:
		return "nothing was checked: the driver of " + strings.Join(roles, " and ") + " sent no message"
	case inconclusive > 0:
		return fmt.Sprintf("inconclusive: %s; the report has the causes", prose.Count(inconclusive, "run"))
	}
	return ""
}

// StressCoverage returns which rules the messages of all runs have tested, by role.
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

// WriteSummary writes how many outcomes passed, and which rules were tested, as text. [Outcome.AppendText] has the
// outcomes.
func (r *StressReport) WriteSummary(w io.Writer) error {
	failed, without, untested, inconclusive := 0, 0, 0, 0
	for i := range r.Outcomes {
		switch o := &r.Outcomes[i]; {
		case !o.Passed():
			failed++
		case o.Inconclusive():
			inconclusive++
		case o.Untested():
			untested++
		case o.Verdict == verdict.NotApplicable:
			without++
		}
	}
	out := fmt.Appendf(nil, "\n%d runs under fault profiles: %d passed, %d failed", len(r.Outcomes),
		len(r.Outcomes)-failed-without-untested-inconclusive, failed)
	if inconclusive > 0 {
		out = fmt.Appendf(out, ", %d inconclusive", inconclusive)
	}
	if without > 0 {
		out = fmt.Appendf(out, ", %d not applicable", without)
	}
	if untested > 0 {
		out = fmt.Appendf(out, ", %d without a message, so that nothing was checked", untested)
	}
	out = fmt.Appendf(out, "; jobwire %s\n", version.Number)
	out = appendCauses(out, r.Outcomes)
	for _, part := range merged(StressCoverage(r.Protocol, r.Outcomes)) {
		out = append(part.appendTitle(out), '\n')
		out = appendRules(out, "  not exercised:", r.Protocol, part.Missing)
	}
	_, err := w.Write(out)
	return err
}

// jsonOutcome is an outcome in a JSON report.
type jsonOutcome struct {
	Role         string  `json:"role"`
	FaultProfile string  `json:"fault_profile"`
	Required     bool    `json:"required"` // whether the protocol requires a library to handle the profile
	Passed       bool    `json:"passed"`
	Runs         int     `json:"repetitions"`
	LeftOut      int     `json:"repetitions_left_out"`
	Tasks        int     `json:"tasks"`
	Cannot       int     `json:"tasks_unsupported"`
	Omitted      int     `json:"tasks_left_out"`
	Seconds      float64 `json:"seconds"`
	jsonFailure
	Others      []jsonFailure    `json:"other_failures"`
	BrokenRules []jsonBrokenRule `json:"violated_rules"`
	Behavior    []jsonBehavior   `json:"behavior"`
}

// jsonFailure is a failure in a JSON report.
type jsonFailure struct {
	Verdict verdict.Verdict `json:"verdict"`
	Task    string          `json:"task,omitempty"`
	Note    string          `json:"note,omitempty"`
	Fault   string          `json:"fault,omitempty"`
	Recent  []string        `json:"last_messages,omitempty"`
}

// jsonBrokenRule is a violated rule in a JSON report.
type jsonBrokenRule struct {
	Rule  codec.RuleID `json:"rule"`
	Level codec.Level  `json:"level"`
	First jsonFinding  `json:"first"`
}

// json returns the failure for a JSON report. The last messages are text lines that begin with the time in seconds.
func (f *Failure) json(p *codec.Protocol) jsonFailure {
	j := jsonFailure{Verdict: f.Verdict, Task: f.Task, Note: f.Note, Fault: f.Fault}
	pr := (&TextOptions{}).printer(p)
	for i := range f.Recent {
		m := &f.Recent[i]
		j.Recent = append(j.Recent, fmt.Sprintf("%.3f %s", m.At.Seconds(),
			bytes.TrimSuffix(pr.AppendLine(nil, m.Actor, &m.Frame), []byte("\n"))))
	}
	return j
}

// WriteJSON writes the outcomes and the tested rules as one JSON object.
func (r *StressReport) WriteJSON(w io.Writer) error {
	rows := []jsonOutcome{}
	for i := range r.Outcomes {
		x := &r.Outcomes[i]
		row := jsonOutcome{x.Role, x.FaultProfile.Name, !x.FaultProfile.Reported,
			x.Passed() && !x.Inconclusive() && !x.Untested(),
			x.Runs, x.SkippedHung,
			x.Tasks, x.Unsupported,
			x.Omitted, x.Took.Seconds(), x.Failure.json(r.Protocol), []jsonFailure{}, []jsonBrokenRule{},
			behaviorJSON(x.Behavior)}
		for k := range x.Others {
			row.Others = append(row.Others, x.Others[k].json(r.Protocol))
		}
		for k := range x.BrokenRules {
			b := &x.BrokenRules[k]
			row.BrokenRules = append(row.BrokenRules, jsonBrokenRule{b.Rule.ID, b.Rule.Level, b.First[0].json(r.Protocol)})
		}
		rows = append(rows, row)
	}
	return writeJSON(w, struct {
		version.Head
		Protocol    string        `json:"protocol"`
		Interrupted bool          `json:"interrupted"`
		Outcomes    []jsonOutcome `json:"outcomes"`
		Causes      []Cause       `json:"causes"`
		Parts       []Part        `json:"rule_coverage"`
	}{version.NewHead(), r.Protocol.Name, r.Interrupted, rows, Causes(r.Outcomes),
		StressCoverage(r.Protocol, r.Outcomes)})
}

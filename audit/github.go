package audit

import (
	"fmt"
	"io"
	"strings"

	"jobwire/codec"
	"jobwire/internal/github"
)

// WriteGitHub writes the broken rules as annotations for GitHub Actions. A rule whose level does not fail is a warning.
func (r *Report) WriteGitHub(w io.Writer) error {
	var out github.Report
	for i := range r.BrokenRules {
		b := &r.BrokenRules[i]
		level := github.Error
		if !r.Levels.contain(b.Rule.Level) {
			level = github.Warning
		}
		b.annotate(&out, level, r.Protocol, r.Protocol.Name)
	}
	annotateBehavior(&out, r.Levels, r.Behavior, r.Protocol.Name)
	for _, u := range r.Unfollowed {
		out.Add(github.Error, r.Protocol.Name+": not checked", u.text(r.Protocol))
	}
	return out.Write(w, "jobwire audit",
		fmt.Sprintf("violations: %d; connections: %d; messages of clients and workers: %d",
			r.Violations(), r.Connections, r.Messages[codec.Peer]))
}

// annotate adds an annotation about a broken rule. where begins its title.
func (b *BrokenRule) annotate(out *github.Report, level github.Level, p *codec.Protocol, where string) {
	first := ""
	if len(b.First) > 0 {
		first = strings.TrimSpace(string(b.First[0].AppendLine(nil, p, false)))
	}
	out.Add(level, fmt.Sprintf("%s: %s (%s)", where, b.Rule.ID, b.Rule.Level), b.Rule.Text,
		fmt.Sprintf("violations: %d", b.Count), first)
}

// WriteOutcomesGitHub writes what drivers did wrong as annotations for GitHub Actions. What does not make the run fail
// is a warning.
func WriteOutcomesGitHub(w io.Writer, p *codec.Protocol, all []Outcome) error {
	var out github.Report
	failed := 0
	for i := range all {
		x := &all[i]
		level := github.Error
		if x.Passed() {
			level = github.Warning
		} else {
			failed++
		}
		where := fmt.Sprintf("%s: %s, fault profile %s", p.Name, x.Role, x.FaultProfile.Name)
		if x.Note != "" && !x.completed() {
			out.Add(level, where+": "+string(x.Verdict), x.Note, x.Task, x.Fault, x.FaultProfile.About)
		}
		for k := range x.BrokenRules {
			x.BrokenRules[k].annotate(&out, level, p, where)
		}
		annotateBehavior(&out, x.Levels, x.Behavior, where)
	}
	return out.Write(w, "jobwire audit stress", fmt.Sprintf("%d of %d fault profiles and roles failed", failed, len(all)))
}

package report

import (
	"fmt"
	"io"
	"strings"

	"jobwire/conform"
	"jobwire/internal/github"
	"jobwire/internal/prose"
	"jobwire/internal/verdict"
)

// WriteGitHub writes the reports as annotations for GitHub Actions: one for each cause, and one for each case whose
// replies are accepted but not preferred.
func WriteGitHub(w io.Writer, reports []*conform.Report) error {
	var out github.Report
	var summary []string
	for _, r := range reports {
		if why := r.Stopped(); why != "" {
			out.Add(github.Error, r.Protocol.Name+": the run", why)
		}
		for _, c := range r.Causes() {
			level := annotationLevel(c.Example.Verdict)
			if c.Expected {
				level = github.Notice
			}
			title := r.Protocol.Name + ": " + string(c.Example.Verdict)
			if c.Rule != "" {
				title += fmt.Sprintf(": %s (%s)", c.Rule, c.Level)
			}
			out.Add(level, title, c.Text, c.Count(), "Example: "+c.Example.Case.ID+": "+c.Example.Note, c.Example.Command)
		}
		seen := map[string]bool{}
		for _, res := range r.Results {
			if res.Verdict == verdict.NonStrict && !seen[res.Case.Family] {
				seen[res.Case.Family] = true
				out.Add(github.Warning, fmt.Sprintf("%s: %s: %s (%s)", r.Protocol.Name, res.Verdict, res.Rule(), res.Level()),
					res.Case.ID+": "+res.Note, res.Command)
			}
		}
		counts := r.Target + ": " + prose.Count(int64(len(r.Results)), "case")
		for _, row := range verdict.Cases {
			if n := r.Count(row.Verdict); n > 0 {
				counts += fmt.Sprintf(", %d %s", n, row.Verdict)
			}
		}
		summary = append(summary, counts)
	}
	return out.Write(w, "jobwire conform", strings.Join(summary, "\n"))
}

// annotationLevel returns the level of the annotation about a result with the verdict.
func annotationLevel(v verdict.Verdict) github.Level {
	switch v.Row().Class {
	case verdict.Error, verdict.Failure:
		return github.Error
	case verdict.Note:
		return github.Warning
	}
	return github.Notice
}

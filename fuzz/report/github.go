package report

import (
	"fmt"
	"io"

	"jobwire/internal/github"
)

// WriteGitHub writes the findings as annotations for GitHub Actions. A finding of level low, or that was not
// reproduced, is a warning instead of an error.
func WriteGitHub(w io.Writer, r *Report) error {
	var out github.Report
	for _, f := range r.Findings {
		level := github.Error
		if f.Level == "low" || !f.Reproduced {
			level = github.Warning
		}
		out.Add(level, r.Protocol+": "+f.Headline(), f.Impact, "Observed: "+oneLine(f.Text), f.Cites(), f.Frames(),
			"To repeat it: "+f.Command)
	}
	return out.Write(w, "jobwire fuzz", fmt.Sprintf("%s: findings: %d; executions: %d; messages: %d; seconds: %.0f; seed: %d",
		r.Target, len(r.Findings), r.Summary.Executions, r.Summary.Messages, r.Summary.Seconds, r.Summary.Seed))
}

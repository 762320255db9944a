package report

import (
	"io"

	"jobwire/conform"
	"jobwire/internal/tap"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

// WriteTAP writes the reports in the Test Anything Protocol. An expected failure gets the TAP directive TODO. Comments
// after a test describe its failure.
func WriteTAP(w io.Writer, reports []*conform.Report) error {
	total := 0
	for _, r := range reports {
		total += len(r.Results)
	}
	out := tap.New(w, total)
	for _, r := range reports {
		out.Comment(r.Target + ", tested by jobwire " + version.Get().String())
		for _, res := range r.Results {
			test := tap.Test{Name: res.Case.ID, About: res.Case.About, Class: res.Verdict.Row().Class,
				Reason: string(res.Verdict) + ": " + res.Note}
			if test.Class >= verdict.Failure || test.Class == verdict.Note {
				test.Comment = string(res.Verdict) + ": " + res.Note
				if text := explanation(res); text != "" {
					test.Comment = string(res.Verdict) + "\n" + text
				}
			}
			out.Add(test)
		}
		out.Stop(r.Stopped())
	}
	return out.End()
}

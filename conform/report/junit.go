package report

import (
	"fmt"
	"io"
	"strings"

	"jobwire/conform"
	"jobwire/internal/junit"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
	"jobwire/play"
)

// WriteJUnit writes the reports as JUnit XML, one test suite each. A target that crashed or could not be reached is an
// error; any other unexpected verdict is a failure. Cases that were skipped, did not run, are inconclusive, or failed
// as the profile expects are skipped. A run that was interrupted, or whose cases are mostly inconclusive, has one more
// case, which is an error.
func WriteJUnit(w io.Writer, reports []*conform.Report) error {
	out := junit.Suites{Name: "jobwire conform"}
	for _, r := range reports {
		class := r.Protocol.Name
		if len(reports) > 1 {
			// Programs that read JUnit XML identify tests by class and name, and interpret dots as packages.
			class += "." + strings.ReplaceAll(r.Target, ".", "_")
		}
		s := junit.Suite{
			Name:       r.Protocol.Name + ": " + r.Target,
			Timestamp:  junit.Timestamp(r.Began),
			Properties: []junit.Property{{Name: "jobwire", Value: version.Get().String()}},
			SystemErr:  r.Stopped(),
		}
		for _, res := range r.Results {
			s.Add(junitCase(class, res))
		}
		if why := r.Stopped(); why != "" && r.Unreachable() == "" {
			kind := "not tested"
			if r.Interrupted {
				kind = "interrupted"
			}
			// Programs that read JUnit XML do not fail a suite because of skipped cases.
			detail := &junit.Detail{Type: kind, Message: why}
			s.Add(junit.Case{Name: "the run", Class: class, Error: detail})
		}
		s.Time = junit.Second(r.Took.Seconds())
		out.Add(s)
	}
	return out.Write(w)
}

// junitCase converts a result to a test case of JUnit. The verdict determines whether it is an error, a failure, a
// skipped test or a pass with output; the detail contains the conversation.
func junitCase(class string, res conform.Result) junit.Case {
	c := junit.Case{Name: res.Case.ID, Class: class + "." + res.Case.Section, Time: junit.Second(res.Took.Seconds())}
	detail := &junit.Detail{Type: string(res.Verdict), Message: res.Note}
	if res.Verdict != verdict.Passed {
		detail.Text = explanation(res)
	}
	switch res.Verdict.Row().Class {
	case verdict.Error:
		c.Error = detail
	case verdict.Failure:
		c.Failure = detail
	case verdict.Note:
		c.Output = detail.Message + "\n" + detail.Text
	case verdict.Excused, verdict.Skip:
		c.Skipped = detail
	}
	return c
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// explanation returns the text with which reports explain a result that is not a pass, or "".
func explanation(r conform.Result) string {
	if r.Verdict == verdict.Passed || !r.Verdict.Row().Tried {
		return ""
	}
	var b strings.Builder
	writeExplanation(&b, r, play.ReportOptions{}) // writing to a strings.Builder does not fail
	return b.String()
}

// conversation returns the messages of a case as text, or "" if there are none.
func conversation(r conform.Result, o play.ReportOptions) string {
	if r.Play == nil {
		return ""
	}
	var b strings.Builder
	play.WriteReport(&b, r.Performed(), r.Play, o) // writing to a strings.Builder does not fail
	return b.String()
}

package conform

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"jobwire/internal/junit"
	"jobwire/internal/version"
	"jobwire/play"
)

// WriteJUnit writes the reports as JUnit XML, a test suite each. A target that crashed or could
// not be reached is an error, any other unexpected verdict a failure. Cases that were skipped, did not
// run, are inconclusive, or failed as the profile says are skipped. A run that was interrupted has one more case, which
// is an error.
func WriteJUnit(w io.Writer, reports []*Report) error {
	out := junit.Suites{Name: "jobwire conform"}
	for _, r := range reports {
		class := r.Protocol.Name
		if len(reports) > 1 {
			// Readers tell tests apart by class and name, and take dots for packages.
			class += "." + strings.ReplaceAll(r.Target, ".", "_")
		}
		s := junit.Suite{
			Name:       r.Protocol.Name + ": " + r.Target,
			Timestamp:  junit.Timestamp(r.Began),
			Properties: []junit.Property{{Name: "jobwire", Value: version.Get().String()}},
			SystemErr:  printable(r.Stopped()),
		}
		for _, res := range r.Results {
			s.Add(junitCase(class, res))
		}
		if r.Interrupted {
			// Readers do not fail a suite for cases that were skipped.
			s.Add(junit.Case{Name: "the run", Class: class, Error: &junit.Detail{Type: "interrupted", Message: r.Stopped()}})
		}
		s.Time = junit.Second(r.Took.Seconds())
		out.Add(s)
	}
	return out.Write(w)
}

func junitCase(class string, res Result) junit.Case {
	c := junit.Case{Name: res.Case.ID, Class: class + "." + res.Case.Section, Time: junit.Second(res.Took.Seconds())}
	detail := &junit.Detail{Type: string(res.Verdict), Message: printable(res.Note)}
	if res.Verdict != Passed {
		detail.Text = explanation(res)
	}
	switch v := res.Verdict; {
	case v == Died || v == Hung || v == Unreachable:
		c.Error = detail
	case v.FallsShort():
		c.Failure = detail
	case v == Lax || v == Different:
		c.Output = detail.Message + "\n" + detail.Text
	case v != Passed:
		c.Skipped = detail
	}
	return c
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// explanation is what reports say about a result that is not a pass.
func explanation(r Result) string {
	if slices.Contains([]Verdict{Passed, Skipped, NotRun, Unreachable}, r.Verdict) {
		return ""
	}
	var b strings.Builder
	writeExplanation(&b, r, play.ReportOptions{}) // a builder takes everything
	return printable(b.String())
}

// conversation shows a case's performance as text.
func conversation(r Result, o play.ReportOptions) string {
	if r.Play == nil {
		return ""
	}
	var b strings.Builder
	play.WriteReport(&b, r.performed(), r.Play, o) // a builder takes everything
	return printable(b.String())
}

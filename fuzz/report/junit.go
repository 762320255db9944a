package report

import (
	"io"
	"strings"

	"jobwire/internal/junit"
)

// WriteJUnit writes the report as a JUnit XML test suite: a failed test case for each finding, and one test case for
// the run, which passes. A finding with level critical is an error instead of a failure.
func WriteJUnit(w io.Writer, r *Report) error {
	s := junit.Suite{
		Name:      r.Protocol + ": " + r.Target,
		Timestamp: junit.Timestamp(r.Began),
		Properties: []junit.Property{{Name: "jobwire", Value: r.Jobwire.String()},
			{Name: "seed", Value: itoa(r.Summary.Seed)},
			{Name: "executions", Value: itoa(uint64(r.Summary.Executions))}},
	}
	class := r.Protocol + ".fuzz"
	s.Add(junit.Case{Name: "the run", Class: class, Time: junit.Second(r.Summary.Seconds), Output: r.Summary.Waiting()})
	for _, f := range r.Findings {
		text := []string{f.Impact, "Observed: " + oneLine(f.Text)}
		if rule := f.Cites(); rule != "" {
			text = append(text, "Rule "+rule)
		}
		text = append(text, f.seen(), "To repeat it: "+f.Command, "", f.Transcript)
		c := junit.Case{Name: f.Name, Class: class}
		detail := &junit.Detail{Type: f.Severity, Message: f.Headline(), Text: strings.Join(text, "\n")}
		if f.Level == "critical" {
			c.Error = detail
		} else {
			c.Failure = detail
		}
		if len(f.Stack) > 0 || f.Output != "" {
			c.Output = strings.Join(append(f.Stack, f.lastOutput(maxPageOutput)...), "\n")
		}
		s.Add(c)
	}
	s.Time = junit.Second(r.Summary.Seconds)
	out := junit.Suites{Name: "jobwire fuzz"}
	out.Add(s)
	return out.Write(w)
}

package conform

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"jobwire/internal/version"
	"jobwire/play"
)

// The elements and attributes of a JUnit report that continuous integration reads.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		Timestamp  string          `xml:"timestamp,attr"` // ISO 8601, UTC
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		SystemErr  string          `xml:"system-err,omitempty"` // why not all cases ran
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCounts struct {
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     junitSecond `xml:"time,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Time    junitSecond  `xml:"time,attr"`
		Failure *junitDetail `xml:"failure"`
		Error   *junitDetail `xml:"error"`
		Skipped *junitDetail `xml:"skipped"`
		Output  string       `xml:"system-out,omitempty"`
	}
	junitDetail struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	junitSecond float64
)

func (s junitSecond) MarshalText() ([]byte, error) { return []byte(seconds(float64(s))), nil }

// junitTime is ISO 8601 in UTC without the zone, which schemas of JUnit reports do not allow.
const junitTime = "2006-01-02T15:04:05"

// WriteJUnit writes the reports as JUnit XML, a test suite each. A target that crashed or could
// not be reached is an error, any other unexpected verdict a failure. Cases that were skipped, did not
// run, are inconclusive, or failed as the profile says are skipped. A run that was interrupted has one more case, which
// is an error.
func WriteJUnit(w io.Writer, reports []*Report) error {
	out := junitSuites{Name: "jobwire conform"}
	for _, r := range reports {
		class := r.Protocol.Name
		if len(reports) > 1 {
			// Readers tell tests apart by class and name, and take dots for packages.
			class += "." + strings.ReplaceAll(r.Target, ".", "_")
		}
		s := junitSuite{
			Name:       r.Protocol.Name + ": " + r.Target,
			Timestamp:  r.Began.UTC().Format(junitTime),
			Properties: []junitProperty{{"jobwire", version.Get().String()}},
			SystemErr:  printable(r.Stopped()),
		}
		for _, res := range r.Results {
			s.add(class, res)
		}
		if r.Interrupted {
			s.interrupted(class, r.Stopped())
		}
		s.Time = junitSecond(r.Took.Seconds())
		out.Tests += s.Tests
		out.Failures += s.Failures
		out.Errors += s.Errors
		out.Skipped += s.Skipped
		out.Time += s.Time
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(class string, res Result) {
	c := junitCase{Name: res.Case.ID, Class: class + "." + res.Case.Section, Time: junitSecond(res.Took.Seconds())}
	detail := &junitDetail{Type: string(res.Verdict), Message: printable(res.Note)}
	if res.Verdict != Passed {
		detail.Text = explanation(res)
	}
	s.Tests++
	switch v := res.Verdict; {
	case v == Died || v == Hung || v == Unreachable:
		s.Errors++
		c.Error = detail
	case v.FallsShort():
		s.Failures++
		c.Failure = detail
	case v == Lax || v == Different:
		c.Output = detail.Message + "\n" + detail.Text
	case v != Passed:
		s.Skipped++
		c.Skipped = detail
	}
	s.Cases = append(s.Cases, c)
}

// interrupted adds a case that fails: readers do not fail a suite for cases that were skipped.
func (s *junitSuite) interrupted(class, why string) {
	s.Tests++
	s.Errors++
	s.Cases = append(s.Cases, junitCase{Name: "the run", Class: class, Error: &junitDetail{Type: "interrupted", Message: why}})
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

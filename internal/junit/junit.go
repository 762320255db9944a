// Package junit writes reports in the XML format of JUnit, which continuous integration systems read. The format has no
// specification; the elements here are those that Jenkins, GitLab and GitHub actions read.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Suites is the root element. [Suites.Add] updates the totals.
type Suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	Counts
	Suites []Suite `xml:"testsuite"`
}

// Suite is a test suite. [Suite.Add] updates the counts.
type Suite struct {
	Name string `xml:"name,attr"`
	Counts
	Timestamp  string     `xml:"timestamp,attr"` // as [Timestamp] formats it
	Properties []Property `xml:"properties>property"`
	Cases      []Case     `xml:"testcase"`
	SystemErr  string     `xml:"system-err,omitempty"`
}

// Property is a name with a value in a suite.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Counts contains the numbers of test cases by result.
type Counts struct {
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Time     Second `xml:"time,attr"`
}

// Case is a test case. It has passed if Failure, Error and Skipped are nil.
type Case struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"`
	Time    Second  `xml:"time,attr"`
	Failure *Detail `xml:"failure"`
	Error   *Detail `xml:"error"`
	Skipped *Detail `xml:"skipped"`
	Output  string  `xml:"system-out,omitempty"`
}

// Detail describes why a test case has not passed.
type Detail struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Second is a duration in seconds.
type Second float64

// MarshalText returns the duration with three decimals.
func (s Second) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

// Timestamp formats a time as schemas of JUnit reports require it: ISO 8601 in UTC without the zone.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// Add adds a test case.
func (s *Suite) Add(c Case) {
	s.Tests++
	switch {
	case c.Error != nil:
		s.Errors++
	case c.Failure != nil:
		s.Failures++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// Add adds a complete test suite.
func (out *Suites) Add(s Suite) {
	out.Tests += s.Tests
	out.Failures += s.Failures
	out.Errors += s.Errors
	out.Skipped += s.Skipped
	out.Time += s.Time
	out.Suites = append(out.Suites, s)
}

// Write writes the report with the XML header.
func (out *Suites) Write(w io.Writer) error {
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

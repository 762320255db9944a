// Package tap writes reports in the Test Anything Protocol, version 13
// (https://testanything.org/tap-version-13-specification.html).
package tap

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"jobwire/internal/verdict"
)

// Test is the result of a test.
type Test struct {
	Name, About string
	Class       verdict.Class
	Reason      string // why the test was skipped, or its failure is expected
	Comment     string // what happened, in one or several lines
}

// Writer writes a report. The zero value is not usable.
type Writer struct {
	w *bufio.Writer
	n int // tests so far
}

// New writes the beginning of a report about a number of tests.
func New(w io.Writer, tests int) *Writer {
	t := &Writer{w: bufio.NewWriter(w)}
	fmt.Fprintf(t.w, "TAP version 13\n1..%d\n", tests)
	return t
}

// Add writes the result of the next test. An expected failure is "not ok" with the directive TODO, which programs that
// read TAP do not count as a failure.
func (t *Writer) Add(test Test) {
	t.n++
	status, directive := "ok", ""
	switch test.Class {
	case verdict.Failure, verdict.Error:
		status = "not ok"
	case verdict.Excused:
		status, directive = "not ok", " # TODO "+line(test.Reason)
	case verdict.Skip:
		directive = " # SKIP " + line(test.Reason)
	}
	fmt.Fprintf(t.w, "%s %d - %s: %s%s\n", status, t.n, line(test.Name), line(test.About), directive)
	t.Comment(test.Comment)
}

// Comment writes a comment in one or several lines.
func (t *Writer) Comment(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(t.w, strings.TrimRight("# "+line, " \n"))
	}
}

// Stop writes why the run stopped before its end, unless that is "".
func (t *Writer) Stop(why string) {
	if why != "" {
		fmt.Fprintf(t.w, "Bail out! %s\n", line(why))
	}
}

// End writes what is buffered, and returns the first error.
func (t *Writer) End() error { return t.w.Flush() }

// line returns the text on one line, escaped so that TAP does not interpret it as a directive.
func line(s string) string { return strings.NewReplacer("\n", " ", `\`, `\\`, "#", `\#`).Replace(s) }

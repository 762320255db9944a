package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"jobwire/conform"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

// WriteTAP writes the reports in the Test Anything Protocol, version 13. An expected failure gets the TAP directive
// TODO. Comments after a test describe its failure.
func WriteTAP(w io.Writer, reports []*conform.Report) error {
	b := bufio.NewWriter(w)
	total := 0
	for _, r := range reports {
		total += len(r.Results)
	}
	fmt.Fprintf(b, "TAP version 13\n1..%d\n", total)
	n := 0
	for _, r := range reports {
		tapComment(b, r.Target+", tested by jobwire "+version.Get().String())
		for _, res := range r.Results {
			n++
			status, directive := tapStatus(res)
			fmt.Fprintf(b, "%s %d - %s: %s%s\n", status, n, tapLine(res.Case.ID), tapLine(res.Case.About), directive)
			if class := res.Verdict.Row().Class; class >= verdict.Failure || class == verdict.Note {
				if text := explanation(res); text != "" {
					tapComment(b, string(res.Verdict)+"\n"+text)
				} else {
					tapComment(b, string(res.Verdict)+": "+res.Note)
				}
			}
		}
		if why := r.Stopped(); why != "" {
			fmt.Fprintf(b, "Bail out! %s\n", tapLine(why))
		}
	}
	return b.Flush()
}

// tapStatus returns the words of a TAP line for a result. An expected failure is "not ok" with the directive TODO,
// which TAP consumers do not count as a failure.
func tapStatus(res conform.Result) (status, directive string) {
	switch res.Verdict.Row().Class {
	case verdict.Failure, verdict.Error:
		return "not ok", ""
	case verdict.Excused:
		return "not ok", " # TODO " + string(res.Verdict) + ": " + tapLine(res.Note)
	case verdict.Skip:
		return "ok", " # SKIP " + string(res.Verdict) + ": " + tapLine(res.Note)
	}
	return "ok", ""
}

// tapLine returns the text on one line, escaped so that TAP does not interpret it as a directive.
func tapLine(s string) string {
	return strings.NewReplacer("\n", " ", `\`, `\\`, "#", `\#`).Replace(s)
}

func tapComment(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, strings.TrimRight("# "+line, " \n"))
	}
}

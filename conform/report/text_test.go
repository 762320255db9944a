package report_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	"jobwire/internal/verdict"
)

// TestTextIsBrief checks that the text has at most 60 lines unless it is verbose: the worst causes, the first one
// with its conversation, and the number of the others.
func TestTextIsBrief(t *testing.T) {
	all := mutanttest.Load(t, gearman.Protocol)
	s, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte("@section Client/Worker\n@case echo\n@about Data.\n" +
		"@rules gearman.echo.same-data\nClient -> Job Server: ECHO_REQ hello\nJob Server -> Client: ECHO_RES hello\n")}})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Cases[0]
	failed := conform.Result{Case: c, Verdict: verdict.Failed, Note: "note", Play: playCase(t, c, echoRes("other"))}
	text := func(verbose bool, results ...conform.Result) string {
		r := &conform.Report{Protocol: gearman.Protocol, Target: "server", Results: results, Notes: []string{"a note"}}
		var b strings.Builder
		w := &report.Text{W: &b, Verbose: verbose}
		for _, res := range results {
			w.Case(res)
		}
		w.Summary(r)
		return b.String()
	}
	var many []conform.Result
	for _, c := range all.Cases {
		many = append(many, conform.Result{Case: c, Verdict: verdict.Failed, Note: "note", Command: "command"})
	}
	for range 2000 { // the most frequent cause
		many = append(many, failed)
	}
	brief, verbose := text(false, many...), text(true, many...)
	for _, part := range []string{"\n  1. ", "gearman.echo\n",
		"\n      ^^ differs: byte 12, Data: expected hello, got other\n", "\na note\n", "--run cause:1\n", "\n  2. ", "\n... and ",
		" more causes (", "--verbose"} {
		if !strings.Contains(brief, part) {
			t.Errorf("no %q in:\n%s", part, brief)
		}
	}
	if n := strings.Count(brief, "\n"); n > 60 || n < 50 {
		t.Errorf("%d lines:\n%s", n, brief)
	}
	causes := (&conform.Report{Protocol: gearman.Protocol, Results: many}).Causes()
	if last := fmt.Sprintf("\n%3d. ", len(causes)); !strings.Contains(verbose, last) || strings.Contains(verbose,
		"more causes") {
		t.Errorf("the verbose text has no cause %q", last)
	}
	if few := text(false, failed); !strings.Contains(few, "Rule gearman.echo.same-data") || strings.Contains(few,
		"verbose") {
		t.Errorf("the text about one case:\n%s", few)
	}
	for n := range 40 { // near the limit the text is either whole or brief
		some := text(false, append(many[:n:n], failed)...)
		if strings.Count(some, "\n") > 60 || strings.Contains(some, "verbose") == strings.Contains(some,
			"Rule gearman.echo.same-data") {
			t.Errorf("%d lines:\n%s", strings.Count(some, "\n"), some)
		}
	}
}

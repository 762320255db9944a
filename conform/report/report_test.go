package report_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/internal/prose"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
	"jobwire/play"
)

// Output of hostile servers: text that is markup in HTML, XML or TAP, and bytes that these formats must not contain.
const (
	markup   = `</pre><script>alert("&1")</script> # SKIP ]]>`
	noText   = "\x1b[31m it said last:\r\n\x00\x07\xff\ufffe # TODO\nBail out!"
	longNote = "byte 0: " + markup + "\n" + noText
)

// dashed returns a verdict as a part of the name of a case.
func dashed(v verdict.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") }

// reportSuite returns a suite with a case for each verdict, and one more case.
func reportSuite(t *testing.T) *conform.Suite {
	t.Helper()
	var src strings.Builder
	src.WriteString("@section Client/Worker\n")
	for _, row := range append([]verdict.Row{{Verdict: "other"}}, verdict.Cases...) {
		fmt.Fprintf(&src, "@case report.%s\n@about The #1 <i>echo</i> \\# SKIP & \"co\".\n@rules gearman.echo.same-data gearman.packet.size-exact\n", dashed(row.Verdict))
		src.WriteString("Client -> Job Server: ECHO_REQ hello\nJob Server -> Client: ECHO_RES hello\n  or non-strict closes\n")
	}
	s, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{"report.wire": {Data: []byte(src.String())}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// playCase runs a case against a server that sends the same reply to every client. In the synctest bubble, this takes no
// time.
func playCase(t *testing.T, c *conform.Case, answer string) (res *play.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, transcript.Actor) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				io.ReadFull(far, make([]byte, 12+len("hello")))
				io.WriteString(far, answer)
				far.Close()
			}()
			return near, nil
		}
		res = play.Peers(t.Context(), c.Script, dial, play.Options{})
	})
	return res
}

func echoRes(data string) string {
	return fmt.Sprintf("\x00RES\x00\x00\x00\x11\x00\x00\x00%c%s", len(data), data)
}

// sampleReports returns reports about a server that passes all cases, and about a server that has had every verdict.
func sampleReports(t *testing.T) (*conform.Suite, []*conform.Report) {
	t.Helper()
	s := reportSuite(t)
	began := time.Date(2026, 3, 29, 2, 30, 0, 5e6, time.FixedZone("CEST", 2*60*60))
	good := &conform.Report{Protocol: gearman.Protocol, Target: "good 1.0", Began: began, Took: time.Second}
	odd := &conform.Report{Protocol: gearman.Protocol, Target: `odd <b>"2" & # TODO`, Began: began.Add(time.Second), Took: 2 * time.Second}
	answers := map[verdict.Verdict]string{
		verdict.Passed:       echoRes("hello"),
		verdict.NonStrict:    "",
		verdict.Failed:       echoRes(markup),
		verdict.Inconsistent: "\x00BAD" + markup + noText,
		verdict.Crashed:      echoRes(noText),
		verdict.Known:        echoRes(markup),
	}
	for i, c := range s.Cases {
		passed := conform.Result{Case: c, Verdict: verdict.Passed, Took: 5 * time.Millisecond, Play: playCase(t, c, answers[verdict.Passed])}
		good.Results = append(good.Results, passed)
		if i == 0 {
			odd.Results = append(odd.Results, passed)
			continue
		}
		v := verdict.Cases[i-1].Verdict
		res := conform.Result{Case: c, Verdict: v, Took: 1500 * time.Millisecond, Command: "jobwire conform gearman --run " + c.ID}
		if v != verdict.Passed {
			res.Note = longNote
		}
		if v == verdict.Crashed || v == verdict.Known {
			res.Crash = &conform.Crash{Exit: "signal: aborted", Fault: "panic: " + markup, Output: "  panic: " + markup + "\n  " + noText}
		}
		if answer, ok := answers[v]; ok {
			res.Play = playCase(t, c, answer)
			if fell := res.Play.Failure != nil; fell != (v != verdict.Passed && v != verdict.NonStrict) {
				t.Fatalf("%s: the conversation fell short: %v", c.ID, fell)
			}
		}
		odd.Results = append(odd.Results, res)
	}
	return s, []*conform.Report{good, odd}
}

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// golden compares got with a file in testdata. With -update, it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	got = bytes.ReplaceAll(got, []byte(version.Get().String()), []byte("VERSION"))
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("not as %s, which -update writes:\n%s", file, got)
	}
}

type junitCounts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

// TestJUnit tests that a parser as in continuous integration systems finds in the JUnit report each case once, with the
// kind of its verdict and correct counts.
func TestJUnit(t *testing.T) {
	_, reports := sampleReports(t)
	var out bytes.Buffer
	if err := report.WriteJUnit(&out, reports); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.junit.xml", out.Bytes())

	type detail struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var got struct {
		XMLName xml.Name `xml:"testsuites"`
		junitCounts
		Suites []struct {
			junitCounts
			Name      string  `xml:"name,attr"`
			Timestamp string  `xml:"timestamp,attr"`
			Time      float64 `xml:"time,attr"`
			Cases     []struct {
				Name    string  `xml:"name,attr"`
				Class   string  `xml:"classname,attr"`
				Time    float64 `xml:"time,attr"`
				Failure *detail `xml:"failure"`
				Error   *detail `xml:"error"`
				Skipped *detail `xml:"skipped"`
				Output  string  `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if want := (junitCounts{32, 3, 3, 6}); got.junitCounts != want {
		t.Errorf("counts of all %+v, want %+v", got.junitCounts, want)
	}
	if len(got.Suites) != 2 || got.Suites[0].junitCounts != (junitCounts{Tests: 16}) || got.Suites[1].junitCounts != (junitCounts{16, 3, 3, 6}) {
		t.Fatalf("counts of the suites: %+v", got.Suites)
	}
	kinds := map[verdict.Verdict]string{
		verdict.Failed: "failure", verdict.Inconsistent: "failure", verdict.Unexpected: "failure",
		verdict.Crashed: "error", verdict.Hung: "error", verdict.Unreachable: "error",
		verdict.Skipped: "skipped", verdict.Inconclusive: "skipped", verdict.NotRun: "skipped", verdict.Inferred: "skipped", verdict.Known: "skipped", verdict.Flaky: "skipped",
	}
	names := map[string]bool{}
	for _, suite := range got.Suites {
		if _, err := time.Parse("2006-01-02T15:04:05", suite.Timestamp); err != nil || suite.Time == 0 {
			t.Errorf("%s: timestamp %q, time %v", suite.Name, suite.Timestamp, suite.Time)
		}
		count := junitCounts{Tests: len(suite.Cases)}
		for i, c := range suite.Cases {
			if key := c.Class + " " + c.Name; names[key] {
				t.Errorf("%q stands twice", key)
			} else {
				names[key] = true
			}
			var v verdict.Verdict
			if suite.Name == "gearman: "+reports[1].Target && i > 0 {
				v = verdict.Cases[i-1].Verdict
			}
			for kind, d := range map[string]*detail{"failure": c.Failure, "error": c.Error, "skipped": c.Skipped} {
				if (d != nil) != (kinds[v] == kind) {
					t.Errorf("%s: %s is there: %v", c.Name, kind, d != nil)
				}
				if d == nil {
					continue
				}
				if d.Type != string(v) || !strings.Contains(d.Message, markup) {
					t.Errorf("%s: %+v", c.Name, d)
				}
				switch kind {
				case "failure":
					count.Failures++
				case "error":
					count.Errors++
				case "skipped":
					count.Skipped++
				}
			}
			if v == verdict.Failed && !strings.Contains(c.Failure.Text, "^^ ") {
				t.Errorf("%s: no conversation with the offending bytes: %q", c.Name, c.Failure.Text)
			}
		}
		if count != suite.junitCounts {
			t.Errorf("%s: %+v cases, but the attributes say %+v", suite.Name, count, suite.junitCounts)
		}
	}
}

// TestTAP tests that a parser as in a TAP harness, which interprets an unescaped # as a directive, finds in the TAP
// report each case with its result and directive.
func TestTAP(t *testing.T) {
	_, reports := sampleReports(t)
	var out bytes.Buffer
	if err := report.WriteTAP(&prose.Writer{W: &out}, reports); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.tap", out.Bytes())

	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if lines[0] != "TAP version 13" || lines[1] != "1..32" {
		t.Fatalf("it begins %q", lines[:2])
	}
	var (
		line = regexp.MustCompile(`^(ok|not ok) (\d+) - ((?:[^\\#]|\\.)*?)(?: # (SKIP|TODO) ((?:[^\\#]|\\.)*))?$`)
		want = map[verdict.Verdict][2]string{
			verdict.Passed: {"ok"}, verdict.NonStrict: {"ok"}, verdict.Different: {"ok"},
			verdict.Skipped: {"ok", "SKIP"}, verdict.NotRun: {"ok", "SKIP"}, verdict.Inferred: {"ok", "SKIP"}, verdict.Inconclusive: {"ok", "SKIP"},
			verdict.Known: {"not ok", "TODO"}, verdict.Flaky: {"not ok", "TODO"},
		}
		n = 0
	)
	for _, l := range lines[2:] {
		if strings.HasPrefix(l, "#") || strings.HasPrefix(l, "Bail out! ") {
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Errorf("neither a test nor a comment: %q", l)
			continue
		}
		n++
		if m[2] != fmt.Sprint(n) {
			t.Errorf("number %s, want %d", m[2], n)
		}
		v := verdict.Passed
		if n > 17 {
			v = verdict.Cases[n-18].Verdict
		}
		expected, ok := want[v]
		if !ok {
			expected = [2]string{"not ok"}
		}
		if m[1] != expected[0] || m[4] != expected[1] {
			t.Errorf("%s: %q with directive %q, want %q", v, m[1], m[4], expected)
		}
		if about := strings.NewReplacer(`\\`, `\`, `\#`, "#").Replace(m[3]); !strings.HasSuffix(about, `The #1 <i>echo</i> \# SKIP & "co".`) {
			t.Errorf("the description reads %q", about)
		}
	}
	if n != 32 {
		t.Errorf("%d tests, want 32", n)
	}
	if i := bytes.IndexFunc(out.Bytes(), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '\ufffd' }); i >= 0 {
		t.Errorf("byte %d is no text: %q", i, out.Bytes()[max(0, i-20):i+1])
	}
}

// TestUntested tests which runs show too little to pass, and that reports in JUnit have an error then.
func TestUntested(t *testing.T) {
	must := &conform.Case{ID: "p.must", Level: codec.Must}
	open := &conform.Case{ID: "p.open", Level: codec.Interpretation}
	for _, tt := range []struct {
		name    string
		results []conform.Result
		want    string
	}{
		{"all passed", []conform.Result{{Case: must, Verdict: verdict.Passed}, {Case: open, Verdict: verdict.Passed}}, ""},
		{"half of MUST", []conform.Result{{Case: must, Verdict: verdict.Passed}, {Case: must, Verdict: verdict.Inconclusive}, {Case: open, Verdict: verdict.Inconclusive}}, ""},
		{"most of MUST", []conform.Result{{Case: must, Verdict: verdict.Passed}, {Case: must, Verdict: verdict.Inconclusive}, {Case: must, Verdict: verdict.NotRun},
			{Case: must, Verdict: verdict.Skipped}, {Case: open, Verdict: verdict.Passed}}, "shows little about the target: 2 of 3 MUST cases"},
		{"one that differs", []conform.Result{{Case: open, Verdict: verdict.Different}, {Case: must, Verdict: verdict.Skipped}}, ""},
		{"most of the others", []conform.Result{{Case: open, Verdict: verdict.Different}, {Case: open, Verdict: verdict.Inconclusive}, {Case: open, Verdict: verdict.Inconclusive}},
			"shows little about the target: 2 of 3 cases"},
		{"skipped", []conform.Result{{Case: must, Verdict: verdict.Skipped}}, "shows nothing about the target"},
		{"nothing", nil, "shows nothing about the target"},
	} {
		r := &conform.Report{Protocol: gearman.Protocol, Target: "t", Results: tt.results}
		got := r.Untested()
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: expected %q, got %q", tt.name, tt.want, got)
		}
		var b bytes.Buffer
		if err := report.WriteJUnit(&b, []*conform.Report{r}); err != nil {
			t.Fatal(err)
		}
		if failed := strings.Contains(b.String(), "<error"); failed != (tt.want != "") {
			t.Errorf("%s: JUnit has an error: %v\n%s", tt.name, failed, &b)
		}
	}
}

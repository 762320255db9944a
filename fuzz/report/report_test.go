package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"time"

	"jobwire/internal/prose"
	"jobwire/internal/version"
)

// hostileText is text that contains markup of each format.
const hostileText = "</pre><script>alert(1)</script> ]]> ``` | `x` \x1b[31m\x00 \xff"

func example() *Report {
	return &Report{
		Jobwire: version.Get(), Protocol: "gearman", Title: "Gearman", Target: "server --name '" + hostileText + "'", Began: time.Unix(1e9, 0),
		Summary: Summary{Seconds: 2, Executions: 3000, Findings: 2, Unexamined: 1, Saved: 1, Folder: "findings/candidates", Reason: "the time ran out", Seed: 42},
		Findings: []*Finding{
			{Name: "gearman-signal-1", Severity: "remote crash", Level: "critical", Title: "server crash (segmentation fault) in _free", Impact: "1 message can end the server process.", Oracle: "signal",
				Signal: "segmentation fault", Stack: []string{"_free", "_client", "main"}, Text: hostileText, Output: "one\ntwo\n" + hostileText, Reproduced: true, Observed: 7, Evidence: "Reproduced.",
				Command: "jobwire play 'my findings/1.wire'", File: "my findings/1.wire", Transcript: "Client -> Job Server: ECHO_REQ hi\n"},
			{Name: "gearman-law-2", Severity: "cosmetic", Level: "low", Title: "missing message", Impact: "Nothing.", Rule: "gearman.x", RuleText: "A rule.", RuleSection: "Section", RuleLevel: "SHOULD", Text: "text",
				Evidence: "Observed once.", Command: "jobwire play 2.wire", File: "2.wire", Transcript: strings.Repeat("Client -> Job Server: ECHO_REQ ```\n", maxLines+1)},
		},
	}
}

func written(t *testing.T, format string) string {
	t.Helper()
	write := Formats[format]
	if format == "html" {
		write = WriteHTML
	}
	var b bytes.Buffer
	if err := write(&prose.Writer{W: &b}, example()); err != nil { // as commands write it
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x00\x1b") {
		t.Errorf("%s: the report has control characters", format)
	}
	return b.String()
}

// TestFormats tests that the formats for people contain the same facts, begin with the severity, and contain no markup
// from the server's output.
func TestFormats(t *testing.T) {
	for _, format := range []string{"text", "markdown", "html"} {
		got := written(t, format)
		for _, want := range []string{"critical", "remote crash", "1 message can end the server process.", "Observed 7 times.", "jobwire play", "my findings/1.wire", "ECHO_REQ hi", "low", "cosmetic", "A rule.", "observed only during the run"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", format, want, got)
			}
		}
		for _, want := range []string{"42", "1 candidate was not tried again before the time ran out; 1 saved in"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing", format, want)
			}
		}
		if format == "html" && strings.Contains(got, "<script>") {
			t.Error("the page has a script of the server")
		}
	}
}

// TestMarkdownBlocks tests that no text ends a code block: outside of code blocks there is no transcript and no tag.
func TestMarkdownBlocks(t *testing.T) {
	fence := ""
	for line := range strings.Lines(written(t, "markdown")) {
		line = strings.TrimRight(line, "\n")
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence = line[:len(line)-len(strings.TrimLeft(line, "`"))]
		case line == fence:
			fence = ""
		case fence == "" && (strings.Contains(line, "ECHO_REQ") || strings.Contains(line, "<script>") && !strings.HasPrefix(line, "- Server: ````")):
			t.Errorf("outside of a code block: %s", line)
		}
	}
	if fence != "" {
		t.Error("a code block has no end")
	}
}

// TestJUnit tests that a reader sees a failed case for each finding and one for the run.
func TestJUnit(t *testing.T) {
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(written(t, "junit")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 3 || got.Failures != 1 || got.Errors != 1 || len(got.Suites) != 1 || len(got.Suites[0].Cases) != 3 || got.Suites[0].Cases[1].Error == nil || got.Suites[0].Cases[2].Failure == nil {
		t.Errorf("%+v", got)
	}
}

// TestSARIF tests what GitHub requires of a log: each result has a listed rule, a level, a message and a relative URI.
func TestSARIF(t *testing.T) {
	var got struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID         string
						Properties map[string]any
					}
				}
			}
			Results []struct {
				RuleID, Level       string
				Message             struct{ Text string }
				PartialFingerprints map[string]string
				Locations           []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
				Stacks []struct{ Frames []any }
			}
		}
	}
	text := written(t, "sarif")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	run := got.Runs[0]
	if got.Version != "2.1.0" || run.Tool.Driver.Name == "" || len(run.Tool.Driver.Rules) != 2 || run.Tool.Driver.Rules[0].Properties["security-severity"] != "9.5" {
		t.Errorf("%s", text)
	}
	for i, want := range []struct {
		rule, level, uri string
		frames           int
	}{{"remote-crash", "error", "my%20findings/1.wire", 3}, {"cosmetic", "note", "2.wire", 0}} {
		r := run.Results[i]
		frames := 0
		if len(r.Stacks) > 0 {
			frames = len(r.Stacks[0].Frames)
		}
		if at := r.Locations[0].PhysicalLocation; r.RuleID != want.rule || r.Level != want.level || at.ArtifactLocation.URI != want.uri || at.Region.StartLine != 1 || r.Message.Text == "" || len(r.PartialFingerprints) != 1 || frames != want.frames {
			t.Errorf("expected %+v, got %+v", want, r)
		}
	}
}

// TestLongLinesAreShortened tests that a long line of a report is cut after a limit, with the number of omitted bytes,
// and that a short line does not change.
func TestLongLinesAreShortened(t *testing.T) {
	short := "Client -> Job Server: ECHO_REQ there"
	if got := shortened(short); got != short {
		t.Errorf("%q", got)
	}
	long := short + strings.Repeat("x", maxLine)
	if got := shortened(long); len(got) > maxLine+30 || !strings.HasPrefix(got, short) || !strings.HasSuffix(got, " ... and 36 more bytes") {
		t.Errorf("%q", got)
	}
}

// TestLastOutput tests that a finding shows the last lines of the server's output, and equal adjacent lines as one line
// with their number.
func TestLastOutput(t *testing.T) {
	f := &Finding{Output: "a\nb\nb\nb\nc\nd\nd\n"}
	if got := strings.Join(f.lastOutput(3), "|"); got != "b (3 times)|c|d (2 times)" {
		t.Errorf("got %s", got)
	}
}

// TestSymptoms tests that every report for people shows the other symptoms of a cause with their files.
func TestSymptoms(t *testing.T) {
	r := &Report{Findings: []*Finding{{Name: "first", Title: "missing message", Text: "expected A", Symptoms: []*Finding{{Name: "other", Title: "unexpected message", Text: "got B", File: "other.wire"}}}}}
	for name, write := range map[string]func(io.Writer, *Report) error{"text": WriteText, "markdown": WriteMarkdown, "html": WriteHTML, "json": WriteJSON} {
		var b strings.Builder
		if err := write(&b, r); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"unexpected message", "got B", "other.wire"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: expected %q in\n%s", name, want, &b)
			}
		}
	}
}

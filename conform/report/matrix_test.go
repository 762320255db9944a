package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	_ "jobwire/catalog" // the protocols
	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/conform/report"
	"jobwire/internal/prose"
	"jobwire/internal/verdict"
)

// savedCase is a case of a saved result, as in docs/schema/conform.json.
type savedCase struct {
	ID      string          `json:"id"`
	Case    string          `json:"case"`
	Rules   []codec.RuleID  `json:"rules"`
	Level   codec.Level     `json:"level"`
	Program string          `json:"program,omitempty"`
	Verdict verdict.Verdict `json:"verdict"`
	Note    string          `json:"note"`
	Broken  codec.RuleID    `json:"broken,omitempty"`
	Finding string          `json:"finding,omitempty"`
	Crash   map[string]any  `json:"crash,omitempty"`
}

// saved returns a case with a name such as "echo" or "echo[n=1]".
func saved(name string, v verdict.Verdict, rules ...codec.RuleID) savedCase {
	family, _, _ := strings.Cut(name, "[")
	return savedCase{ID: "gearman." + name, Case: "gearman." + family, Rules: rules, Level: gearman.Protocol.Rule(rules[0]).Level, Verdict: v}
}

// with returns the case after a change.
func (c savedCase) with(change func(c *savedCase)) savedCase {
	change(&c)
	return c
}

// savedResult returns a saved result.
func savedResult(t *testing.T, target, version string, cases ...savedCase) map[string]any {
	t.Helper()
	return map[string]any{"schema_version": 1, "tool_version": "0.1.0", "jobwire": map[string]any{"version": "0.1.0"}, "start": "2026-03-29T00:30:00.000Z",
		"protocol": "gearman", "target": target, "server_version": version, "cases": append([]savedCase{}, cases...)}
}

func addResult(t *testing.T, m *report.Matrix, name string, result map[string]any) error {
	t.Helper()
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return m.Add(bytes.NewReader(text), name)
}

// matrixOf returns the page, and the text of each row by the ID of its rule.
func matrixOf(t *testing.T, m *report.Matrix) (page string, rows map[string]string) {
	t.Helper()
	var out bytes.Buffer
	if err := m.WriteHTML(&prose.Writer{W: &out}); err != nil {
		t.Fatal(err)
	}
	rows = map[string]string{}
	for _, e := range elements(t, out.String()) {
		if strings.HasPrefix(e.attr["class"], "rule") {
			_, cells, _ := strings.Cut(strings.Join(strings.Fields(e.text.String()), " "), gearman.Protocol.Rule(codec.RuleID(e.attr["id"])).Text)
			rows[e.attr["id"]] = cells
		}
	}
	return out.String(), rows
}

const (
	echoRule      = "gearman.echo.same-data"
	createdRule   = "gearman.submit.created"
	timeoutRule   = "gearman.worker.timeout-fails"
	epochRule     = "gearman.epoch.wakes" // INTERPRETATION
	formatRule    = "gearman.packet.magic"
	directionRule = "gearman.packet.magic-direction"
)

// TestMatrix checks what a page says about each requirement and server.
func TestMatrix(t *testing.T) {
	m := &report.Matrix{FindingsURL: "findings.md"}
	known := func(c *savedCase) {
		c.Verdict, c.Finding, c.Note = verdict.Known, "server-timeout", "the server <waits>: expected WORK_FAIL, got nothing within 4s"
	}
	for _, add := range []struct {
		name   string
		result map[string]any
	}{
		{"", savedResult(t, "server 1.0", "1.0",
			saved("echo", verdict.Passed, echoRule, createdRule),
			saved("created", verdict.Skipped, createdRule),
			saved("fails[n=1]", verdict.Passed, timeoutRule, echoRule),
			saved("fails[n=2]", verdict.Failed, timeoutRule, echoRule).with(known),
			saved("fails-again", verdict.Passed, timeoutRule),
			saved("wakes", verdict.Failed, epochRule).with(known),
			saved("magic", verdict.Known, directionRule, formatRule).with(func(c *savedCase) {
				c.Broken, c.Crash = formatRule, map[string]any{"output": []string{}}
				c.Note = "it crashes: the target crashed (exit status 1); output:\n  at 0x55d4c6307176"
				c.Finding = "https://example.org/1"
			}),
		)},
		{"second", savedResult(t, "./server", "",
			saved("echo", verdict.NonStrict, echoRule, createdRule),
			saved("created", verdict.Skipped, createdRule).with(func(c *savedCase) { c.Note = "the server does not have it" }),
			saved("fails[n=1]", verdict.Failed, timeoutRule, echoRule).with(known),
			saved("fails[n=2]", verdict.Failed, timeoutRule, echoRule),
			saved("fails[n=3]", verdict.NonStrict, timeoutRule, echoRule),
			saved("client", verdict.Failed, epochRule).with(func(c *savedCase) { c.Program = "Client" }),
		)},
	} {
		if err := addResult(t, m, add.name, add.result); err != nil {
			t.Fatal(err)
		}
	}
	page, rows := matrixOf(t, m)
	for id, want := range map[string]string{
		echoRule: "server 1.0: passed second: non-strict server 1.0 Not counted here, because it is about another requirement: gearman.fails " +
			"second non-strict gearman.echo Not counted here, because it is about another requirement: gearman.fails",
		createdRule: "server 1.0: passed second: undecided second not applicable gearman.created the server does not have it",
		timeoutRule: "server 1.0: failed 1 of 2 cases server-timeout second: failed server-timeout " +
			gearman.Protocol.Rule(timeoutRule).Reading + " server 1.0 failed gearman.fails 1 of 2 instances the server <waits>: expected WORK_FAIL, got nothing within 4s " +
			"second failed gearman.fails 2 of 3 instances the server <waits>: expected WORK_FAIL, got nothing within 4s",
		epochRule: "server 1.0: different server-timeout second: not tested " + gearman.Protocol.Rule(epochRule).Reading + " server 1.0 different gearman.wakes the server <waits>: expected WORK_FAIL, got nothing within 4s",
		formatRule: "server 1.0: crashed finding second: not tested server 1.0 crashed gearman.magic " +
			"it crashes: the target crashed (exit status 1)",
		directionRule: "server 1.0: undecided second: not tested server 1.0 Not counted here, because it is about another requirement: gearman.magic",
	} {
		if got := strings.ReplaceAll(rows[id], "Interpretation: ", ""); strings.TrimSpace(got) != want {
			t.Errorf("%s:\n%s\nwant:\n%s", id, got, want)
		}
	}
	if len(rows) != 6 {
		t.Errorf("expected a row for each of 6 tested rules, got %d", len(rows))
	}
	for _, want := range []string{`<a href="findings.md#server-timeout">server-timeout</a>`, `<a href="https://example.org/1">finding</a>`,
		"<strong>server</strong> 1.0", "<strong>second</strong>", "2026-03-29, jobwire 0.1.0",
		`</span> 1 <span>failed</span>, all expected</span>`, `</span> 1 <span>failed</span></span>`,
		fmt.Sprintf("Requirements without a result: %d", len(gearman.Protocol.Rules)-6)} {
		if !strings.Contains(page, want) {
			t.Errorf("expected %q on the page", want)
		}
	}
	if again, _ := matrixOf(t, m); again != page {
		t.Error("the same results make different pages")
	}
	ids := map[string]bool{}
	for _, e := range elements(t, page) {
		if id := e.attr["id"]; id != "" && ids[id] {
			t.Errorf("the page has two elements with the id %s", id)
		} else {
			ids[id] = true
		}
	}
	for _, e := range elements(t, page) {
		if at, ok := strings.CutPrefix(e.attr["href"], "#"); ok && !ids[at] {
			t.Errorf("the page has no element with the id %s", at)
		}
	}
}

// matrixProbe is a page that loads the matrix in a narrow frame, and records what the frame shows.
const matrixProbe = `<!doctype html>
<iframe src="/page" style="width: 390px; height: 800px; border: 0"></iframe>
<pre id="seen"></pre>
<script>
addEventListener("load", function () {
  var win = document.querySelector("iframe").contentWindow, doc = win.document;
  var shown = function () {
    return Array.from(doc.querySelectorAll(".rule")).filter(function (e) { return e.checkVisibility(); }).map(function (e) { return e.id; });
  };
  var search = doc.querySelector("input[type=search]"), seen = {All: shown(), Width: doc.documentElement.scrollWidth};
  var differs = doc.querySelector("[name=differs]");
  differs.click();
  seen.Differs = shown();
  differs.click();
  doc.querySelector("[value=SHOULD]").click();
  seen.Level = shown();
  seen.Count = doc.querySelector("output").textContent;
  doc.querySelector("[value=SHOULD]").click();
  search.value = "FAILS server-timeout";
  search.dispatchEvent(new win.Event("input", {bubbles: true}));
  seen.Found = shown();
  win.addEventListener("hashchange", function () {
    seen.Opened = doc.getElementById("gearman.worker.wake-each").checkVisibility();
    document.getElementById("seen").textContent = JSON.stringify(seen);
  });
  win.location.hash = "#gearman.worker.wake-each";
});
</script>
`

// TestMatrixInABrowser tests that the comparison of servers fits a narrow window, and can be filtered and searched in a
// browser, and that a link to a hidden requirement shows it.
func TestMatrixInABrowser(t *testing.T) {
	const wakeRule = "gearman.worker.wake-each" // SHOULD
	m := &report.Matrix{FindingsURL: "findings.md"}
	long := strings.Repeat("server-with-a-long-name-", 4)
	for _, name := range []string{"one", long} {
		err := addResult(t, m, name, savedResult(t, "server", "", saved("wakes", verdict.Passed, wakeRule), saved("echo", verdict.Passed, echoRule),
			saved("fails", verdict.Known, timeoutRule).with(func(c *savedCase) { c.Finding = "server-timeout" })))
		if err != nil {
			t.Fatal(err)
		}
	}
	page, _ := matrixOf(t, m)
	var seen struct {
		All, Differs, Level, Found []string
		Width                      int
		Count                      string
		Opened                     bool
	}
	inBrowser(t, matrixProbe, page, &seen)
	if len(seen.All) != 3 || seen.Width > 390 {
		t.Errorf("the page shows %q and is %d pixels wide in a frame of 390", seen.All, seen.Width)
	}
	if fmt.Sprint(seen.Differs) != "["+timeoutRule+"]" || fmt.Sprint(seen.Found) != "["+timeoutRule+"]" {
		t.Errorf("the filter shows %q, the search %q", seen.Differs, seen.Found)
	}
	if fmt.Sprint(seen.Level) != "["+wakeRule+"]" || seen.Count != "1 of 3 requirements" {
		t.Errorf("the filter of levels shows %q, %q", seen.Level, seen.Count)
	}
	if !seen.Opened {
		t.Error("a link to a requirement that is filtered out does not show it")
	}
}

// TestMatrixOfAProgram checks that the cases of a client count if the result has no others.
func TestMatrixOfAProgram(t *testing.T) {
	m := &report.Matrix{}
	client := saved("client", verdict.Failed, timeoutRule).with(func(c *savedCase) { c.Program, c.Finding = "Client", "name" })
	if err := addResult(t, m, "", savedResult(t, "Client=./client", "", client)); err != nil {
		t.Fatal(err)
	}
	page, rows := matrixOf(t, m)
	if !strings.Contains(rows[timeoutRule], "Client=./client: failed name") {
		t.Errorf("got %q", rows[timeoutRule])
	}
	if strings.Contains(page, `href="#name"`) {
		t.Error("without an address of the findings, the page has a link to one")
	}
}

// TestMatrixReadsReports checks that a matrix takes what WriteJSON writes, for one server and for several.
func TestMatrixReadsReports(t *testing.T) {
	_, reports := sampleReports(t)
	m := &report.Matrix{}
	var out bytes.Buffer
	if err := report.WriteJSON(&out, reports); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(&out, ""); err != nil {
		t.Fatal(err)
	}
	_, rows := matrixOf(t, m)
	if got := rows[echoRule]; !strings.HasPrefix(strings.TrimSpace(got), "good 1.0: passed "+reports[1].Target+": crashed 3 of 11 cases") {
		t.Errorf("got %q", got)
	}
}

// TestInvalidResultsOfMatrix tests that a file that is not a result of conform, is damaged or belongs to a server that
// is already in the comparison is rejected with the reason.
func TestInvalidResultsOfMatrix(t *testing.T) {
	echo := saved("echo", verdict.Passed, echoRule)
	for _, tt := range []struct {
		name, want string
		change     func(r map[string]any)
	}{
		{"", "expected a result of 'jobwire conform --format json' with schema version 1, got version 2", func(r map[string]any) { r["schema_version"] = 2 }},
		{"", `unknown protocol "smtp"`, func(r map[string]any) { r["protocol"] = "smtp" }},
		{"", "unknown rule gearman.no.such: jobwire 0.1.0 wrote the file", func(r map[string]any) {
			r["cases"] = []savedCase{echo.with(func(c *savedCase) { c.Rules = []codec.RuleID{"gearman.no.such"} })}
		}},
		{"", "expected rules and a verdict", func(r map[string]any) { r["cases"] = []savedCase{echo.with(func(c *savedCase) { c.Verdict = "fine" })} }},
		{"", "the file has no results of cases", func(r map[string]any) { delete(r, "cases") }},
		{"", "start: ", func(r map[string]any) { r["start"] = "today" }},
		{"", "another file also has results of server 1.0 for Gearman: name them with NAME=FILE", func(map[string]any) {}},
		{"one", "the name one is for one server, but the file has results of 2", func(r map[string]any) { r["reports"] = []any{r["head"], r["head"]} }},
	} {
		m := &report.Matrix{}
		if err := addResult(t, m, "", savedResult(t, "server 1.0", "1.0", echo)); err != nil {
			t.Fatal(err)
		}
		r := savedResult(t, "server 1.0", "1.0", echo)
		tt.change(r)
		if err := addResult(t, m, tt.name, r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got the error %v, want %s", err, tt.want)
		}
	}
	if err := (&report.Matrix{}).Add(strings.NewReader("TAP version 13\n"), ""); err == nil || !strings.HasPrefix(err.Error(), "expected a result of 'jobwire conform --format json': ") {
		t.Errorf("got the error %v", err)
	}
}

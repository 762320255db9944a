package report_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/internal/peers"
	"jobwire/internal/prose"
	"jobwire/internal/verdict"
	"jobwire/internal/version"
)

func htmlOf(t *testing.T, s *conform.Suite, reports []*conform.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.WriteHTML(&prose.Writer{W: &out}, s, reports); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// element is one element of a page, with all of its text.
type element struct {
	tag  string
	attr map[string]string
	text strings.Builder
}

func (e *element) is(tag, class string) bool { return e.tag == tag && e.attr["class"] == class }

var (
	voidTag   = regexp.MustCompile(`<(meta|link|br|input)([^>]*)>`)
	bareAttr  = regexp.MustCompile(` hidden>`)
	codeInTag = regexp.MustCompile(`(?s)(<(style|script)>).*?(</(style|script)>)`)
)

// elements parses a page as strict XML, after closing its void tags. A missing end tag, or text that opens a tag, is an
// error.
func elements(t *testing.T, page string) []*element {
	t.Helper()
	page = codeInTag.ReplaceAllString(page, "$1$3")
	page = bareAttr.ReplaceAllString(voidTag.ReplaceAllString(page, "<$1$2/>"), ` hidden="">`)
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	var all, open []*element
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{tag: tok.Name.Local, attr: map[string]string{}}
			for _, a := range tok.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.text.Write(tok)
			}
		}
	}
}

// TestHTMLIsWellFormedAndSelfContained tests that the HTML report contains every case with its transcript and marked
// failure, loads nothing from elsewhere, has no broken links, and shows text of servers and cases as text and not as
// markup.
func TestHTMLIsWellFormedAndSelfContained(t *testing.T) {
	s, reports := sampleReports(t)
	page := htmlOf(t, s, reports)
	if page != htmlOf(t, s, reports) {
		t.Error("the same reports make different pages")
	}
	for _, foreign := range []string{"src=", "http:", "https:", "url(", "@import", "stylesheet"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page leads outside: it has %q", foreign)
		}
	}
	ids := map[string]*element{}
	count := map[string]int{}
	marks := ""
	all := elements(t, page)
	for _, e := range all {
		count[e.tag]++
		if e.tag == "mark" {
			marks += e.text.String() + "\n"
		}
		if id := e.attr["id"]; id != "" {
			if ids[id] != nil {
				t.Errorf("the id %q stands twice", id)
			}
			ids[id] = e
		}
	}
	if count["script"] != 1 || count["i"] != len(verdict.Cases)+1 || count["b"] != 0 {
		t.Errorf("what servers and cases say made elements: %v", count)
	}
	if !strings.Contains(page, "16 cases in 2.0&nbsp;s: 6 failed, 2 failed as the profile expects.") {
		t.Error("the summary of the odd one is missing")
	}
	for _, want := range []string{`<strong class="rate">30.0&nbsp;%</strong> of the cases passed: 3 of 10.`, "2026-03-29 00:30:00 UTC; jobwire " + version.Get().String(), `<p class="verdict bad">✗ failed: `,
		"Problems, the worst first", `<code>known: [{cases: gearman.report.failed, why: REASON}]</code>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, want := range []string{"Job Server -> Client: ECHO_RES hello\n", "3c\n^^ differs: ", "42\n^^ gearman.packet.magic: "} {
		if !strings.Contains(marks, want) {
			t.Errorf("%q is not marked; these are:\n%s", want, marks)
		}
	}
	for _, e := range all {
		if at, ok := strings.CutPrefix(e.attr["href"], "#"); ok && ids[at] == nil {
			t.Errorf("a link to %q leads nowhere", at)
		}
	}
	for _, c := range s.Cases {
		body := ids["case-"+c.ID]
		if body == nil {
			t.Errorf("%s is missing", c.ID)
			continue
		}
		if text := body.text.String(); !strings.Contains(text, "Client -> Job Server: ECHO_REQ hello") {
			t.Errorf("%s has no transcript:\n%s", c.ID, text)
		}
	}
	for id, wants := range map[string][]string{
		"failed":       {`expected hello, got "` + strings.ReplaceAll(markup, `"`, `\"`), "byte 0: " + markup, "1.500 s, plain writes", "ECHO_RES hello\n", "◂ odd"},
		"inconsistent": {"\n   ^^ gearman.packet.magic"},
		"non-strict":   {"Job Server -> Client: closes", "or non-strict closes ◂ odd"},
		"skipped":      {"byte 0: " + markup},
		"unreachable":  {"byte 0: " + markup},
	} {
		for _, want := range wants {
			if text := ids["case-gearman.report."+id].text.String(); !strings.Contains(text, want) {
				t.Errorf("%s: no %q in:\n%s", id, want, text)
			}
		}
	}
}

// TestHTMLMatrix checks that the page shows the worst verdict of a rule's cases, and the number of cases for each verdict.
func TestHTMLMatrix(t *testing.T) {
	s, reports := sampleReports(t)
	rows := map[string]string{}
	last := ""
	for _, e := range elements(t, htmlOf(t, s, reports)) {
		switch {
		case e.is("details", "rule"):
			last = e.attr["id"]
		case e.is("summary", "row") && rows[last] == "":
			rows[last] = strings.Join(strings.Fields(e.text.String()), " ")
		}
	}
	if len(rows) != 2 {
		t.Fatalf("rules: %v", rows)
	}
	rule := gearman.Protocol.Rule("gearman.echo.same-data")
	want := fmt.Sprintf("%s %s%s good 1.0: ✓ passed all 16 %s: † crashed 1 †, 1 ∞, 1 ✗, 1 ≠, 1 !, 1 ∅, 1 ~, 1 ◇, 1 △, 1 ?, 1 ≈, 1 –, 1 ⋯, 1 ·, 2 ✓", rule.Level, rule.ID, rule.Text, reports[1].Target)
	if got := rows["rule-gearman.echo.same-data"]; got != want {
		t.Errorf("row:\n%s\nwant:\n%s", got, want)
	}
}

// TestHTMLOfPartialReports tests that the HTML report shows cases without a result as not run, and is well-formed even
// without any report.
func TestHTMLOfPartialReports(t *testing.T) {
	s, reports := sampleReports(t)
	reports[0].Results = reports[0].Results[:1]
	if page := htmlOf(t, s, reports); strings.Count(page, "not run") < len(s.Cases)-1 {
		t.Error("cases without a result are not shown as not run")
	}
	elements(t, htmlOf(t, s, nil))
}

// TestHTMLFoldsLongPayloads tests that a large payload makes the HTML report only a little larger.
func TestHTMLFoldsLongPayloads(t *testing.T) {
	s, reports := sampleReports(t)
	before := len(htmlOf(t, s, reports))
	const size = 500_000
	header := binary.BigEndian.AppendUint32([]byte("\x00RES\x00\x00\x00\x11"), size)
	long := playCase(t, s.Cases[0], string(header)+strings.Repeat("<0>", size)[:size])
	reports[1].Results[0] = conform.Result{Case: s.Cases[0], Verdict: verdict.Failed, Note: long.Failure.Error(), Play: long}
	if grown := len(htmlOf(t, s, reports)) - before; grown < 500 || grown > 10_000 {
		t.Errorf("half a megabyte of payload makes the page %d bytes longer", grown)
	}
}

// probe is a page that loads the report in frames of two widths, and in one frame without scripts, and records what the
// frames show.
const probe = `<!doctype html>
<iframe id="narrow" src="/page#case-gearman.report.failed" style="width: 360px; height: 800px; border: 0"></iframe>
<iframe id="wide" src="/page#rule-gearman.echo.same-data" style="width: 1400px; height: 900px; border: 0"></iframe>
<iframe id="bare" sandbox="allow-same-origin" src="/page#case-gearman.report.failed" style="width: 360px; height: 800px; border: 0"></iframe>
<pre id="seen"></pre>
<script>
addEventListener("load", function () {
  var seen = {};
  function see(id, scripted, done) {
    var win = document.getElementById(id).contentWindow, doc = win.document, root = doc.documentElement;
    var visible = function (e) { return e.checkVisibility(); };
    var body = doc.getElementById("case-gearman.report.failed");
    var at = doc.getElementById(win.location.hash.slice(1)), box = at.getBoundingClientRect();
    var s = seen[id] = {
      Width: root.clientWidth, Folded: root.scrollWidth,
      Opened: visible(at) && box.top >= 0 && box.top < root.clientHeight && at.open !== false,
      Conversation: body.querySelector("pre.conversation").textContent,
      Tools: visible(doc.querySelector("form"))
    };
    if (!scripted) {
      var other = doc.getElementById("case-gearman.report.non-strict");
      var was = visible(other);
      other.parentNode.querySelector("summary").click();
      s.Unfolds = !was && visible(other);
      return done();
    }
    doc.querySelector("button[value=open]").click();
    s.Unfolded = root.scrollWidth;
    var search = doc.querySelector("input[type=search]");
    var shown = function () {
      return Array.from(doc.querySelectorAll("details.case")).filter(visible).map(function (e) { return e.dataset.id; });
    };
    var type = function (text) {
      search.value = text;
      search.dispatchEvent(new win.Event("input", {bubbles: true}));
    };
    s.All = shown().length;
    type("REPORT.NON-STRICT");
    s.Found = shown();
    type("no such words");
    s.None = shown().length;
    type("");
    doc.querySelector("input[value=crashed]").click();
    s.Died = shown();
    s.Count = doc.querySelector("output").textContent;
    win.addEventListener("hashchange", function () {
      s.Again = visible(doc.getElementById("case-gearman.report.expected-failure"));
      done();
    });
    win.location.hash = "#case-gearman.report.expected-failure";
  }
  see("narrow", true, function () {
    see("wide", true, function () {
      see("bare", false, function () {
        document.getElementById("seen").textContent = JSON.stringify(seen);
      });
    });
  });
});
</script>
`

// inBrowser loads probe in a browser, with page at /page, and decodes into seen what the probe writes as JSON into its element
// "seen".
func inBrowser(t *testing.T, probe, page string, seen any) {
	t.Helper()
	browser := peers.Need(t, "chromium")
	mux := http.NewServeMux()
	for path, text := range map[string]string{"/": probe, "/page": page} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, text) })
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()

	// Not the folder of the test: the browser's helper processes may outlive the browser and still write there.
	home, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad",
		"--user-data-dir="+home, "--window-size=1600,1200", "--virtual-time-budget=5000", "--dump-dom", srv.URL)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	dom, err := cmd.Output()
	m := regexp.MustCompile(`(?s)<pre id="seen">(.+?)</pre>`).FindSubmatch(dom)
	if m == nil {
		t.Fatalf("the browser saw nothing: %v\n%s\n%s", err, dom, said.String())
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), seen); err != nil {
		t.Fatal(err)
	}
}

// TestHTMLInABrowser tests that the HTML report fits narrow and wide windows, opens the case that the address names,
// and can be searched and filtered in a browser, and that cases unfold without scripts.
func TestHTMLInABrowser(t *testing.T) {
	s, reports := sampleReports(t)
	var seen map[string]struct {
		Width, Folded, Unfolded, All, None int
		Opened, Tools, Again, Unfolds      bool
		Conversation, Count                string
		Found, Died                        []string
	}
	inBrowser(t, probe, htmlOf(t, s, reports), &seen)
	for id, width := range map[string]int{"narrow": 360, "wide": 1400, "bare": 360} {
		v := seen[id]
		if v.Width > width || v.Width < width-30 {
			t.Errorf("%s: the frame is %d wide", id, v.Width)
		}
		if v.Folded > v.Width || v.Unfolded > v.Width {
			t.Errorf("%s: the page is %d wide, unfolded %d, in a frame of %d", id, v.Folded, v.Unfolded, v.Width)
		}
		if !v.Opened || !strings.Contains(v.Conversation, "^^ differs") {
			t.Errorf("%s: what the address names is opened: %v; the conversation:\n%s", id, v.Opened, v.Conversation)
		}
		if id == "bare" {
			if v.Tools || !v.Unfolds {
				t.Errorf("without scripts the search is there: %v; a case unfolds: %v", v.Tools, v.Unfolds)
			}
			continue
		}
		if !v.Tools || v.All != len(s.Cases) || v.None != 0 {
			t.Errorf("%s: tools %v; %d of %d cases are there, %d of which match nothing", id, v.Tools, v.All, len(s.Cases), v.None)
		}
		if fmt.Sprint(v.Found) != "[gearman.report.non-strict]" || fmt.Sprint(v.Died) != "[gearman.report.crashed]" || v.Count != "1 of 16 cases" {
			t.Errorf("%s: the search found %v, the filter %v, said to be %q", id, v.Found, v.Died, v.Count)
		}
		if !v.Again {
			t.Errorf("%s: a link to a case that is filtered out does not show it", id)
		}
	}
}

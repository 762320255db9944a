package page_test

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/report"
	fuzzreport "jobwire/fuzz/report"
	"jobwire/internal/page"
	"jobwire/internal/peers"
	"jobwire/internal/version"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	loadreport "jobwire/loadgen/report"
	"jobwire/pcap"
	pcapreport "jobwire/pcap/report"
)

// all returns a page of each kind. Most of them are about runs without results.
func all(t *testing.T) map[string]string {
	t.Helper()
	run := func() *loadreport.Report {
		return &loadreport.Report{Head: version.NewHead(), Verdict: loadreport.Passed}
	}
	pages := map[string]string{}
	for name, write := range map[string]func(io.Writer) error{
		"conform": func(w io.Writer) error {
			return report.WriteHTML(w, &conform.Suite{Protocol: gearman.Protocol}, []*conform.Report{{Target: "server"}})
		},
		"fuzz": func(w io.Writer) error {
			return fuzzreport.WriteHTML(w, &fuzzreport.Report{Jobwire: version.Get(), Title: "Gearman", Findings: []*fuzzreport.Finding{{Name: "crash", Level: "critical"}}})
		},
		"run": func(w io.Writer) error { return format.HTML(w, run()) },
		"search": func(w io.Writer) error {
			return format.SearchHTML(w, &experiment.SearchReport{Head: version.NewHead(), LimitRange: &experiment.LimitRange{}})
		},
		"compare": func(w io.Writer) error {
			return format.ComparisonHTML(w, experiment.Compare([]experiment.Group{{Name: "a", Runs: []*loadreport.Report{run()}}, {Name: "b", Runs: []*loadreport.Report{run()}}}), 0.1)
		},
		"matrix": (&report.Matrix{}).WriteHTML,
		"capture": func(w io.Writer) error {
			p := pcapreport.New()
			return p.WriteHTML(w, "a.pcap", pcap.NewDecoder(pcap.Options{}, p.Add))
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		pages[name] = b.String()
	}
	return pages
}

var (
	styleElement      = regexp.MustCompile(`(?s)<style>\n(.*?)</style>`)
	heading           = regexp.MustCompile(`<h([1-6])`)
	externalReference = regexp.MustCompile(`(?i)\bsrc\s*=\s*["']?[^"'d#]|<link[^>]*\bhref\s*=\s*["']?[^"'d#]|@import|url\(`)
)

// lastSharedRule is the end of the style rules that all pages have. The rules of the kind of page follow.
const lastSharedRule = "a { color: inherit; text-decoration: none; }\n}\n"

// TestPagesShareStyle tests that the style sheets of all pages begin with the same rules.
func TestPagesShareStyle(t *testing.T) {
	shared := ""
	for name, page := range all(t) {
		style := styleElement.FindAllStringSubmatch(page, -1)
		if len(style) != 1 {
			t.Errorf("%s: expected 1 style element, got %d", name, len(style))
			continue
		}
		sheet, _, found := strings.Cut(style[0][1], lastSharedRule)
		if !found || shared != "" && sheet != shared {
			t.Errorf("%s: the page does not begin with the shared style sheet", name)
		}
		shared = sheet
	}
}

// TestPagesHaveTheSameFrame tests that all pages have the same form of head, header and end, and that the header has a
// verdict if the page is about one result.
func TestPagesHaveTheSameFrame(t *testing.T) {
	severalResults := []string{"compare", "matrix"}
	for name, page := range all(t) {
		for _, want := range []string{"<!doctype html>\n<html lang=\"en\">\n<head>", `<meta name="viewport" content="width=device-width, initial-scale=1">`,
			"</head>\n<body>\n<header>\n<h1>", "jobwire " + version.Number, "</body>\n</html>\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: expected %q", name, want)
			}
		}
		if !slices.Contains(severalResults, name) && !strings.Contains(page, `<p class="verdict `) {
			t.Errorf("%s: the header has no verdict", name)
		}
	}
}

// TestPagesAreComplete tests that no page refers to another file, and that the templates accept all values.
func TestPagesAreComplete(t *testing.T) {
	for name, page := range all(t) {
		if got := externalReference.FindString(page); got != "" {
			t.Errorf("%s: the page refers to another file: %s", name, got)
		}
		if strings.Contains(page, "ZgotmplZ") { // html/template writes this in place of an unsafe value
			t.Errorf("%s: the template refuses a value", name)
		}
	}
}

// TestHeadingsAreNested tests that each heading is at most one level below the one before it, and that only the first
// has level 1.
func TestHeadingsAreNested(t *testing.T) {
	for name, page := range all(t) {
		previous := "0"
		for _, h := range heading.FindAllStringSubmatch(page, -1) {
			level := h[1]
			if level > previous && level[0] != previous[0]+1 || previous != "0" && level == "1" {
				t.Errorf("%s: a heading of level %s follows one of level %s", name, level, previous)
			}
			previous = level
		}
	}
}

// TestStackedTable tests in a browser that a table whose rows are stacked has no column outside of the window of a phone.
func TestStackedTable(t *testing.T) {
	t.Parallel()
	browser := peers.Need(t, "chromium")
	var b strings.Builder
	text := `{{template "head" .}}<div class="panel"><div class="scroll"><table class="stacked"><thead><tr><th>job<th>anomaly</thead>
<tr><td>H:a-host-with-a-long-name.example.org:1000<td class="words" data-name="function">resize-the-pictures-of-customers<td class="words">a worker got the job twice
</table></div></div>`
	if err := template.Must(page.New(nil).Parse(text)).Execute(&b, page.Head{Title: "stacked"}); err != nil {
		t.Fatal(err)
	}
	probe := `<!doctype html><iframe width="%d" srcdoc="%s"></iframe><p id="seen"></p><script>
onload = () => { const box = document.querySelector("iframe").contentDocument.querySelector(".scroll"); document.getElementById("seen").textContent = box.scrollWidth - box.clientWidth; };</script>`
	file := filepath.Join(t.TempDir(), "probe.html")
	if err := os.WriteFile(file, fmt.Appendf(nil, probe, 390, html.EscapeString(b.String())), 0o644); err != nil {
		t.Fatal(err)
	}
	dom, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`<p id="seen">([^<]*)</p>`).FindSubmatch(dom); m == nil || string(m[1]) != "0" {
		t.Errorf("the table is wider than the window by %q pixels", m)
	}
}

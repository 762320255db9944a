package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/internal/peers"
)

var built = sync.OnceValues(func() (map[string][]byte, error) { return build(root) })

func files(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	linked  = regexp.MustCompile(`\s(?:href|src|action)="([^"]*)"`)
	anchor  = regexp.MustCompile(`\sid="([^"]*)"`)
	fetched = regexp.MustCompile(`<(?:script|link|img|iframe)[^>]*\s(?:href|src)="(?:[a-z]+:)?//|@import|url\(|fetch\(|XMLHttpRequest`)
)

// TestLinks tests that each link leads to a file of the site or to another site, that each anchor exists, and that no page
// fetches anything from another site.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := files(t)
	anchors := map[string]map[string]bool{}
	for name, data := range all {
		anchors[name] = map[string]bool{}
		for _, m := range anchor.FindAllSubmatch(data, -1) {
			id := html.UnescapeString(string(m[1]))
			if anchors[name][id] && strings.HasSuffix(name, ".html") {
				t.Errorf("%s: two elements have the ID %s", name, id)
			}
			anchors[name][id] = true
		}
	}
	pages, links := 0, 0
	for name, data := range all {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		pages++
		if m := fetched.Find(data); m != nil {
			t.Errorf("%s fetches something: %s", name, m)
		}
		for _, m := range linked.FindAllSubmatch(data, -1) {
			links++
			u, err := url.Parse(html.UnescapeString(string(m[1])))
			switch {
			case err != nil:
				t.Errorf("%s: %v", name, err)
				continue
			case u.Scheme != "":
				continue
			}
			target := name
			if u.Path != "" {
				target = path.Join(path.Dir(name), u.Path)
			}
			if all[target] == nil {
				t.Errorf("%s: %s does not exist", name, m[1])
			} else if u.Fragment != "" && !anchors[target][u.Fragment] {
				t.Errorf("%s: %s: no such anchor", name, m[1])
			}
		}
	}
	t.Logf("%d pages, %d links", pages, links)
	if pages < 800 || links < 10000 {
		t.Errorf("only %d pages with %d links", pages, links)
	}
}

// TestPages tests that findings and rules have their pages at addresses that do not change, and what these pages contain.
func TestPages(t *testing.T) {
	t.Parallel()
	all := files(t)
	for name, texts := range map[string][]string{
		"index.html": {"<h1>jobwire</h1>", "docs/tasks/test-a-server.html"},
		"rules/gearman.echo.same-data/index.html":    {"MUST", "gearman.echo.client", "including empty and binary data"},
		"findings/gearmand-packet-type/index.html":   {"critical", "gearmand 1.1.20", `<span class="a">Client</span>`, "../../rules/gearman.packet.type-known/index.html"},
		"rules/gearman.packet.type-known/index.html": {"Interpretation", "../../findings/gearmand-packet-type/index.html"},
		"findings/index.html":                        {"gearmand-packet-type/index.html", `id="findings-by-severity"`},
		"docs/protocols/gearman.html":                {`id="gearman.echo.same-data"`},
		"docs/matrix.html":                           {"../findings/gearmand-packet-type/index.html"},
		"search-index.js":                            {`"u":"rules/gearman.echo.same-data/index.html"`, `"u":"docs/notation.html#two-forms"`},
	} {
		for _, text := range texts {
			if !bytes.Contains(all[name], []byte(text)) {
				t.Errorf("%s: expected %q", name, text)
			}
		}
	}
}

// probe loads pages in frames, and checks them with axe.
const probe = `<!doctype html><title>probe</title><pre id="seen"></pre><script>
const seen = [], pages = %s;
async function see(page, width) {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 900; frame.style.border = 0; frame.src = "/" + page;
  document.body.append(frame);
  await new Promise((done) => frame.onload = done);
  const win = frame.contentWindow, doc = win.document, script = doc.createElement("script");
  const result = { page, width, dark: win.matchMedia("(prefers-color-scheme: dark)").matches, wide: doc.documentElement.scrollWidth, problems: [] };
  const list = doc.querySelector(".sortable");
  if (list) {
    const select = list.querySelector("select"), shown = () => [...list.querySelectorAll("tbody tr")].filter((r) => !r.hidden).map((r) => r.id);
    select.selectedIndex = 1; select.dispatchEvent(new win.Event("change"));
    result.shown = shown().length;
    select.selectedIndex = 0; select.dispatchEvent(new win.Event("change"));
    const button = list.querySelectorAll("th button")[1], before = shown();
    button.click();
    result.sorted = button.parentElement.getAttribute("aria-sort") === "ascending" && String(before) !== String(shown());
  }
  if (doc.getElementById("results")) result.found = [...doc.querySelectorAll("#results a")].map((a) => a.getAttribute("href"));
  script.src = "/axe.js";
  await new Promise((done) => { script.onload = done; doc.head.append(script); });
  for (const v of (await win.axe.run(doc, { resultTypes: ["violations"] })).violations) {
    result.problems.push(v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | "));
  }
  seen.push(result);
  frame.remove();
}
onload = async function () {
  for (const [page, width] of pages) await see(page, width);
  document.getElementById("seen").textContent = JSON.stringify(seen);
};
</script>`

// TestInABrowser tests pages of each kind in a browser at the widths of a phone and a desktop, light and dark: axe finds no
// problem of accessibility, no page is wider than the window, lists can be filtered and sorted, and the search finds a rule.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	browser, modules := peers.Need(t, "chromium"), peers.NodeModules(t, filepath.Join(root, "tools/node"), "axe-core")
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	all := files(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/axe.js", func(w http.ResponseWriter, r *http.Request) { w.Write(axe) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		data := all[strings.TrimPrefix(r.URL.Path, "/")]
		if data == nil {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, r.URL.Path, time.Time{}, bytes.NewReader(data))
	})
	pages := []string{"index.html", "findings/gearmand-packet-type/index.html", "findings/index.html", "rules/gearman.echo.same-data/index.html",
		"docs/notation.html", "search.html?q=same-data"}
	if !testing.Short() {
		pages = append(pages, "docs/index.html", "rules/index.html", "docs/protocols/danga.html", "docs/tasks/test-a-server.html", "docs/performance.html")
	}
	for _, scheme := range []string{"light", "dark"} {
		mux.HandleFunc("/"+scheme, func(w http.ResponseWriter, r *http.Request) {
			var visits [][2]any
			for i, p := range pages {
				for k, width := range []int{390, 1400} {
					if !testing.Short() || (i+k)%2 == 0 == (scheme == "light") { // in the short form each page is seen twice
						visits = append(visits, [2]any{p, width})
					}
				}
			}
			list, _ := json.Marshal(visits)
			fmt.Fprintf(w, probe, list)
		})
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, scheme := range []string{"light", "dark"} {
		for _, s := range visit(t, browser, srv.URL+"/"+scheme, scheme == "dark") {
			at := fmt.Sprintf("%s, %d wide, %s", s.Page, s.Width, scheme)
			for _, problem := range s.Problems {
				t.Errorf("%s: %s", at, problem)
			}
			if s.Wide > s.Width {
				t.Errorf("%s: the page is %d wide", at, s.Wide)
			}
			if s.Dark != (scheme == "dark") {
				t.Errorf("%s: the page is dark: %v", at, s.Dark)
			}
			if strings.HasPrefix(s.Page, "findings/index") && (s.Shown != 9 || !s.Sorted) {
				t.Errorf("%s: the list shows %d critical findings; sorted: %v", at, s.Shown, s.Sorted)
			}
			if strings.HasPrefix(s.Page, "search") && !slices.Contains(s.Found, "rules/gearman.echo.same-data/index.html") {
				t.Errorf("%s: found %v", at, s.Found)
			}
		}
	}
}

type seen struct {
	Page        string
	Width, Wide int
	Dark        bool
	Problems    []string
	Shown       int
	Sorted      bool
	Found       []string
}

// visit loads the address in a browser, and returns what the probe writes.
func visit(t *testing.T, browser, address string, dark bool) (all []seen) {
	t.Helper()
	// Not the folder of the test: the browser's helper processes may outlive the browser and still write there.
	home, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	scheme := "1"
	if dark {
		scheme = "0"
	}
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad",
		"--user-data-dir="+home, "--window-size=1600,1200", "--virtual-time-budget=120000", "--blink-settings=preferredColorScheme="+scheme, "--dump-dom", address)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	dom, err := cmd.Output()
	m := regexp.MustCompile(`(?s)<pre id="seen">(.+?)</pre>`).FindSubmatch(dom)
	if m == nil {
		t.Fatalf("the browser saw nothing: %v\n%.2000s\n%s", err, dom, said.String())
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReadme tests that README.md is short, and that its figures are those of the page about all servers and of the findings.
func TestReadme(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	readme, matrix := read("README.md"), read("docs/matrix.html")
	if n := strings.Count(readme, "\n"); n > 120 {
		t.Errorf("README.md has %d lines", n)
	}
	if n := strings.Count(read("docs/findings.md"), "\n#### "); !strings.Contains(readme, fmt.Sprintf("[%d findings]", n)) {
		t.Errorf("README.md: there are %d findings", n)
	}
	if n := len(read("docs/images/recording.svg")); n > 60_000 {
		t.Errorf("the picture has %d bytes", n)
	}
	rows := regexp.MustCompile(`(?m)^\| ([^|]+?) ([0-9.]+)[^|]* \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(readme, -1)
	if len(rows) != 4 {
		t.Errorf("README.md: figures of %d servers", len(rows))
	}
	for _, m := range rows {
		_, row, _ := strings.Cut(matrix, "<strong>"+m[1]+"</strong> "+m[2]+"<br>")
		row, _, _ = strings.Cut(row, "</td><td class=\"tallies\"><span class=\"good\" title=")
		row = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, "")
		for i, outcome := range []string{"passed", "non-strict", "failed", "crashed"} {
			got := "0"
			if n := regexp.MustCompile(` (\d+) ` + outcome).FindStringSubmatch(row); n != nil {
				got = n[1]
			}
			if got != m[3+i] {
				t.Errorf("README.md: %s: %s %s, but %s in the matrix", m[1], m[3+i], outcome, got)
			}
		}
	}
}

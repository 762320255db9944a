package format_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobwire/internal/peers"
	"jobwire/internal/schemacheck"
	"jobwire/internal/version"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/internal/loadtest"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

func samplePage(t *testing.T) string {
	t.Helper()
	res := loadtest.Result()
	r := loadtest.Report(res)
	var f latency.HeatMap
	for i := range res.Series {
		f.Add(res.Series[i].Start, res.Series[i].Length, res.Series[i].Stages[latency.Total])
	}
	r.Heat = f.Heat()
	r.AfterWindow = 1234
	r.Stationary = &report.Stationarity{Figure: "rate", First: 1000, Second: 500, P: 0.01}
	r.Environment = &machine.Environment{Command: []string{"jobwire", "bench", "run", "gearman", "--slo", "p99<8ms"}}
	r.Check(loadtest.Objectives(t, "p99<8ms", "queued.p90<7ms", "rate>900"))
	r.Target = `</script><b>"a" & 'b'`
	var b bytes.Buffer
	if err := format.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sampleSearch has a trial with each result, and one with too few samples.
func sampleSearch(t *testing.T) *experiment.SearchReport {
	s := &experiment.SearchReport{Head: version.Head{SchemaVersion: version.Schema, ToolVersion: "1.2.3", Jobwire: version.Info{Version: "1.2.3"}}, Protocol: "gearman", Scenario: "cycle", Target: "a <b>server</b>", SLO: []string{"p99<5ms", "rate>10"}, Seconds: 5,
		Started: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), LimitRange: &experiment.LimitRange{Passed: 1000, Failed: 2000}}
	for _, tt := range []struct {
		rate  float64
		p99   latency.Micros
		state func(*report.Report)
	}{
		{1000, 2500, func(*report.Report) {}},
		{2000, 7500, func(*report.Report) {}},
		{4000, 9000, func(r *report.Report) {
			r.Requested, r.Saturated, r.Saturation = "4000", true, "the load generator submitted jobs late"
		}},
		{100, 0, func(*report.Report) {}},
	} {
		r := loadtest.Report(loadtest.Result())
		r.Rate, r.Latency["total"] = tt.rate, latency.Quantiles{Count: 500, P99: tt.p99}
		tt.state(r)
		r.Check(loadtest.Objectives(t, s.SLO...))
		s.Trials = append(s.Trials, experiment.TrialOf(r, tt.rate))
	}
	return s
}

func pageOf(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSearchPage tests that the page of a search shows the highest rate that passed and each trial, also after the
// search was saved and read.
func TestSearchPage(t *testing.T) {
	s := sampleSearch(t)
	saved := pageOf(t, func(w io.Writer) error { return format.JSON(w, s) })
	schemacheck.Check(t, "../../docs/schema/bench.json", []byte(saved))
	back := experiment.ParseSearch([]byte(saved))
	if back == nil {
		t.Fatalf("not read back:\n%s", saved)
	}
	page := searchPage(t, back)
	if page != searchPage(t, s) {
		t.Error("the saved search has another page")
	}
	bare := regexp.MustCompile(` (role|data-name)="[^"]*"`).ReplaceAllString(page, "")
	for _, want := range []string{
		"The highest rate that passed with p99&lt;5ms and rate&gt;10 is 1,000 jobs/s (1 trial: 1 passed); the lowest that did not pass is 2,000 jobs/s (1 trial: 1 failed). The load generator was not the bottleneck.",
		`<td class="bad">failed<td>2,000<td>2,000<td>7.50 ms<td>2,000<td class="words">p99&lt;5ms: measured 7.50 ms`,
		`<td class="">invalid<td>4,000<td>4,000<td>9.00 ms<td>4,000<td class="words">the load generator submitted jobs late`,
		`<td class="">invalid<td>100<td>100<td>-<td>100<td`,
		"a &lt;b&gt;server",
	} {
		if !strings.Contains(bare, want) {
			t.Errorf("the page lacks %q:\n%s", want, bare)
		}
	}
	for _, other := range []string{"{}", "[]", `{"protocol": "gearman", "latency_us": {}}`, "x"} {
		if experiment.ParseSearch([]byte(other)) != nil {
			t.Errorf("%s was taken for a search", other)
		}
	}
}

func searchPage(t *testing.T, s *experiment.SearchReport) string {
	return pageOf(t, func(w io.Writer) error { return format.SearchHTML(w, s) })
}

// comparePage returns the page of a comparison of three servers.
func comparePage(t *testing.T, tolerance float64) string {
	c := experiment.Compare([]experiment.Group{{Name: "old", Runs: loadtest.Rates(100, 110, 90, 105, 95, 100)},
		{Name: "new", Runs: loadtest.Rates(210, 220, 190, 200, 205, 195)}, {Name: "slow", Runs: loadtest.Rates(50, 52, 48, 50, 51, 49)}})
	return pageOf(t, func(w io.Writer) error { return format.ComparisonHTML(w, c, tolerance) })
}

// TestComparePage tests that the page of a comparison shows the ratios of all figures, and which are better or worse
// than the tolerance allows.
func TestComparePage(t *testing.T) {
	page := comparePage(t, 0.05)
	for _, want := range []string{
		"gearman cycle: old, new and slow compared",
		`<b>new</b> compared with old: <span class="good">jobs/s 2.02 times (better)</span>; <span class="">CPU per job, target 1.00 times (within 5 %)</span>`,
		`<span class="bad">jobs/s 0.50 times (worse)</span>`,
		"<td>jobs/s<td>100<td>203<td>2.02<td>1.90 to 2.16<td>0.002",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// TestPageIsSelfContained tests that the pages of bench load nothing from elsewhere, show the figures of the run, and
// show the name of a target as text and not as markup.
func TestPageIsSelfContained(t *testing.T) {
	page := samplePage(t)
	for _, want := range []string{"1,000", "512 job requests each, 1 function; closed loop, window 128", "5.50 ms", "✓ passed", "none lost", "15.0 us", "1,234 jobs finished after the measurement", "jobwire 1.2.3",
		"<code>jobwire bench run gearman --slo &#39;p99&lt;8ms&#39;</code>", `<p class="fair">Trend: the rate changed during the run: 1,000 jobs/s in the first half`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	compared := comparePage(t, 0.1)
	for _, page := range []string{page, searchPage(t, sampleSearch(t)), compared} {
		if found := regexp.MustCompile(`(?i)(src|href)\s*=\s*"?[^"d]|@import|url\(`).FindString(page); found != "" {
			t.Errorf("the page fetches something: %s", found)
		}
	}
	if strings.Contains(page, "</script><b>") {
		t.Error("a target's name is taken for markup")
	}
}

// TestPageDrawsItsFiguresInABrowser tests in a browser that the scripts of the pages draw all figures. With -short, it tests one of
// four pages, because the browser takes seconds to start.
func TestPageDrawsItsFiguresInABrowser(t *testing.T) {
	t.Parallel()
	browser := peers.Need(t, "chromium")
	run, search, compared := drawn(t, browser, samplePage(t)), "", ""
	if !testing.Short() {
		var none bytes.Buffer
		if err := format.HTML(&none, &report.Report{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(drawn(t, browser, none.String()), "no data"); n != 5+2 { // 2: the script has the text twice
			t.Errorf("of a run without jobs, %d figures say that there are no data", n-2)
		}
		search = drawn(t, browser, searchPage(t, sampleSearch(t)))
		compared = drawn(t, browser, comparePage(t, 0.1))
	}
	const limit = `class="limit"`
	for _, tt := range []struct {
		page, id, mark string
		count          int // -1: at least one
	}{
		{run, "spectrum", "<path", 4},
		{run, "spectrum", limit, 2},
		{run, "spectrum", ">queued.p90&lt;7ms<", 1},
		{run, "rate", "<path", 1},
		{run, "rate", limit, 1},
		{run, "depth", "<path", 1},
		{run, "depth", limit, 0},
		{run, "latency", "<path", -1},
		{run, "latency", limit, 1},
		{run, "latency", ">p99&lt;8ms<", 1},
		{run, "heat", "<canvas", 1},
		{search, "objective0", limit, 1},
		{search, "objective0", `class="mark passed"`, 2}, // one is in the legend
		{search, "objective0", `class="mark failed"`, 2},
		{search, "objective0", `class="mark invalid"`, 2},
		{search, "objective0", "too few samples: 1 of 4", 1},
		{search, "objective1", `class="mark invalid"`, 3},
		{compared, "ratios0", "<circle", 5},
		{compared, "ratios0", "2.02 times, better", 1},
		{compared, "ratios1", "0.50 times, worse", 1},
		{compared, "ratios1", limit, 10},
	} {
		if tt.page == "" {
			continue // with -short
		}
		_, rest, _ := strings.Cut(tt.page, `id="`+tt.id+`"`)
		rest, _, _ = strings.Cut(rest, "</figure>")
		if n := strings.Count(rest, tt.mark); n != tt.count && (tt.count >= 0 || n == 0) {
			t.Errorf("%s has %s %d times, want %d:\n%s", tt.id, tt.mark, n, tt.count, rest)
		}
	}
}

// drawn returns the HTML of a page after the browser has executed its script.
func drawn(t *testing.T, browser, page string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	dom, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(dom)
}

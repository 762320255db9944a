package format_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/internal/schemacheck"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/internal/loadtest"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares an output with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: -update writes it anew; got\n%s\nwant\n%s", file, got, want)
	}
}

// TestReportsMatchGoldenFiles tests that the reports in each format are the same as the golden files, and that the JSON
// matches the published schema.
func TestReportsMatchGoldenFiles(t *testing.T) {
	bad := loadtest.Result()
	bad.Account.Lost, bad.Account.Redelivered, bad.Account.First = 3, 12, "# Worker 2: the payload is not one that was sent\nJob Server -> Worker 2: JOB_ASSIGN H:1 f x\n"
	broken := loadtest.Report(bad)
	broken.Check(loadtest.Objectives(t, "queued.p99<2ms"))

	open := loadtest.Result()
	open.Config.Rate = &schedule.Schedule{Steps: []schedule.Step{{From: 1000, To: 1000}}, Poisson: true}
	open.Late, open.Account.Skipped = latency.Quantiles{Count: 3000, Mean: 3000, P50: 2000, P99: 8000, Max: 9000}, 5

	overloaded := loadtest.Overloaded()

	for _, tt := range []struct {
		file  string
		write func(io.Writer, *report.Report) error
		r     *report.Report
	}{
		{"passed.txt", format.Text, loadtest.Report(loadtest.Result())},
		{"broken.txt", format.Text, broken},
		{"open.txt", format.Text, loadtest.Report(open)},
		{"overloaded.txt", format.Text, loadtest.Report(overloaded)},
		{"overloaded.csv", format.CSV, loadtest.Report(overloaded)},
		{"overloaded.json", format.JSON[*report.Report], loadtest.Report(overloaded)},
		{"overloaded.prom", format.Prometheus, loadtest.Report(overloaded)},
		{"passed.json", format.JSON[*report.Report], loadtest.Report(loadtest.Result())},
		{"passed.csv", format.CSV, loadtest.Report(loadtest.Result())},
		{"passed.bench", format.GoBench, loadtest.Report(loadtest.Result())},
		{"broken.prom", format.Prometheus, broken},
	} {
		var b bytes.Buffer
		if err := tt.write(&b, tt.r); err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		golden(t, tt.file, b.Bytes())
		if strings.HasSuffix(tt.file, ".json") {
			schemacheck.Check(t, "../../docs/schema/bench.json", b.Bytes())
		}
	}
}

// TestJSONHasTheDocumentedKeys tests the JSON keys that other programs rely on, with null for percentiles that have
// too few samples.
func TestJSONHasTheDocumentedKeys(t *testing.T) {
	res := loadtest.Result()
	h := latency.New()
	for range 50 {
		h[latency.Total].RecordValue(1e6)
	}
	res.Latency[latency.Total] = h[latency.Total]
	var b bytes.Buffer
	if err := format.JSON(&b, loadtest.Report(res)); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(`jobs seconds rate lost duplicated corrupted redelivered latency_us.created.p50 latency_us.queued.p90
		latency_us.run.p99 latency_us.total.p99_9 latency_us.total.max cpu_us_per_job.generator cpu_us_per_job.target`) {
		v, ok := any(got), true
		for key := range strings.SplitSeq(path, ".") {
			if v, ok = v.(map[string]any)[key]; !ok {
				t.Errorf("there is no %s", path)
				break
			}
		}
		if isNull := ok && v == nil; isNull != (path == "latency_us.total.p99_9") {
			t.Errorf("%s is %v", path, v)
		}
	}
}

// TestSavedReportsAreReadBack tests that a saved report is the same after it has been read, and that a file with
// missing keys or values out of range is rejected.
func TestSavedReportsAreReadBack(t *testing.T) {
	r := loadtest.Report(loadtest.Result())
	var b bytes.Buffer
	if err := format.JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	saved := b.String()
	all, err := report.ReadReports(&b)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	var again bytes.Buffer
	if err := format.JSON(&again, all[0]); err != nil || again.String() != saved {
		t.Errorf("read back and saved again, it is\n%s\nwas\n%s", again.String(), saved)
	}
	for text, want := range map[string]string{
		`{"cases": []}`:    "the keys protocol and latency_us",
		`{"runs": []}`:     "a comparison without runs",
		`{"runs": [null]}`: "the keys protocol and latency_us",
		`{"protocol": "gearman", "latency_us": {"total": {"max": 1e308}}}`:                    "latency_us.total.max: 1e+308 is out of range",
		`{"protocol": "gearman", "latency_us": {}, "seconds": 5e-324}`:                        "seconds: 5e-324 is out of range",
		`{"protocol": "gearman", "latency_us": {}, "submitted": -1}`:                          "submitted: -1 is out of range",
		`{"protocol": "gearman", "latency_us": {}, "share": {"shares": 1001}}`:                "share.shares: 1001 is out of range",
		`{"protocol": "gearman", "latency_us": {}, "intervals": [{"start": -1, "jobs": -1}]}`: "intervals.jobs: -1 is out of range",
	} {
		if _, err := report.ReadReports(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestReportWithEnvironment tests that reports name the machine, and that reading a saved report restores the
// environment.
func TestReportWithEnvironment(t *testing.T) {
	r := loadtest.Report(loadtest.Result())
	r.Environment = &machine.Environment{Command: []string{"jobwire", "bench", "gearman"}, System: "linux 6.1.0", Processors: 2}
	var text, saved strings.Builder
	if err := format.Text(&text, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "machine    2 processors, linux 6.1.0\n") {
		t.Errorf("the machine is not in the text:\n%s", text.String())
	}
	if err := format.JSON(&saved, r); err != nil {
		t.Fatal(err)
	}
	back, err := report.ReadReports(strings.NewReader(saved.String()))
	if err != nil || len(back) != 1 || back[0].Environment.String() != r.Environment.String() {
		t.Errorf("%v: %+v", err, back)
	}
}

// TestComparison tests the text and the JSON of a comparison, and that its runs are read back.
func TestComparison(t *testing.T) {
	c := experiment.Compare([]experiment.Group{{Name: "old", Runs: loadtest.Rates(100, 110, 90, 105, 95, 100)},
		{Name: "new", Runs: loadtest.Rates(210, 220, 190, 200, 205, 195)}})
	var b bytes.Buffer
	if err := format.ComparisonText(&b, c); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", b.Bytes())

	b.Reset()
	if err := format.JSON(&b, c); err != nil {
		t.Fatal(err)
	}
	schemacheck.Check(t, "../../docs/schema/bench.json", b.Bytes())
	if back, err := report.ReadReports(&b); err != nil || len(back) != 12 {
		t.Errorf("%d runs were read back, %v", len(back), err)
	}
}

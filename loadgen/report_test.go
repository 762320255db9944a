package loadgen

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/schemacheck"
	"jobwire/internal/version"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/schedule"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleResult returns the result of a run of 3,000 jobs in two intervals of 1.5 s. The latencies of the four stages
// start at 1, 2, 3 and 4 ms and increase by 1 us with each job.
func sampleResult() *Result {
	res := &Result{
		Config: Config{Protocol: gearman.Protocol, Scenario: "cycle", Clients: 16, Workers: 4, Functions: 1, Window: 128, Grabs: 512,
			Size: Sizes{Lo: 16, Hi: 16}, Seed: 7, Interval: 1500 * time.Millisecond},
		Took: 3 * time.Second, Jobs: 3000, Latency: latency.New(),
		CPU: 30 * time.Millisecond, Pauses: 1500 * time.Microsecond, GCs: 2,
		Account: Account{Submitted: 3100},
	}
	for half := range 2 {
		now := latency.New()
		for i := range 1500 {
			for st := range now {
				now[st].RecordValue(int64(st+1)*int64(time.Millisecond) + int64(half*1500+i)*1000)
			}
		}
		iv := Interval{Start: time.Duration(half) * 1500 * time.Millisecond, Length: 1500 * time.Millisecond, Done: 1500, Depth: 2048, Stages: now}
		iv.Latency = now.Quantiles()
		res.Latency.Merge(now)
		res.Series = append(res.Series, iv)
	}
	return res
}

// sampleReport returns the report of a run on a machine on which no other programs run.
func sampleReport(res *Result) *Report {
	began := time.Date(2026, 5, 1, 12, 0, 0, 250e6, time.UTC)
	recorder := &Recorder{Target: "a server", began: began, ended: began.Add(res.Took), used: machine.Time{Program: 45 * time.Millisecond, Machine: 90 * time.Millisecond, Idle: -1, Threads: 1}}
	r := recorder.Report(res)
	r.Processors = 2
	r.Head = version.Head{SchemaVersion: version.Schema, ToolVersion: "1.2.3", Jobwire: version.Info{Version: "1.2.3", Go: "go1.26", Platform: "linux/amd64"}}
	return r
}

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

func TestReportsMatchGoldenFiles(t *testing.T) {
	bad := sampleResult()
	bad.Account.Lost, bad.Account.Redelivered, bad.Account.First = 3, 12, "# Worker 2: the payload is not one that was sent\nJob Server -> Worker 2: JOB_ASSIGN H:1 f x\n"
	broken := sampleReport(bad)
	objective, err := ParseObjective("queued.p99<2ms")
	if err != nil {
		t.Fatal(err)
	}
	broken.Check([]*Objective{objective})

	open := sampleResult()
	open.Config.Rate = &schedule.Schedule{Steps: []schedule.Step{{From: 1000, To: 1000}}, Poisson: true}
	open.Late, open.Account.Skipped = latency.Quantiles{Count: 3000, Mean: 3000, P50: 2000, P99: 8000, Max: 9000}, 5

	overloaded := overloadedResult()

	for _, tt := range []struct {
		file  string
		write func(io.Writer, *Report) error
		r     *Report
	}{
		{"passed.txt", WriteText, sampleReport(sampleResult())},
		{"broken.txt", WriteText, broken},
		{"open.txt", WriteText, sampleReport(open)},
		{"overloaded.txt", WriteText, sampleReport(overloaded)},
		{"overloaded.csv", WriteCSV, sampleReport(overloaded)},
		{"overloaded.json", WriteJSON, sampleReport(overloaded)},
		{"overloaded.prom", WritePrometheus, sampleReport(overloaded)},
		{"passed.json", WriteJSON, sampleReport(sampleResult())},
		{"passed.csv", WriteCSV, sampleReport(sampleResult())},
		{"passed.bench", WriteGoBench, sampleReport(sampleResult())},
		{"broken.prom", WritePrometheus, broken},
	} {
		var b bytes.Buffer
		if err := tt.write(&b, tt.r); err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		golden(t, tt.file, b.Bytes())
		if strings.HasSuffix(tt.file, ".json") {
			schemacheck.Check(t, "../docs/schema/bench.json", b.Bytes())
		}
	}
}

// TestJSONHasTheDocumentedKeys tests the JSON keys that other programs rely on, with null for percentiles that have
// too few samples.
func TestJSONHasTheDocumentedKeys(t *testing.T) {
	res := sampleResult()
	h := latency.New()
	for range 50 {
		h[latency.Total].RecordValue(1e6)
	}
	res.Latency[latency.Total] = h[latency.Total]
	var b bytes.Buffer
	if err := WriteJSON(&b, sampleReport(res)); err != nil {
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

func TestSavedReportsAreReadBack(t *testing.T) {
	r := sampleReport(sampleResult())
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	saved := b.String()
	all, err := ReadReports(&b)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	var again bytes.Buffer
	if err := WriteJSON(&again, all[0]); err != nil || again.String() != saved {
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
		if _, err := ReadReports(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSaturation(t *testing.T) {
	cores := func(generator, target, foreign float64) Cores { return Cores{&generator, &target, &foreign, nil} }
	for _, tt := range []struct {
		why       string
		cores     Cores
		late      latency.Micros
		saturated bool
	}{
		{"there was time left", cores(0.5, 0.6, 0.1), 10, false},
		{"the generator used all that it may", cores(2.95, 0.1, 0), 0, true},
		{"it was late", cores(0.1, 0.1, 0), 2500, true},
		{"others took the time", cores(0.05, 0.05, 1000), 0, false},
	} {
		r := &Report{Seconds: 1, Processors: 3, Cores: tt.cores}
		if tt.late > 0 {
			r.Pacing = &latency.Quantiles{Mean: tt.late}
		}
		cfg := sampleResult().Config
		if tt.late > 0 {
			cfg.Rate = &schedule.Schedule{Steps: []schedule.Step{{From: 1000, To: 1000}}}
		}
		if why := r.saturation(&cfg, 1); (why != "") != tt.saturated {
			t.Errorf("%s: saturated %q", tt.why, why)
		}
	}
}

func TestObjectives(t *testing.T) {
	r := sampleReport(sampleResult())
	for text, want := range map[string]Verdict{
		"p99<8ms": Passed, "p99<6ms": Failed, "queued.p50<4ms": Passed, "created.max<3ms": Failed, "rate>999": Passed, "rate>1k": Failed, "mean<6s": Passed,
	} {
		o, err := ParseObjective(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := o.check(r); got.Result != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, text := range []string{"", "p99", "p99<", "p99<5", "p99<-5ms", "p98<5ms", "wait.p99<5ms", "rate<5", "rate>0"} {
		if _, err := ParseObjective(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestObjectiveFailsWithoutPercentile tests that an objective is invalid if the run has too few samples for its
// percentile.
func TestObjectiveFailsWithoutPercentile(t *testing.T) {
	o, err := ParseObjective("p99.9<1h")
	if err != nil {
		t.Fatal(err)
	}
	j := o.check(sampleReport(sampleResult()))
	if j.Result != Invalid || !strings.Contains(j.Why, "too few samples") {
		t.Errorf("%+v", j)
	}
}

// TestReportWithEnvironment tests that reports name the machine, and that reading a saved report restores the
// environment.
func TestReportWithEnvironment(t *testing.T) {
	r := sampleReport(sampleResult())
	r.Environment = &machine.Environment{Command: []string{"jobwire", "bench", "gearman"}, System: "linux 6.1.0", Processors: 2}
	var text, saved strings.Builder
	if err := WriteText(&text, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "machine    2 processors, linux 6.1.0\n") {
		t.Errorf("the machine is not in the text:\n%s", text.String())
	}
	if err := WriteJSON(&saved, r); err != nil {
		t.Fatal(err)
	}
	back, err := ReadReports(strings.NewReader(saved.String()))
	if err != nil || len(back) != 1 || back[0].Environment.String() != r.Environment.String() {
		t.Errorf("%v: %+v", err, back)
	}
}

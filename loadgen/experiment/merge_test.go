package experiment_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/internal/schemacheck"
	"jobwire/loadgen"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/internal/loadtest"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

// saved returns what a process that ran one share has saved: its report, read back from JSON, and its histogram log.
func saved(t *testing.T, res *loadgen.Result, share loadgen.Share, began time.Time, objectives ...string) experiment.Part {
	t.Helper()
	var log, b bytes.Buffer
	l := latency.NewLog(&log)
	for i := range res.Series {
		l.Add(began.Add(res.Series[i].Start), res.Series[i].Length, res.Series[i].Stages)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	recorder := &report.Recorder{Share: share}
	recorder.Environment = &machine.Environment{Command: []string{"jobwire"}, Host: fmt.Sprintf("host-%d", share.Index), BootID: "one machine", Processors: 2}
	r := loadtest.Record(recorder, res, began, machine.Time{Program: -1, Machine: -1, Idle: -1})
	r.Check(loadtest.Objectives(t, objectives...))
	if err := format.JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	all, err := report.ReadReports(&b)
	if err != nil {
		t.Fatal(err)
	}
	return experiment.Part{Name: fmt.Sprintf("%d.json", share.Index), Report: all[0], Log: &log}
}

// resultOfShare returns the result of a share of a run with jobs jobs in three intervals. deal reports whether the
// i-th job of an interval belongs to the share.
func resultOfShare(jobs, clients int, deal func(i int) bool) *loadgen.Result {
	res := loadtest.Result()
	res.Config.Clients, res.Config.Interval, res.Series = clients, time.Second, nil
	res.Latency, res.Jobs = latency.New(), 0
	r := rand.New(rand.NewPCG(5, 6))
	for s := range 3 {
		iv := loadgen.Interval{Start: time.Duration(s) * time.Second, Length: time.Second, Stages: latency.New(), Depth: int64(clients)}
		for i := range jobs / 3 {
			ns := int64(1e6 * r.ExpFloat64() * float64(s+1))
			if !deal(i) {
				continue
			}
			for st := range iv.Stages {
				latency.Record(iv.Stages[st], ns/int64(len(latency.Stages)-st))
			}
			iv.Done++
		}
		res.Jobs += iv.Done
		res.Latency.Merge(iv.Stages)
		iv.Latency = iv.Stages.Quantiles()
		res.Series = append(res.Series, iv)
	}
	res.Account.Submitted = res.Jobs
	return res
}

// TestMergeOfSharesIsTheWhole tests that the merged reports of three processes are equal to the report of one process
// that ran the whole load.
func TestMergeOfSharesIsTheWhole(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 250e6, time.UTC)
	const jobs = 30000
	whole := saved(t, resultOfShare(jobs, 16, func(int) bool { return true }), loadgen.Share{}, began).Report
	var parts []experiment.Part
	for k, clients := range []int{5, 5, 6} {
		parts = append(parts, saved(t, resultOfShare(jobs, clients, func(i int) bool { return i%3 == k }), loadgen.Share{Index: k, Shares: 3, Run: "now-3"}, began.Add(time.Duration(k)*7*time.Millisecond)))
	}
	parts[0], parts[2] = parts[2], parts[0] // the order of the shares does not matter
	var out bytes.Buffer
	l := latency.NewLog(&out)
	got, err := experiment.Merge(parts, nil, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got.Jobs != whole.Jobs || got.Submitted != whole.Submitted || got.Clients != 16 || got.Workers != 12 || len(got.Merged.Missing) > 0 {
		t.Errorf("%d jobs of %d, %d clients, %d workers, %+v", got.Jobs, whole.Jobs, got.Clients, got.Workers, got.Merged)
	}
	for _, stage := range latency.Stages {
		if got.Latency[stage] != whole.Latency[stage] {
			a, b := got.Latency[stage], whole.Latency[stage]
			a.Mean, b.Mean = 0, 0 // means differ by rounding
			if a != b {
				t.Errorf("%s: %+v, not %+v", stage, got.Latency[stage], whole.Latency[stage])
			}
		}
	}
	if len(got.Series) != 3 {
		t.Fatalf("%d intervals", len(got.Series))
	}
	for i, e := range got.Series {
		if e.Jobs != whole.Series[i].Jobs || e.Depth != 16 || e.Latency["total"].P99 != whole.Series[i].Latency["total"].P99 {
			t.Errorf("interval %d: %+v, not %+v", i, e, whole.Series[i])
		}
	}
	if n := strings.Count(out.String(), "Tag="); n != 3*len(latency.Stages) {
		t.Errorf("the merged log has %d lines", n)
	}
}

// fourShares returns the results of four shares of a run.
func fourShares(t *testing.T, began time.Time, objectives ...string) (all []experiment.Part) {
	for i := range 4 {
		res := resultOfShare(3000, 4, func(k int) bool { return k%4 == i })
		all = append(all, saved(t, res, loadgen.Share{Index: i, Shares: 4, Run: loadgen.RunID(began, 4)}, began, objectives...))
	}
	return all
}

// TestMergeRefuses tests that Merge returns an error that says why if there is no share, a share is given twice, a
// whole run is given, or a log belongs to another run.
func TestMergeRefuses(t *testing.T) {
	began := time.Now()
	all := fourShares(t, began)
	whole := saved(t, resultOfShare(3000, 4, func(int) bool { return true }), loadgen.Share{}, began)
	wrongLog, again := fourShares(t, began)[1], fourShares(t, began)[1]
	wrongLog.Log = strings.NewReader("")
	again.Name = "again.json"
	for _, tt := range []struct {
		parts []experiment.Part
		why   string
	}{
		{nil, "got none"},
		{[]experiment.Part{whole}, "the result of a whole load"},
		{[]experiment.Part{all[1], again}, "1.json and again.json are both the result of share 1"},
		{[]experiment.Part{all[0], wrongLog}, "a log does not belong to its result"},
	} {
		if _, err := experiment.Merge(tt.parts, nil, nil); err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%v, want %q", err, tt.why)
		}
	}
}

// TestMergeWithoutAShare merges three shares of four: the report has the jobs of the three, and says in each format
// which share is missing.
func TestMergeWithoutAShare(t *testing.T) {
	all := fourShares(t, time.Now())
	want := all[0].Report.Jobs + all[1].Report.Jobs + all[3].Report.Jobs
	m, err := experiment.Merge([]experiment.Part{all[3], all[0], all[1]}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Jobs != want || m.Latency["total"].Count != want || m.Verdict != report.Invalid {
		t.Errorf("%d jobs, %d latencies, verdict %s; want %d, invalid", m.Jobs, m.Latency["total"].Count, m.Verdict, want)
	}
	for _, write := range []func(io.Writer, *report.Report) error{format.Text, format.HTML} {
		var b strings.Builder
		if err := write(&b, m); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"3 of 4 shares", "share 3 (host-3): 750 jobs", "the results of share 2 of 4 are missing"} {
			if !strings.Contains(b.String(), text) {
				t.Errorf("the report lacks %q:\n%.1500s", text, b.String())
			}
		}
	}
	var b strings.Builder
	if err := format.JSON(&b, m); err != nil || !strings.Contains(b.String(), "\"missing\": [\n      2\n    ]") {
		t.Errorf("%v, %.300s", err, b.String())
	}
	schemacheck.Check(t, "../../docs/schema/bench.json", []byte(b.String()))
	b.Reset()
	if err := format.JSON(&b, all[0].Report); err != nil {
		t.Fatal(err)
	}
	schemacheck.Check(t, "../../docs/schema/bench.json", []byte(b.String()))
}

// TestMergeOfTheNewestRun tests that Merge uses the files of the newest run, and lists those of an older run, which had
// more shares, as left out.
func TestMergeOfTheNewestRun(t *testing.T) {
	began := time.Now()
	newer := began.Add(time.Hour)
	older := fourShares(t, began)
	parts := []experiment.Part{older[3], older[2]}
	for i := range 2 {
		parts = append(parts, saved(t, resultOfShare(3000, 4, func(k int) bool { return k%2 == i }), loadgen.Share{Index: i, Shares: 2, Run: loadgen.RunID(newer, 2)}, newer))
	}
	m, err := experiment.Merge(parts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Jobs != 3000 || !m.Passed() || m.Merged.Run != loadgen.RunID(newer, 2) || len(m.Merged.LeftOut) != 2 || !strings.HasPrefix(m.Merged.LeftOut[0], "3.json: of another run") {
		t.Errorf("%d jobs, %s %v, %+v", m.Jobs, m.Verdict, m.Reasons, m.Merged)
	}
}

// TestMergeChecksObjectives tests that the objectives of the shares are checked for the whole load: the rate of each
// share is below the objective, but their sum is not.
func TestMergeChecksObjectives(t *testing.T) {
	all := fourShares(t, time.Now(), "rate>900", "p50<1us")
	for _, p := range all {
		if p.Report.Verdict != report.Passed || p.Report.Objectives[0].Result != report.Skipped {
			t.Errorf("share %d: %s, %+v", p.Report.Share.Index, p.Report.Verdict, p.Report.Objectives)
		}
	}
	m, err := experiment.Merge(all, loadtest.Objectives(t, "p50<1us", "max<1h"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, o := range m.Objectives {
		results = append(results, o.Objective+" "+string(o.Result))
	}
	if got := strings.Join(results, ", "); got != "rate>900 passed, p50<1us failed, max<1h passed" || m.Verdict != report.Failed {
		t.Errorf("%s; verdict %s", got, m.Verdict)
	}
}

// TestMergeKeepsNotes tests that the warnings of the shares are in the merged report, and that the load generators of
// one machine are not other programs to each other.
func TestMergeKeepsNotes(t *testing.T) {
	all := fourShares(t, time.Now())
	busy := func(v float64) *float64 { return &v }
	for i, p := range all {
		p.Report.Processors, p.Report.Window = 2, 2
		p.Report.Cores.Generator, p.Report.Cores.Foreign = busy(0.2), busy(0.6) // only the other three shares
		if i == 3 {
			p.Report.Environment.BootID = "another machine"
			p.Report.Cores.Foreign = busy(1)
			p.Report.Share.Late = 13
		} else {
			p.Report.Cores.Foreign = busy(0.4)
		}
	}
	m, err := experiment.Merge(all, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Processors != 4 {
		t.Errorf("%d processors, want those of two machines with two each", m.Processors)
	}
	want := []string{
		"share 3 (host-3): other programs used 1.00 of this machine's 2 processors, so the target may be faster",
		"share 3 (host-3): this share started 13.0 s after the start time of the run",
	}
	if got := m.Notes(); !slices.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
}

// TestMergeWithClocksApart merges the shares of two machines of which one clock is 1.5 s ahead of the other: no job is
// counted twice or lost, and each interval has the jobs of its time.
func TestMergeWithClocksApart(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var parts []experiment.Part
	for i := range 2 {
		offset := time.Duration(i) * 1500 * time.Millisecond
		parts = append(parts, saved(t, resultOfShare(6000, 4, func(k int) bool { return k%2 == i }), loadgen.Share{Index: i, Shares: 2, Run: "r"}, began.Add(offset)))
	}
	m, err := experiment.Merge(parts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	inSeries := int64(0)
	for _, e := range m.Series {
		inSeries += e.Jobs
	}
	if m.Jobs != 6000 || inSeries != 6000 || m.Latency["total"].Count != 6000 || m.Seconds != 4.5 {
		t.Errorf("%d jobs, %d in the intervals, %d latencies, %v s", m.Jobs, inSeries, m.Latency["total"].Count, m.Seconds)
	}
}

// TestDamagedLog tests that what is not a histogram log is an error, and that a byte order mark is skipped.
func TestDamagedLog(t *testing.T) {
	part := fourShares(t, time.Now())[0]
	log, err := io.ReadAll(part.Log)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"\x89PNG\r\n\x1a\n\x00":      "expected a histogram log, got a file that begins with 89 50 4e 47",
		"\xff\xfea\x00":              "the text is in UTF-16",
		"\xef\xbb\xbf" + string(log): "",
	} {
		part.Log = strings.NewReader(text)
		_, err := experiment.Merge([]experiment.Part{part}, nil, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %v; want %q", text, err, want)
		}
	}
}

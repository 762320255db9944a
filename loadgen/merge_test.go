package loadgen

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// saved returns the two outputs of a process that ran one share: its report, read back from JSON, and its histogram
// log.
func saved(t *testing.T, res *Result, share string, began time.Time) (*Report, *bytes.Buffer) {
	t.Helper()
	var log, b bytes.Buffer
	l := NewLog(&log)
	for i := range res.Series {
		l.add(began.Add(res.Series[i].Start), &res.Series[i])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	recorder := &Recorder{Target: "a server", Share: share, began: began, ended: began.Add(res.Took), used: processorTime{program: -1, machine: -1, idle: -1}}
	if err := WriteJSON(&b, recorder.Report(res)); err != nil {
		t.Fatal(err)
	}
	all, err := ReadReports(&b)
	if err != nil {
		t.Fatal(err)
	}
	return all[0], &log
}

// resultOfShare returns the result of a share of a run with jobs jobs in three intervals. deal reports whether the
// i-th job of an interval belongs to the share.
func resultOfShare(jobs, clients int, deal func(i int) bool) *Result {
	res := sampleResult()
	res.Config.Clients, res.Config.Interval, res.Series = clients, time.Second, nil
	res.Latency, res.Jobs = newHistograms(), 0
	r := rand.New(rand.NewPCG(5, 6))
	for s := range 3 {
		iv := Interval{Start: time.Duration(s) * time.Second, Length: time.Second, Stages: newHistograms(), Depth: int64(clients)}
		for i := range jobs / 3 {
			ns := int64(1e6 * r.ExpFloat64() * float64(s+1))
			if !deal(i) {
				continue
			}
			for st := range iv.Stages {
				iv.Stages[st].RecordValue(max(lowest, ns/int64(int(stageCount)-st)))
			}
			iv.Done++
		}
		res.Jobs += iv.Done
		res.Latency.merge(iv.Stages)
		iv.Latency = iv.Stages.quantiles()
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
	whole, _ := saved(t, resultOfShare(jobs, 16, func(int) bool { return true }), "", began)
	var parts []*Report
	var logs []io.Reader
	for k, clients := range []int{5, 5, 6} {
		part, log := saved(t, resultOfShare(jobs, clients, func(i int) bool { return i%3 == k }), fmt.Sprintf("%d/3", k+1), began.Add(time.Duration(k)*7*time.Millisecond))
		parts, logs = append(parts, part), append(logs, log)
	}
	parts[0], parts[2] = parts[2], parts[0] // the order of the shares does not matter
	var out bytes.Buffer
	l := NewLog(&out)
	got, err := Merge(parts, logs, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got.Jobs != whole.Jobs || got.Submitted != whole.Submitted || got.Clients != 16 || got.Workers != 12 || got.Share != "" {
		t.Errorf("%d jobs of %d, %d clients, %d workers, share %q", got.Jobs, whole.Jobs, got.Clients, got.Workers, got.Share)
	}
	for _, stage := range Stages {
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
	if n := strings.Count(out.String(), "Tag="); n != 3*len(Stages) {
		t.Errorf("the merged log has %d lines", n)
	}
}

func TestMergeRefusesWhatIsNotWhole(t *testing.T) {
	began := time.Now()
	share := func(s string) (*Report, *bytes.Buffer) {
		return saved(t, resultOfShare(3000, 8, func(int) bool { return true }), s, began)
	}
	for _, tt := range []struct {
		shares []string
		logs   int
		why    string
	}{
		{nil, 0, "got none"},
		{[]string{"1/2"}, 1, "part 2/2 of the load is missing"},
		{[]string{"1/2", "1/2"}, 2, "part 1/2 is named twice"},
		{[]string{"1/2", "2/3"}, 2, "not of the same run"},
		{[]string{"1/1", ""}, 2, "the result of a whole load"},
		{[]string{"1/2", "2/2"}, 1, "the log of one part of the load is missing"},
		{[]string{"1/2", "2/2"}, 0, "the log of one part of the load is missing"},
	} {
		var parts []*Report
		var logs []io.Reader
		for i, s := range tt.shares {
			p, log := share(s)
			parts = append(parts, p)
			if i < tt.logs {
				logs = append(logs, log)
			}
		}
		if _, err := Merge(parts, logs, nil); err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%v with %d logs: %v, want %q", tt.shares, tt.logs, err, tt.why)
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	rate, err := ParseSchedule("poisson:1000-9000/30s")
	if err != nil {
		t.Fatal(err)
	}
	whole := Config{Clients: 16, Workers: 7, Count: 1000003, Rate: rate, Kill: 6, Seed: 9, Prefix: "jobwire"}
	sum, seeds, names := Config{}, map[uint64]bool{}, map[string]bool{}
	peak := 0.0
	for i := 1; i <= 3; i++ {
		s, err := ParseShare(fmt.Sprintf("%d/3", i))
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Of(whole)
		if err != nil {
			t.Fatal(err)
		}
		sum.Clients += c.Clients
		sum.Workers += c.Workers
		sum.Count += c.Count
		sum.Kill += c.Kill
		peak += c.Rate.Steps[0].To
		seeds[c.Seed], names[c.Prefix] = true, true
	}
	if sum.Clients != 16 || sum.Workers != 7 || sum.Count != 1000003 || sum.Kill != 6 || peak != 9000 {
		t.Errorf("%+v, %v jobs/s", sum, peak)
	}
	if len(seeds) != 3 || len(names) != 3 {
		t.Errorf("seeds %v, names %v", seeds, names)
	}
	if _, err := (Share{1, 17}).Of(whole); err == nil {
		t.Error("17 processes share 16 clients")
	}
	for _, text := range []string{"", "1", "0/3", "4/3", "a/b", "1/2/3", "-1/2"} {
		if s, err := ParseShare(text); err == nil {
			t.Errorf("%q is taken, as %v", text, s)
		}
	}
}

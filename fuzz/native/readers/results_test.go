package readers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/fuzz/native"
	"jobwire/internal/verdict"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/latency"
	loadreport "jobwire/loadgen/report"
)

// The result and the histogram log of a share of a load.
const (
	shareResult = "fuzz/native/readers/testdata/share.json"
	shareLog    = "fuzz/native/readers/testdata/share.hlog"
)

var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

// values replace numbers in results: 0 leaves the result as it is.
var values = []string{"", "0", "-1", "1e308", "-1e308", "5e-324", "9223372036854775807",
	"1e9", "null", `"x"`, "[]", "1"}

// altered returns a result in which one of the numbers is replaced. Go's fuzzer itself rarely changes a digit.
func altered(src []byte, at uint16, value byte) []byte {
	all, by := number.FindAllIndex(src, -1), values[int(value)%len(values)]
	if by == "" || len(all) == 0 {
		return src
	}
	where := all[int(at)%len(all)]
	return slices.Concat(src[:where[0]], []byte(by), src[where[1]:])
}

// FuzzResult checks that a saved result of a load that is accepted can be shown in all formats, and that its JSON is
// the same after it has been read and written again.
func FuzzResult(f *testing.F) {
	for _, src := range append(sources(f, "loadgen/format/testdata/*.json"), sources(f, shareResult)...) {
		f.Add([]byte(src), uint16(0), byte(0))
	}
	f.Add([]byte(`{"runs":[{"protocol":"gearman","started":"2026-05-01T12:00:00Z","seconds":2,"jobs":4,"rate":2,`+
		`"latency_us":{"total":{"count":4,"mean":10,"max":12}}},`+
		`{"protocol":"danga","target":"b","latency_us":{},"interval_seconds":1,`+
		`"intervals":[{"start":0,"seconds":1,"jobs":4,"depth":1,"latency_us":{}}]}]}`), uint16(1), byte(1))
	f.Add([]byte(`{"protocol":"gearman","slo":["p99<5ms"],"seconds_per_trial":1,"passed_rate":100,`+
		`"failed_rate":110.5,"trials":[{"rate":100,"achieved":99.5,"passed":true,"why":"p99 1 ms"}]}`), uint16(2), byte(2))
	f.Fuzz(func(t *testing.T, src []byte, at uint16, value byte) {
		src = altered(src, at, value)
		var err error
		if over := native.Bounded(len(src), 256<<20, 64<<10, func() { err = showResult(src) }); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// showResult writes a result in all formats. It returns an error if a result that was accepted cannot be shown.
func showResult(src []byte) error {
	if s := experiment.ParseSearch(src); s != nil {
		err := errors.Join(format.SearchText(io.Discard, s.LimitRange), format.JSON(io.Discard, s),
			format.SearchHTML(io.Discard, s))
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
	}
	runs, err := loadreport.ReadReports(bytes.NewReader(src))
	if err != nil {
		return nil
	}
	for _, r := range runs {
		var first, second bytes.Buffer
		if err := format.JSON(&first, r); err != nil {
			return err
		}
		again, err := loadreport.ReadReports(bytes.NewReader(first.Bytes()))
		if err != nil {
			return err
		}
		if err := format.JSON(&second, again[0]); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			return fmt.Errorf("%v, the result\n%sis read as\n%s", err, first.Bytes(), second.Bytes())
		}
		for _, write := range []func(io.Writer, *loadreport.Report) error{
			format.Text, format.CSV, format.GoBench, format.Prometheus, format.HTML,
		} {
			if err := write(io.Discard, r); err != nil {
				return err
			}
		}
	}
	c := experiment.Compare([]experiment.Group{{Name: "a", Runs: runs}, {Name: "b", Runs: runs[:1]}})
	err = errors.Join(format.ComparisonText(io.Discard, c), format.JSON(io.Discard, c),
		format.ComparisonHTML(io.Discard, c, 0.1))
	if err != nil {
		return fmt.Errorf("comparison: %w", err)
	}
	if err := experiment.Baseline(runs[0], runs, 0.1); err != nil {
		return fmt.Errorf("a result differs from itself: %w", err)
	}
	return format.JSON(io.Discard, runs[0])
}

// FuzzMerge checks that a result of a share and its histogram log that are accepted are merged to a result that has the
// same number of latencies and can be shown.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(sources(f, shareResult)[0]), uint16(0), byte(0), []byte(sources(f, shareLog)[0]))
	f.Add([]byte(`{"protocol":"gearman","started":"2026-05-01T12:00:00Z","seconds":2,"latency_us":{},`+
		`"share":{"run":"r","shares":2,"index":1},"interval_seconds":1,`+
		`"intervals":[{"start":0,"seconds":1,"jobs":4,"depth":1,"latency_us":{}}]}`), uint16(1), byte(1),
		[]byte("#[Histogram log format version 1.3]\n"))
	f.Fuzz(func(t *testing.T, src []byte, at uint16, value byte, log []byte) {
		src, log = altered(src, at, value), altered(log, at, value>>4)
		runs, err := loadreport.ReadReports(bytes.NewReader(src))
		if err != nil || len(runs) != 1 {
			return
		}
		// A line of a log can announce a histogram of 55 MB.
		lines := bytes.Count(log, []byte("\n")) + 1
		var out bytes.Buffer
		var m *loadreport.Report
		read := func() {
			l := latency.NewLog(&out)
			m, err = experiment.Merge([]experiment.Part{{Name: "a", Report: runs[0], Log: bytes.NewReader(log)}}, nil, l)
			l.Close()
		}
		if over := native.Bounded(len(src)+len(log), (64+128*lines)<<20, 64<<10, read); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			return
		}
		for stage, q := range m.Latency {
			if want := runs[0].Latency[stage].Count; q.Count != want {
				t.Fatalf("stage %s: %d latencies, expected %d", stage, q.Count, want)
			}
		}
		for _, write := range []func(io.Writer, *loadreport.Report) error{
			format.Text, format.JSON[*loadreport.Report], format.HTML,
		} {
			if err := write(io.Discard, m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzMatrix checks that a result of conform that is accepted can be shown on the page of several servers.
func FuzzMatrix(f *testing.F) {
	for i, e := range catalog.All() {
		var b bytes.Buffer
		r := conform.Report{Protocol: e.Protocol, Target: "a server 1.2", Version: "1.2", Began: time.Unix(1777636800, 0)}
		cases := suites()[i].Cases
		for k, row := range verdict.Cases {
			r.Results = append(r.Results, conform.Result{Case: cases[k%len(cases)], Verdict: row.Verdict})
		}
		if err := report.WriteJSON(&b, []*conform.Report{&r}); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m := &report.Matrix{}
		var err, shown error
		read := func() {
			if err = m.Add(bytes.NewReader(src), ""); err == nil {
				shown = m.WriteHTML(io.Discard)
			}
		}
		if over := native.Bounded(len(src), 64<<20, 64<<10, read); over != nil {
			t.Fatal(over)
		}
		if shown != nil {
			t.Fatal(shown)
		}
	})
}

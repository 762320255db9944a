package loadgen

import (
	"bytes"
	"strings"
	"testing"

	"jobwire/internal/schemacheck"
)

// reportsWithRates returns reports with these rates in jobs per second.
func reportsWithRates(rates ...float64) []*Report {
	var all []*Report
	for _, v := range rates {
		r := sampleReport(sampleResult())
		r.Rate = v
		all = append(all, r)
	}
	return all
}

func TestCompareRatios(t *testing.T) {
	c := Compare([]Group{{"old", reportsWithRates(100, 110, 90, 105, 95, 100)}, {"new", reportsWithRates(210, 220, 190, 200, 205, 195)}})
	got := c.Targets[1].Ratios["rate"]
	if got.Ratio < 1.9 || got.Ratio > 2.2 || got.Low == nil || *got.Low > got.Ratio || *got.High < got.Ratio || *got.Low < 1.7 || *got.High > 2.4 {
		t.Errorf("%+v", got)
	}
	if same := c.Targets[1].Ratios["total_p50_us"]; same.Ratio != 1 || *same.Low != 1 || *same.High != 1 {
		t.Errorf("what is the same differs: %+v", same)
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", b.Bytes())

	b.Reset()
	if err := c.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	schemacheck.Check(t, "../docs/schema/bench.json", b.Bytes())
	if back, err := ReadReports(&b); err != nil || len(back) != 12 {
		t.Errorf("%d runs were read back, %v", len(back), err)
	}
}

// TestComparePairsTurns tests that the confidence interval of the ratio is narrow if the paired runs of both groups
// were slowed by the same factor.
func TestComparePairsTurns(t *testing.T) {
	c := Compare([]Group{{"a", reportsWithRates(100, 50, 80, 20, 90, 60)}, {"b", reportsWithRates(200, 100, 160, 40, 180, 120)}})
	if r := c.Targets[1].Ratios["rate"]; *r.Low < 1.99 || *r.High > 2.01 {
		t.Errorf("every turn was twice as fast, and the ratio is from %v to %v", *r.Low, *r.High)
	}
}

func TestCompareOfFewOrUnlikeRuns(t *testing.T) {
	odd := reportsWithRates(50)
	odd[0].Window = 1
	c := Compare([]Group{{"a", reportsWithRates(100)}, {"b", odd}})
	if r := c.Targets[1].Ratios["rate"]; r.Ratio != 0.5 || r.Low != nil {
		t.Errorf("%+v", r)
	}
	if notes := strings.Join(c.Notes(), "\n"); !strings.Contains(notes, "window is 1 in one run and 128 in the other") {
		t.Errorf("notes %q", notes)
	}
}

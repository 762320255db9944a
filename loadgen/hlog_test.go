package loadgen

import (
	"bytes"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestLogIsReadByTheLibrary tests that the HdrHistogram library reads all intervals and stages of a log, with their
// tags, times (to the millisecond) and values.
func TestLogIsReadByTheLibrary(t *testing.T) {
	res := sampleResult()
	var b bytes.Buffer
	log := NewLog(&b)
	began := time.Date(2026, 5, 1, 12, 0, 0, 250e6, time.UTC)
	for i := range res.Series {
		log.add(began.Add(res.Series[i].Start), &res.Series[i])
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	in := hdrhistogram.NewHistogramLogReader(&b)
	for i := range res.Series {
		for st, stage := range Stages {
			h, err := in.NextIntervalHistogram()
			if err != nil || h == nil {
				t.Fatalf("interval %d, %s: %v, %v", i, stage, h, err)
			}
			if !h.Equals(res.Series[i].Stages[st]) || h.Tag() != stage {
				t.Errorf("interval %d, %s: it came back as %q with %d values", i, stage, h.Tag(), h.TotalCount())
			}
			want := began.Add(res.Series[i].Start).UnixMilli()
			if d := h.StartTimeMs() - want; d < -1 || d > 1 {
				t.Errorf("interval %d began at %d, not %d", i, h.StartTimeMs(), want)
			}
			if d := h.EndTimeMs() - h.StartTimeMs() - 1500; d < -1 || d > 1 {
				t.Errorf("interval %d took %d ms", i, h.EndTimeMs()-h.StartTimeMs())
			}
		}
	}
	if h, err := in.NextIntervalHistogram(); h != nil || err != nil {
		t.Errorf("then came %v, %v", h, err)
	}
}

func TestLogTagsContainNoSeparators(t *testing.T) {
	for _, stage := range Stages {
		if bytes.ContainsAny([]byte(stage), ", \n") {
			t.Errorf("%q would break the log's reader", stage)
		}
	}
}

package latency

import (
	"bytes"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// length is the length of the intervals of sampleIntervals.
const length = 1500 * time.Millisecond

// sampleIntervals returns the histograms of two intervals with 1,500 jobs each. The latencies of the four stages start
// at 1, 2, 3 and 4 ms and increase by 1 us with each job.
func sampleIntervals() []Histograms {
	intervals := []Histograms{New(), New()}
	for i, stages := range intervals {
		for st, h := range stages {
			for k := range 1500 {
				Record(h, int64(st+1)*int64(time.Millisecond)+int64(i*1500+k)*1000)
			}
		}
	}
	return intervals
}

// TestLogIsReadByTheLibrary tests that the HdrHistogram library reads all intervals and stages of a log, with their
// tags, times (to the millisecond) and values.
func TestLogIsReadByTheLibrary(t *testing.T) {
	intervals := sampleIntervals()
	var b bytes.Buffer
	log := NewLog(&b)
	began := time.Date(2026, 5, 1, 12, 0, 0, 250e6, time.UTC)
	for i, stages := range intervals {
		log.Add(began.Add(time.Duration(i)*length), length, stages)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	in := hdrhistogram.NewHistogramLogReader(&b)
	for i, stages := range intervals {
		for st, stage := range Stages {
			h, err := in.NextIntervalHistogram()
			if err != nil || h == nil {
				t.Fatalf("interval %d, %s: %v, %v", i, stage, h, err)
			}
			if !h.Equals(stages[st]) || h.Tag() != stage {
				t.Errorf("interval %d, %s: it came back as %q with %d values", i, stage, h.Tag(), h.TotalCount())
			}
			want := began.Add(time.Duration(i) * length).UnixMilli()
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

// TestLogTagsContainNoSeparators tests that the names of stages, which are tags in a histogram log, contain no
// characters that separate the fields of the log.
func TestLogTagsContainNoSeparators(t *testing.T) {
	for _, stage := range Stages {
		if bytes.ContainsAny([]byte(stage), ", \n") {
			t.Errorf("%q would break the log's reader", stage)
		}
	}
}

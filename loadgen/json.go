package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jobwire/internal/textfile"
)

// Micros is a duration in microseconds. 0 means that it is not known, and is null in JSON.
type Micros float64

// Duration returns the duration, rounded to nanoseconds.
func (m Micros) Duration() time.Duration { return time.Duration(math.Round(float64(m) * 1e3)) }

// MarshalJSON writes a number with at most three decimals (nanoseconds), or null for 0.
func (m Micros) MarshalJSON() ([]byte, error) {
	v := math.Round(float64(m)*1e3) / 1e3
	if v == 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
}

// Quantiles are percentiles, mean and maximum of the latencies of one stage. Percentiles with too few samples are 0:
// fewer than ten samples would be above them.
type Quantiles struct {
	Count int64  `json:"count"` // number of samples
	Mean  Micros `json:"mean"`
	P50   Micros `json:"p50"`
	P90   Micros `json:"p90"`
	P95   Micros `json:"p95"`
	P99   Micros `json:"p99"`
	P999  Micros `json:"p99_9"`
	P9999 Micros `json:"p99_99"`
	Max   Micros `json:"max"`
}

// worse sets each value to the larger of the values of q and o, and adds up the counts.
func (q *Quantiles) worse(o *Quantiles) {
	q.Count += o.Count
	q.Mean, q.P50, q.P90, q.P95, q.P99 = max(q.Mean, o.Mean), max(q.P50, o.P50), max(q.P90, o.P90), max(q.P95, o.P95),
		max(q.P99, o.P99)
	q.P999, q.P9999, q.Max = max(q.P999, o.P999), max(q.P9999, o.P9999), max(q.Max, o.Max)
}

// minTail is the number of samples that must be greater than a percentile for the percentile to be reported.
const minTail = 10

// quantiles returns the percentiles of each stage, by the name of the stage.
func (h Histograms) quantiles() map[string]Quantiles {
	all := make(map[string]Quantiles, stageCount)
	for st, h := range h {
		all[Stages[st]] = quantilesOf(h)
	}
	return all
}

// quantilesOf returns the percentiles of a histogram of nanoseconds. Percentiles with too few samples are 0.
func quantilesOf(h *hdrhistogram.Histogram) Quantiles {
	n := h.TotalCount()
	if n == 0 {
		return Quantiles{}
	}
	us := func(ns int64) Micros { return Micros(float64(ns) / 1e3) }
	at := func(q float64) Micros {
		if float64(n)*(100-q)/100 < minTail {
			return 0
		}
		return us(h.ValueAtQuantile(q))
	}
	return Quantiles{n, us(int64(h.Mean())), at(50), at(90), at(95), at(99), at(99.9), at(99.99), us(h.Max())}
}

// WriteJSON writes the report as one JSON object.
func WriteJSON(w io.Writer, r *Report) error { return writeIndented(w, r) }

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// SavedResult is what a file with a result contains, for error messages.
const SavedResult = "a result that 'bench run --output' has saved"

// ReadReports reads JSON that WriteJSON or [Comparison.WriteJSON] has written. It returns one report, or the runs of
// the comparison.
func ReadReports(in io.Reader) ([]*Report, error) {
	var saved struct {
		Report
		Runs []*Report `json:"runs"`
	}
	switch err := json.NewDecoder(textfile.NewReader(in, SavedResult)).Decode(&saved); {
	case err == io.EOF:
		return nil, errors.New("the file is empty, so its run has not ended")
	case err != nil:
		return nil, fmt.Errorf("expected "+SavedResult+": %w", err)
	}
	if saved.Runs == nil {
		saved.Runs = []*Report{&saved.Report}
	}
	if len(saved.Runs) == 0 {
		return nil, errors.New("expected " + SavedResult + ", got a comparison without runs")
	}
	for _, r := range saved.Runs {
		if r == nil || r.Protocol == "" || r.Latency == nil {
			return nil, errors.New("expected " + SavedResult + ", with the keys protocol and latency_us")
		}
		if err := checkSaved(reflect.ValueOf(r).Elem()); err != nil {
			return nil, fmt.Errorf("expected "+SavedResult+": %w", err)
		}
	}
	return saved.Runs, nil
}

package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Micros is a time in microseconds. Zero means that it is not known, and is null in JSON.
type Micros float64

func micros(d time.Duration) Micros { return Micros(float64(d) / 1e3) }

// Duration is the time it is.
func (m Micros) Duration() time.Duration { return time.Duration(math.Round(float64(m) * 1e3)) }

// MarshalJSON writes at most three decimals: histograms know no more.
func (m Micros) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(m)*1e3)/1e3, 'f', -1, 64), nil
}

// Quantiles are the latencies of one stage. A percentile of too few samples is not known.
type Quantiles struct {
	Count int64  `json:"count"`
	Mean  Micros `json:"mean"`
	P50   Micros `json:"p50"`
	P90   Micros `json:"p90"`
	P95   Micros `json:"p95"`
	P99   Micros `json:"p99"`
	P999  Micros `json:"p99_9"`
	P9999 Micros `json:"p99_99"`
	Max   Micros `json:"max"`
}

// worse takes the worse of both for each figure.
func (q *Quantiles) worse(o *Quantiles) {
	q.Count += o.Count
	q.Mean, q.P50, q.P90, q.P95, q.P99 = max(q.Mean, o.Mean), max(q.P50, o.P50), max(q.P90, o.P90), max(q.P95, o.P95), max(q.P99, o.P99)
	q.P999, q.P9999, q.Max = max(q.P999, o.P999), max(q.P9999, o.P9999), max(q.Max, o.Max)
}

// minTail is how many samples must be greater than a percentile for it to be reported.
const minTail = 10

// quantiles returns the latencies of each stage.
func (h Histograms) quantiles() map[string]Quantiles {
	all := make(map[string]Quantiles, stageCount)
	for st, h := range h {
		all[Stages[st]] = quantilesOf(h)
	}
	return all
}

// quantilesOf returns the percentiles of a histogram of nanoseconds that enough samples carry.
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

// WriteJSON writes the report as one object.
func WriteJSON(w io.Writer, r *Report) error { return writeIndented(w, r) }

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// ReadReports reads what was saved: one report, or the runs of a comparison.
func ReadReports(in io.Reader) ([]*Report, error) {
	var saved struct {
		Report
		Runs []*Report `json:"runs"`
	}
	if err := json.NewDecoder(in).Decode(&saved); err != nil {
		return nil, fmt.Errorf("expected a result that 'bench run --output' has saved: %w", err)
	}
	if saved.Runs == nil {
		saved.Runs = []*Report{&saved.Report}
	}
	for _, r := range saved.Runs {
		if r.Protocol == "" || r.Latency == nil {
			return nil, errors.New("expected a result that 'bench run --output' has saved, with the keys protocol and latency_us")
		}
	}
	return saved.Runs, nil
}

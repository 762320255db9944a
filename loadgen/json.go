package loadgen

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
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

// Quantiles are the latencies of one stage.
type Quantiles struct {
	Count int64  `json:"count"`
	Mean  Micros `json:"mean"`
	P50   Micros `json:"p50"`
	P90   Micros `json:"p90"`
	P99   Micros `json:"p99"`
	P999  Micros `json:"p99_9"`
	Max   Micros `json:"max"`
}

// quantiles are those of every stage that the run had.
func quantiles(all *[stageCount]Summary) map[string]Quantiles {
	m := make(map[string]Quantiles, stageCount)
	us := func(ns int64) Micros { return Micros(float64(ns) / 1e3) }
	for st, s := range all {
		m[Stages[st]] = Quantiles{s.Count, us(s.Mean), us(s.P50), us(s.P90), us(s.P99), us(s.P999), us(s.Max)}
	}
	return m
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
		return nil, fmt.Errorf("this is no saved report: %w", err)
	}
	if saved.Runs == nil {
		saved.Runs = []*Report{&saved.Report}
	}
	for _, r := range saved.Runs {
		if r.Protocol == "" || r.Latency == nil {
			return nil, fmt.Errorf("this is no saved report: it has no protocol and latency_us")
		}
	}
	return saved.Runs, nil
}

package latency

import (
	"math"
	"slices"
	"strconv"
	"time"
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

// String formats the time with three significant digits and a suitable unit, such as "1.25 ms", or "-" if it is not
// known.
func (m Micros) String() string {
	if m == 0 {
		return "-"
	}
	v, unit := float64(m), "us"
	switch {
	case v >= 999_500:
		v, unit = v/1e6, "s"
	case v >= 999.5:
		v, unit = v/1e3, "ms"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(v))))
	return strconv.FormatFloat(v, 'f', min(decimals, 2), 64) + " " + unit
}

// Seconds returns the time in seconds, or nil if it is not known.
func (m Micros) Seconds() *float64 {
	if m == 0 {
		return nil
	}
	s := float64(m) / 1e6
	return &s
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

// Worse sets each value to the larger of the values of q and o, and adds up the counts.
func (q *Quantiles) Worse(o *Quantiles) {
	q.Count += o.Count
	q.Mean, q.P50, q.P90, q.P95, q.P99 = max(q.Mean, o.Mean), max(q.P50, o.P50), max(q.P90, o.P90), max(q.P95, o.P95),
		max(q.P99, o.P99)
	q.P999, q.P9999, q.Max = max(q.P999, o.P999), max(q.P9999, o.P9999), max(q.Max, o.Max)
}

// Column is one of the values of [Quantiles], as reports show them.
type Column struct {
	Name    string
	Samples int64 // minimum number of samples for which the value is reported
	Text    bool  // included in the text report, which has too few columns for all
	Of      func(*Quantiles) Micros
}

// Columns are the percentiles, the maximum and the mean, in the order of reports.
var Columns = []Column{
	{"p50", 2 * minTail, true, func(q *Quantiles) Micros { return q.P50 }},
	{"p90", 10 * minTail, false, func(q *Quantiles) Micros { return q.P90 }},
	{"p95", 20 * minTail, true, func(q *Quantiles) Micros { return q.P95 }},
	{"p99", 100 * minTail, true, func(q *Quantiles) Micros { return q.P99 }},
	{"p99.9", 1000 * minTail, true, func(q *Quantiles) Micros { return q.P999 }},
	{"p99.99", 10000 * minTail, true, func(q *Quantiles) Micros { return q.P9999 }},
	{"max", 1, true, func(q *Quantiles) Micros { return q.Max }},
	{"mean", 1, false, func(q *Quantiles) Micros { return q.Mean }},
}

// ColumnNames returns the names of the columns.
func ColumnNames() (all []string) {
	for _, c := range Columns {
		all = append(all, c.Name)
	}
	return all
}

// ColumnOf returns the column with this name, or nil.
func ColumnOf(name string) *Column {
	if i := slices.IndexFunc(Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return &Columns[i]
	}
	return nil
}

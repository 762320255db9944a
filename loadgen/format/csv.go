package format

import (
	"encoding/csv"
	"io"
	"strconv"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// CSV writes the time series as CSV, one row per interval after a header. Values that are not known are empty.
func CSV(w io.Writer, r *report.Report) error {
	out := csv.NewWriter(w)
	head := []string{"start_s", "seconds", "jobs", "rate", "rate_requested", "in_flight"}
	for _, stage := range latency.Stages {
		for _, c := range latency.Columns {
			head = append(head, stage+"_"+c.Name+"_us")
		}
	}
	out.Write(head)
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for i := range r.Series {
		e := &r.Series[i]
		requested := ""
		if r.Requested != "" {
			requested = number(e.Requested)
		}
		row := []string{number(e.Start), number(e.Seconds), strconv.FormatInt(e.Jobs, 10), number(e.Rate()), requested,
			strconv.FormatInt(e.Depth, 10)}
		for _, stage := range latency.Stages {
			q := e.Latency[stage]
			for _, c := range latency.Columns {
				cell := ""
				if v := c.Of(&q); v != 0 {
					cell = number(float64(v))
				}
				row = append(row, cell)
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

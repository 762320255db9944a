package format

import (
	"encoding/json"
	"fmt"
	"io"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// JSON writes a report of any kind as one JSON object.
func JSON[R any](w io.Writer, r R) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Hgrm writes the latency distribution of one stage, in milliseconds, in the format that HdrHistogram plotters
// read (.hgrm). It returns an error if the report has no histograms, such as one that was read from JSON.
func Hgrm(w io.Writer, r *report.Report, stage string) error {
	for st, name := range latency.Stages {
		if name == stage && r.Stages[st] != nil {
			_, err := r.Stages[st].PercentilesPrint(w, 5, 1e6)
			return err
		}
	}
	return fmt.Errorf("the result has no latency distribution for stage %s", stage)
}

package loadgen

import (
	"fmt"
	"io"

	"jobwire/loadgen/latency"
)

// WriteHgrm writes the latency distribution of one stage, in milliseconds, in the format that HdrHistogram plotters
// read (.hgrm). It returns an error if the report has no histograms, such as one that was read from JSON.
func WriteHgrm(w io.Writer, r *Report, stage string) error {
	for st, name := range latency.Stages {
		if name == stage && r.stages[st] != nil {
			_, err := r.stages[st].PercentilesPrint(w, 5, 1e6)
			return err
		}
	}
	return fmt.Errorf("the result has no latency distribution for stage %s", stage)
}

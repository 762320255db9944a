package format

import (
	"fmt"
	"io"
	"strings"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// GoBench writes the report as the result of a Go benchmark, for benchstat. An operation (op) is a job.
func GoBench(w io.Writer, r *report.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "pkg: jobwire\ntarget: %s\n", strings.Join(strings.Fields(r.Target), " "))
	fmt.Fprint(&b, "Unit jobs/s better=higher\n")
	fmt.Fprintf(&b, "BenchmarkJobs/protocol=%s/scenario=%s/clients=%d/workers=%d", r.Protocol, r.Scenario, r.Clients,
		r.Workers)
	if r.Requested != "" {
		fmt.Fprintf(&b, "/rate=%s", strings.NewReplacer("/", "_", ",", "_").Replace(r.Requested))
	} else {
		fmt.Fprintf(&b, "/window=%d", r.Window)
	}
	fmt.Fprintf(&b, "/grabs=%d/payload=%s %d", r.Grabs, r.Payload, r.Jobs)
	measure := func(v float64, unit string) {
		if v > 0 {
			fmt.Fprintf(&b, " %.6g %s", v, unit)
		}
	}
	if r.Jobs > 0 {
		measure(r.Seconds*1e9/float64(r.Jobs), "ns/op")
	}
	measure(r.Rate, "jobs/s")
	measure(float64(r.CPU.Target)*1e3, "target-cpu-ns/op")
	measure(float64(r.CPU.Generator)*1e3, "generator-cpu-ns/op")
	for _, stage := range latency.Stages {
		q := r.Latency[stage]
		for _, c := range latency.Columns {
			measure(float64(c.Of(&q))*1e3, stage+"-"+c.Name+"-ns")
		}
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

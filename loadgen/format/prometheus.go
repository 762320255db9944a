package format

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"jobwire/loadgen"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// metrics are the Prometheus metrics without job counts and latencies.
var metrics = []struct {
	name, help, kind string
	of               func(*report.Report) *float64 // nil: not known
}{
	{"jobs_per_second", "Jobs per second achieved.", "gauge", func(r *report.Report) *float64 { return &r.Rate }},
	{"requested_jobs_per_second", "Jobs per second requested (open loop).", "gauge", func(r *report.Report) *float64 {
		if r.Requested == "" {
			return nil
		}
		return &r.RateRequested
	}},
	{"backlog", "Jobs in flight at the end of the measurement.", "gauge",
		func(r *report.Report) *float64 { n := float64(r.Backlog); return &n }},
	{"measured_seconds", "Length of the measurement.", "gauge", func(r *report.Report) *float64 { return &r.Seconds }},
	{"generator_cpu_seconds_per_job", "CPU time of the load generator per job.", "gauge",
		func(r *report.Report) *float64 { return r.CPU.Generator.Seconds() }},
	{"target_cpu_seconds_per_job", "CPU time of the target per job.", "gauge",
		func(r *report.Report) *float64 { return r.CPU.Target.Seconds() }},
	{"foreign_processors", "Average number of processors used by other programs.", "gauge",
		func(r *report.Report) *float64 { return r.Cores.Foreign }},
	{"generator_saturated", "1 if the load generator, or another program on its machine, was the bottleneck.", "gauge",
		func(r *report.Report) *float64 { return boolGauge(r.Saturated) }},
	{"passed", "1 if the verdict is passed.", "gauge", func(r *report.Report) *float64 { return boolGauge(r.Passed()) }},
	{"invalid", "1 if the verdict is invalid: the run does not show what the target can do.", "gauge",
		func(r *report.Report) *float64 { return boolGauge(r.Result() == report.Invalid) }},
}

// quantileOf maps the names of columns to the values of the quantile label.
var quantileOf = map[string]string{"p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p99.9": "0.999",
	"p99.99": "0.9999", "max": "1"}

func boolGauge(yes bool) *float64 {
	v := 0.0
	if yes {
		v = 1
	}
	return &v
}

// labelValue escapes a label value as the Prometheus text format requires, which differs from Go.
var labelValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Prometheus writes the report in the Prometheus text format, for the textfile collector of the node exporter or
// for a push gateway.
func Prometheus(w io.Writer, r *report.Report) error {
	var b strings.Builder
	labels := ""
	for _, l := range [][2]string{{"protocol", r.Protocol}, {"scenario", r.Scenario}, {"target", r.Target}} {
		labels += fmt.Sprintf(`,%s="%s"`, l[0], labelValue.Replace(l[1]))
	}
	labels = labels[1:]
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	head := func(name, help, kind string) {
		fmt.Fprintf(&b, "# HELP jobwire_%s %s\n# TYPE jobwire_%s %s\n", name, help, name, kind)
	}
	for _, m := range metrics {
		if v := m.of(r); v != nil {
			head(m.name, m.help, m.kind)
			fmt.Fprintf(&b, "jobwire_%s{%s} %s\n", m.name, labels, float(*v))
		}
	}
	head("build_info", "The jobwire version that made the measurement.", "gauge")
	fmt.Fprintf(&b, "jobwire_build_info{version=\"%s\",commit=\"%s\"} 1\n", labelValue.Replace(r.Jobwire.Version), labelValue.Replace(r.Jobwire.Commit))
	head("jobs", "Jobs by outcome.", "gauge")
	fmt.Fprintf(&b, "jobwire_jobs{%s,outcome=\"submitted\"} %d\njobwire_jobs{%s,outcome=\"measured\"} %d\n", labels, r.Submitted, labels, r.Jobs)
	for _, t := range loadgen.Counters {
		fmt.Fprintf(&b, "jobwire_jobs{%s,outcome=\"%s\"} %d\n", labels, t.Key, *t.Of(&r.Account))
	}
	head("latency_seconds", "Latency of the stages of a job.", "summary")
	for _, stage := range latency.Stages {
		q := r.Latency[stage]
		if q.Count == 0 {
			continue
		}
		for _, c := range latency.Columns {
			if v := c.Of(&q); v != 0 && quantileOf[c.Name] != "" {
				fmt.Fprintf(&b, "jobwire_latency_seconds{%s,stage=\"%s\",quantile=\"%s\"} %s\n", labels, stage, quantileOf[c.Name], float(float64(v)/1e6))
			}
		}
		fmt.Fprintf(&b, "jobwire_latency_seconds_sum{%s,stage=\"%s\"} %s\n", labels, stage, float(float64(q.Mean)*float64(q.Count)/1e6))
		fmt.Fprintf(&b, "jobwire_latency_seconds_count{%s,stage=\"%s\"} %d\n", labels, stage, q.Count)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package benchcmd

import (
	"jobwire/internal/metrics"
	"jobwire/loadgen"
	"jobwire/loadgen/latency"
)

// gauges publishes the figures of the intervals of a run.
type gauges struct {
	addr   string // value of --metrics
	server *metrics.Server
	ended  int64 // number of jobs that have ended
}

// interval publishes the figures of one interval.
func (g *gauges) interval(iv *loadgen.Interval, measured bool) {
	if g.server == nil {
		return
	}
	if !iv.Draining { // its jobs are counted already
		g.ended += iv.Done
	}
	part := 0.0
	if measured {
		part = 1
	}
	outcomes := metrics.Family{Name: "jobwire_bench_outcomes", Counter: true,
		Help: "Jobs with an outcome other than one result. A correct server loses, duplicates and corrupts none."}
	for _, c := range loadgen.Counters {
		outcomes.Samples = append(outcomes.Samples,
			metrics.Sample{Value: float64(*c.Of(&iv.Account)), Labels: []string{"outcome", c.Key}})
	}
	delays := metrics.Family{Name: "jobwire_bench_latency_seconds", Unit: "seconds",
		Help: "Latencies of the jobs that ended in the last interval."}
	for _, stage := range latency.Stages {
		q, ok := iv.Latency[stage]
		if !ok || q.Count == 0 {
			continue
		}
		for _, v := range []struct {
			quantile string
			value    latency.Micros
		}{{"0.5", q.P50}, {"0.9", q.P90}, {"0.99", q.P99}, {"0.999", q.P999}, {"1", q.Max}} {
			delays.Samples = append(delays.Samples,
				metrics.Sample{Value: float64(v.value) / 1e6, Labels: []string{"stage", stage, "quantile", v.quantile}})
		}
	}
	g.server.Set([]metrics.Family{
		{Name: "jobwire_bench_jobs", Counter: true, Help: "Jobs that have ended.",
			Samples: metrics.One(float64(g.ended))},
		{Name: "jobwire_bench_rate", Help: "Jobs per second that ended in the last interval.",
			Samples: metrics.One(iv.Rate())},
		{Name: "jobwire_bench_in_flight_jobs", Help: "Jobs in flight at the end of the last interval.",
			Samples: metrics.One(float64(iv.Depth))},
		{Name: "jobwire_bench_measuring", Help: "1 if the last interval belongs to the measurement.",
			Samples: metrics.One(part)},
		outcomes, delays,
	})
}

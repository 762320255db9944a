package fuzzcmd

import (
	"jobwire/fuzz"
	"jobwire/internal/metrics"
)

// families returns the figures of a run as metrics.
func families(s fuzz.Stats) []metrics.Family {
	counter := func(name, help string, n int64) metrics.Family {
		return metrics.Family{Name: "jobwire_fuzz_" + name, Counter: true, Help: help, Samples: metrics.One(float64(n))}
	}
	gauge := func(name, unit, help string, v float64) metrics.Family {
		return metrics.Family{Name: "jobwire_fuzz_" + name, Unit: unit, Help: help, Samples: metrics.One(v)}
	}
	return []metrics.Family{
		counter("executions", "Inputs that were sent.", s.Executions),
		counter("messages", "Messages that were sent and received.", s.Messages),
		counter("server_starts", "Servers that were started.", int64(s.Starts)),
		counter("duplicates", "Observations of findings beyond the first.", int64(s.Duplicates)),
		counter("not_reproduced", "Candidates that did not appear on a new server.", int64(s.NotReproduced)),
		counter("reference_fails_too", "Faults that the reference server has, too.", int64(s.ReferenceFails)),
		gauge("findings", "", "Findings.", float64(s.Findings)),
		gauge("corpus_inputs", "", "Inputs that are kept.", float64(s.Corpus)),
		gauge("features", "", "Features of replies that the inputs in the corpus reach.", float64(s.Features)),
		gauge("elapsed_seconds", "seconds", "Time since the start of the run.", s.Elapsed.Seconds()),
	}
}

package benchcmd

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobwire/internal/metrics"
	"jobwire/loadgen"
	"jobwire/loadgen/latency"
)

// TestMetrics tests that the metrics of a run are those of its intervals, in seconds, and that jobs are counted once.
func TestMetrics(t *testing.T) {
	server, err := metrics.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := gauges{server: server}
	g.interval(&loadgen.Interval{Length: time.Second, Done: 100, Depth: 7}, true)
	g.interval(&loadgen.Interval{Length: time.Second, Done: 50, Depth: 3, Account: loadgen.Account{Lost: 2},
		Latency: map[string]latency.Quantiles{"total": {Count: 50, P50: 2000, Max: 1e6}}}, true)
	g.interval(&loadgen.Interval{Length: time.Second, Done: 3, Depth: 0, Draining: true}, false)
	want := []string{"jobwire_bench_jobs_total 150", "jobwire_bench_rate 3", "jobwire_bench_in_flight_jobs 0", "jobwire_bench_measuring 0"}
	expect(t, server, want)
	g.interval(&loadgen.Interval{Length: time.Second, Done: 50, Account: loadgen.Account{Lost: 2},
		Latency: map[string]latency.Quantiles{"total": {Count: 50, P50: 2000, Max: 1e6}}}, true)
	expect(t, server, []string{"jobwire_bench_jobs_total 200", `jobwire_bench_outcomes_total{outcome="lost"} 2`, "jobwire_bench_measuring 1",
		`jobwire_bench_latency_seconds{stage="total",quantile="0.5"} 0.002`, `jobwire_bench_latency_seconds{stage="total",quantile="1"} 1`})
}

// expect checks that the server serves the lines.
func expect(t *testing.T, server *metrics.Server, lines []string) {
	t.Helper()
	r, err := http.Get(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("expected the line %q in\n%s", line, text)
		}
	}
}

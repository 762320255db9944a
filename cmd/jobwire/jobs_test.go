package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/transport"
	"jobwire/pcap/jobs"
)

// followed returns the report of decode jobs about a capture.
func followed(t *testing.T, capture []byte) (r struct {
	Functions map[string]jobCounts
	Anomalies []jobs.Anomaly `json:"anomalies"`
}) {
	t.Helper()
	var out, complaints bytes.Buffer
	if status := run(t.Context(), []string{"decode", "jobs", "-", "--format", "json"}, bytes.NewReader(capture), &out, &complaints); status != cli.StatusOK {
		t.Fatalf("exit status %d: %s", status, complaints.String())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// jobCounts has the counts of the jobs of a function in the report of decode jobs.
type jobCounts struct {
	Submitted   int64
	Joined      int64 `json:"coalesced"`
	Refused     int64
	Assigned    int64
	Redelivered int64
	Because     map[string]int64 `json:"redelivered_because"`
	Completed   int64
	Failed      int64
	Unended     int64 `json:"not_ended"`
	Deleted     int64
	Unanswered  int64 `json:"client_gone"`
	Wait        struct{ Count int64 }
	Run         struct{ Count int64 }
	Return      struct{ Count int64 }
}

// TestJobsOfBench captures the traffic of the load generator: the counts of jobs in the report of decode jobs must
// match those in the report of the load generator.
func TestJobsOfBench(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		protocol, scenario string
		returnsResult      bool // the server sends the result of a job to the client
	}{
		{"gearman", "cycle", true}, {"gearman", "background", false}, {"gearman", "chaos", true},
		{"beanstalk", "cycle", false}, {"beanstalk", "chaos", false},
		{"gearmonkey", "cycle", false}, {"gearmonkey", "chaos", false},
		{"danga", "cycle", true}, {"danga", "background", false}, {"danga", "chaos", true},
	} {
		t.Run(tt.protocol+"/"+tt.scenario, func(t *testing.T) {
			t.Parallel()
			sys, err := connect.EntryNamed(tt.protocol)
			if err != nil {
				t.Fatal(err)
			}
			var capture []byte
			var sent struct{ Submitted, Redelivered, Lost, Duplicated, Corrupted int64 }
			synctest.Test(t, func(t *testing.T) {
				tp := tapped(t, embedded(t, sys).Addr())
				args := []string{"bench", "run", tt.protocol, "--addr", transport.Name(tp), "--scenario", tt.scenario,
					"--count", "500", "--functions", "2", "--format", "json"}
				if tt.scenario == "chaos" {
					args = append(args, "--kill", "60", "--settle", "2s")
				}
				var out, complaints bytes.Buffer
				if status := run(t.Context(), args, strings.NewReader(""), &out, &complaints); status == cli.StatusUsage {
					t.Fatal(complaints.String())
				}
				if err := json.Unmarshal(out.Bytes(), &sent); err != nil {
					t.Fatal(err, complaints.String())
				}
				capture = tp.capture(t)
			})
			var said, complaints bytes.Buffer
			if status := run(t.Context(), []string{"decode", "-", "--audit"}, bytes.NewReader(capture), &said, &complaints); status != cli.StatusOK {
				t.Errorf("exit status %d: %s", status, said.String())
			}
			seen := followed(t, capture)
			var sum jobCounts
			for name, f := range seen.Functions {
				if !strings.HasPrefix(name, "jobwire") {
					t.Errorf("jobs of %q", name)
				}
				sum.Submitted += f.Submitted
				sum.Assigned += f.Assigned
				sum.Redelivered += f.Redelivered
				sum.Completed += f.Completed
				sum.Unended += f.Unended
				sum.Return.Count += f.Return.Count
				sum.Wait.Count += f.Wait.Count
				sum.Run.Count += f.Run.Count
				if n := f.Joined + f.Refused + f.Failed + f.Deleted; n > 0 {
					t.Errorf("%s: %+v", name, f)
				}
				for why := range f.Because {
					if why != "the worker's connection ended" {
						t.Errorf("%s: redelivered because %s", name, why)
					}
				}
			}
			// A killed worker may not have read the job that it was assigned, and the server may not have read the
			// last result of the worker.
			if sum.Submitted != sent.Submitted || sum.Redelivered < sent.Redelivered || sum.Completed > sent.Submitted || sum.Completed < sent.Submitted-sent.Lost-20 {
				t.Errorf("%+v, want of %+v; %+v", sum, sent, seen.Anomalies)
			}
			if sent.Lost == 0 && tt.returnsResult && tt.scenario != "chaos" && sum.Unended > 0 {
				t.Errorf("%d jobs did not end: %+v", sum.Unended, seen.Anomalies)
			}
			if tt.returnsResult && sum.Return.Count < sum.Completed-int64(len(seen.Anomalies)) {
				t.Errorf("clients got the results of %d jobs, want %d", sum.Return.Count, sum.Completed)
			}
			if sum.Wait.Count < sum.Completed || sum.Run.Count < sum.Completed {
				t.Errorf("%d jobs waited and %d ran, want %d", sum.Wait.Count, sum.Run.Count, sum.Completed)
			}
			if tt.scenario == "chaos" && sum.Redelivered+sum.Unended == 0 {
				t.Error("no worker was killed while it had a job")
			}
		})
	}
}

package loadgen_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/loadgen"
	"jobwire/loadgen/machine"
	"jobwire/loadgen/report"
)

// TestFaultsAreCounted tests that each injected fault of a server is counted by the right counter, that no other
// counter changes, and that the account describes the first fault.
func TestFaultsAreCounted(t *testing.T) {
	for _, tt := range []struct {
		protocol *codec.Protocol
		scenario string
		fault    string
		want     loadgen.Account
	}{
		{gearman.Protocol, "cycle", "drop from-server WORK_COMPLETE nth=20", loadgen.Account{Lost: 1}},
		{gearman.Protocol, "cycle", "duplicate from-server WORK_COMPLETE nth=20", loadgen.Account{AnsweredTwice: 1}},
		{gearman.Protocol, "cycle", "drop from-server JOB_CREATED nth=20", loadgen.Account{Unacknowledged: 1}},
		{gearman.Protocol, "cycle", "duplicate from-server JOB_CREATED nth=20", loadgen.Account{AnsweredTwice: 1}},
		{gearman.Protocol, "cycle", "answer from-peer SUBMIT_JOB ERROR code text nth=20", loadgen.Account{Refused: 1}},
		{gearman.Protocol, "cycle", "alter from-server WORK_COMPLETE response=other nth=20", loadgen.Account{Corrupted: 1, Lost: 1}},
		{beanstalk.Protocol, "cycle", "drop from-server INSERTED nth=20", loadgen.Account{Unacknowledged: 1}},
		{beanstalk.Protocol, "cycle", "answer from-peer put OUT_OF_MEMORY nth=20", loadgen.Account{Refused: 1}},
		{danga.Protocol, "drain", "duplicate from-server job_assign_res nth=20", loadgen.Account{Duplicated: 1}},
		{danga.Protocol, "drain", "drop from-server job_create_res nth=20", loadgen.Account{Unacknowledged: 1}},
	} {
		bubble(t, tt.scenario+"/"+tt.fault, func(t *testing.T) {
			res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: tt.protocol, Scenario: tt.scenario,
				Dial: serving(t, tt.protocol, tt.fault), Clients: 1, Workers: 1, Count: 30})
			// The worker completes a job that the server has not assigned to it, and the server closes the
			// connection. The run can end before that.
			if err != nil && (tt.want.Duplicated == 0 || !errors.Is(err, io.ErrUnexpectedEOF)) {
				t.Fatal(err)
			}
			got := res.Account
			if got.First == "" {
				t.Error("the first is not told")
			}
			got.Submitted, got.First = 0, ""
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestOpenLoopCountsTheTimeThatJobsWait tests that the latencies include those of the jobs in flight at the end of an
// open loop, which waited longest.
func TestOpenLoopCountsTheTimeThatJobsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := load(t, loadgen.Config{Protocol: gearman.Protocol, Rate: rate(t, "500"), MaxFlight: 1000, Duration: 801 * time.Millisecond},
			"delay from-server WORK_COMPLETE 400ms")
		total := res.Latency[len(res.Latency)-1].TotalCount()
		if res.AfterWindow != 200 || total != res.Account.Submitted || total != res.Jobs+res.AfterWindow {
			t.Errorf("%d latencies of %d jobs, %d of them after the end; %d submitted",
				total, res.Jobs, res.AfterWindow, res.Account.Submitted)
		}
	})
}

// TestOpenLoopOfSlowServer tests that a server that assigns 20 jobs per second does not keep up with 200.
func TestOpenLoopOfSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &report.Recorder{Target: "a slow server", Processor: &machine.Processor{}}
		cfg := loadgen.Config{Protocol: gearman.Protocol, Rate: rate(t, "200"), MaxFlight: 1000, Duration: 1002 * time.Millisecond,
			Workers: 1, Grabs: 1}
		recorder.Attach(&cfg)
		r := recorder.Report(load(t, cfg, "delay from-server JOB_ASSIGN 50ms"))
		// The verdict can be invalid, because the processor time of the machine does not fit to virtual time.
		if r.KeptUp == nil || *r.KeptUp || r.Verdict == report.Passed || r.Backlog != 181 || r.RateRequested != 200 {
			t.Errorf("%s %v: kept up %v, backlog %d, %v jobs/s requested",
				r.Verdict, r.Reasons, r.KeptUp, r.Backlog, r.RateRequested)
		}
	})
}

// TestPausedRunsLoseNoJobs tests that jobs are not lost if Config.Think, Config.Work or the time between two scheduled
// jobs is longer than Config.DrainTimeout.
func TestPausedRunsLoseNoJobs(t *testing.T) {
	const pause = 11 * time.Second
	configs := map[string]loadgen.Config{
		"think": {Think: pause}, "work": {Work: pause}, "rate": {Rate: rate(t, "0.08"), MaxFlight: 1000},
	}
	for name, cfg := range configs {
		bubble(t, name, func(t *testing.T) {
			cfg.Protocol, cfg.Clients, cfg.Workers, cfg.Count = gearman.Protocol, 1, 1, 3
			if res := load(t, cfg); res.Jobs != cfg.Count || !res.Account.NoFaults() {
				t.Errorf("%d jobs of %d; %+v", res.Jobs, cfg.Count, res.Account)
			}
		})
	}
}

// TestInvalidPrefixIsAnError tests that the run fails if a message cannot be encoded.
func TestInvalidPrefixIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := loadgen.Config{Protocol: beanstalk.Protocol, Count: 10, Prefix: "two words",
			Dial: serving(t, beanstalk.Protocol)}
		if _, err := loadgen.Run(t.Context(), cfg); err == nil {
			t.Error("a tube of two words was sent")
		}
	})
}

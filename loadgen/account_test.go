package loadgen_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/loadgen"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	dangaserver "jobwire/refserver/danga"
	gearmanserver "jobwire/refserver/gearman"
)

// TestFaultsAreCounted tests that each injected fault of a server is counted by the right counter, that no other
// counter changes, and that the account describes the first fault.
func TestFaultsAreCounted(t *testing.T) {
	newGearman := func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }
	newBeanstalk := func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) }
	newDanga := func() refserver.Machine { return dangaserver.New(dangaserver.Options{}) }
	for _, tt := range []struct {
		protocol *codec.Protocol
		machine  func() refserver.Machine
		scenario string
		fault    string
		want     loadgen.Account
	}{
		{gearman.Protocol, newGearman, "cycle", "drop from-server WORK_COMPLETE nth=20", loadgen.Account{Lost: 1}},
		{gearman.Protocol, newGearman, "cycle", "duplicate from-server WORK_COMPLETE nth=20", loadgen.Account{AnsweredTwice: 1}},
		{gearman.Protocol, newGearman, "cycle", "drop from-server JOB_CREATED nth=20", loadgen.Account{Unacknowledged: 1}},
		{gearman.Protocol, newGearman, "cycle", "duplicate from-server JOB_CREATED nth=20", loadgen.Account{AnsweredTwice: 1}},
		{gearman.Protocol, newGearman, "cycle", "answer from-peer SUBMIT_JOB ERROR code text nth=20", loadgen.Account{Refused: 1}},
		{gearman.Protocol, newGearman, "cycle", "alter from-server WORK_COMPLETE response=other nth=20", loadgen.Account{Corrupted: 1, Lost: 1}},
		{beanstalk.Protocol, newBeanstalk, "cycle", "drop from-server INSERTED nth=20", loadgen.Account{Unacknowledged: 1}},
		{beanstalk.Protocol, newBeanstalk, "cycle", "answer from-peer put OUT_OF_MEMORY nth=20", loadgen.Account{Refused: 1}},
		{danga.Protocol, newDanga, "drain", "duplicate from-server job_assign_res nth=20", loadgen.Account{Duplicated: 1}},
		{danga.Protocol, newDanga, "drain", "drop from-server job_create_res nth=20", loadgen.Account{Unacknowledged: 1}},
	} {
		t.Run(tt.scenario+"/"+tt.fault, func(t *testing.T) {
			res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: tt.protocol, Scenario: tt.scenario, Dial: serving(t, tt.protocol, tt.machine(), tt.fault),
				Clients: 1, Workers: 1, Count: 30, DrainTimeout: 200 * time.Millisecond})
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

// TestOpenLoopCountsTheTimeThatJobsWait tests that the latencies include those of the jobs in flight at the end of an open
// loop, which waited longest.
func TestOpenLoopCountsTheTimeThatJobsWait(t *testing.T) {
	t.Parallel()
	machine := gearmanserver.New(gearmanserver.Options{})
	rate, err := loadgen.ParseSchedule("500")
	if err != nil {
		t.Fatal(err)
	}
	res, err := loadgen.Run(t.Context(), loadgen.Config{Protocol: gearman.Protocol, Dial: serving(t, gearman.Protocol, machine, "delay from-server WORK_COMPLETE 400ms"),
		Rate: rate, Duration: 800 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	total := res.Latency[len(res.Latency)-1].TotalCount()
	if res.AfterWindow == 0 || total != res.Account.Submitted || total != res.Jobs+res.AfterWindow {
		t.Errorf("%d latencies of %d jobs, %d of them after the end; %d submitted", total, res.Jobs, res.AfterWindow, res.Account.Submitted)
	}
}

// TestOpenLoopOfSlowServer tests that a server that assigns 20 jobs per second does not keep up with 200.
func TestOpenLoopOfSlowServer(t *testing.T) {
	t.Parallel()
	rate, err := loadgen.ParseSchedule("200")
	if err != nil {
		t.Fatal(err)
	}
	recorder := &loadgen.Recorder{Target: "a slow server"}
	cfg := loadgen.Config{Protocol: gearman.Protocol, Dial: serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{}), "delay from-server JOB_ASSIGN 50ms"),
		Rate: rate, Duration: time.Second, Workers: 1, Grabs: 1, DrainTimeout: 200 * time.Millisecond}
	recorder.Attach(&cfg)
	res, err := loadgen.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := recorder.Report(res)
	// On a busy machine the verdict can be invalid.
	if r.KeptUp == nil || *r.KeptUp || r.Verdict == loadgen.Passed || r.Backlog < 100 || r.RateRequested != 200 {
		t.Errorf("%s %v: kept up %v, backlog %d, %v jobs/s requested", r.Verdict, r.Reasons, r.KeptUp, r.Backlog, r.RateRequested)
	}
}

// TestPausedRunsLoseNoJobs tests that jobs are not lost if Config.Think, Config.Work or the time between two scheduled
// jobs is longer than Config.DrainTimeout.
func TestPausedRunsLoseNoJobs(t *testing.T) {
	t.Parallel()
	dial := serving(t, gearman.Protocol, gearmanserver.New(gearmanserver.Options{}))
	rate, err := loadgen.ParseSchedule("0.7")
	if err != nil {
		t.Fatal(err)
	}
	pause := 1500 * time.Millisecond
	for name, cfg := range map[string]loadgen.Config{"think": {Think: pause}, "work": {Work: pause}, "rate": {Rate: rate}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Protocol, cfg.Dial, cfg.Clients, cfg.Workers, cfg.Count, cfg.DrainTimeout = gearman.Protocol, dial, 1, 1, 3, time.Second
			cfg.Interval, cfg.Prefix = 10*time.Millisecond, name
			res, err := loadgen.Run(t.Context(), cfg)
			if err != nil || res.Jobs != cfg.Count || !res.Account.NoFaults() {
				t.Errorf("%d jobs of %d, %v; %+v", res.Jobs, cfg.Count, err, res.Account)
			}
		})
	}
}

// TestInvalidPrefixIsAnError tests that the run fails if a message cannot be encoded.
func TestInvalidPrefixIsAnError(t *testing.T) {
	dial := serving(t, beanstalk.Protocol, beanstalkserver.New(beanstalkserver.Options{}))
	cfg := loadgen.Config{Protocol: beanstalk.Protocol, Dial: dial, Count: 10, Prefix: "two words"}
	if _, err := loadgen.Run(t.Context(), cfg); err == nil {
		t.Error("a tube of two words was sent")
	}
}

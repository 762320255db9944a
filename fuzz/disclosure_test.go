package fuzz

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// TestDisclosure tests that data which no client has sent is a disclosure if it depends on what other clients sent, or
// differs between servers, and a wrong answer if the server always sends the same. It is one finding, whether the model
// of the queue or the comparison with the sent data shows it first.
func TestDisclosure(t *testing.T) {
	t.Parallel()
	differs := "alter ECHO_RES data=memory%d" // the number of the server
	const echo = "Client -> Job Server: ECHO_REQ \"\"\n"
	const put = `Client -> Server: put 0 0 60 ""
	Server -> Client: INSERTED $id
	Client -> Server: reserve
	`
	const grab = `Application -> Job Server: job_create_req $fn "" 1 1 work
	Worker -> Job Server: worker_connect $fn
	Worker -> Job Server: job_assign_req
	`
	for _, tt := range []struct {
		protocol     *codec.Protocol
		seed, script string
		disclosed    bool
	}{
		{gearman.Protocol, echo, "alter ECHO_RES data=xyzzyplugh", false},
		{gearman.Protocol, echo, "alter ECHO_RES data=test", false},
		{gearman.Protocol, echo, `alter ECHO_RES data={data + "garbage"}`, false},
		{gearman.Protocol, fuzztest.Work, "alter JOB_ASSIGN* workload=xyzzyplugh", false},
		{danga.Protocol, grab, "alter job_assign_res args=xyzzyplugh", false},
		{beanstalk.Protocol, put, "alter RESERVED body=xyzzyplugh", false},
		{gearman.Protocol, echo, faults.Named("empty-echo-of-another").Script, true},
		{gearman.Protocol, echo, differs, true},
	} {
		burst := fuzztest.Input(t, tt.protocol, tt.seed)
		checked := burst.Clone()
		burst.Mode = input.Burst // no model of the queue says that the reply is wrong
		seeds := [][]*input.Input{{burst}, {checked}, {burst, checked}, {checked, burst}}
		for n := range 2 * len(seeds) {
			fixed, seeds := n%2 > 0, seeds[n/2]
			if fixed && tt.script == differs || testing.Short() && n > 3 {
				continue // there is only one server
			}
			t.Run(fmt.Sprint(tt.protocol.Name, n, tt.script), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					starts := 0
					start := func(ctx context.Context) (target.Target, error) {
						f := faults.Fault{Name: "data", Protocol: tt.protocol.Name, Script: tt.script}
						if starts++; tt.script == differs {
							f.Script = fmt.Sprintf(tt.script, starts)
						}
						return fuzztest.Serve(f)(ctx)
					}
					cfg := Config{Protocol: tt.protocol, Seed: 1, Seeds: seeds, Sequential: true, Count: 100, Timeout: time.Second, Server: triage.Server{Start: start}}
					if fixed {
						srv, err := start(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						defer srv.Stop()
						cfg.Fixed, cfg.Start = true, func(context.Context) (target.Target, error) { return target.Address(srv.Addr()) }
					}
					findings, disclosed := 0, false
					cfg.Found = func(fd *triage.Finding) {
						findings++
						disclosed = disclosed || fd.Severity(cfg.Protocol) == triage.MemoryDisclosure
						t.Logf("%s: %s", fd.Severity(cfg.Protocol), fd.Fault)
					}
					if _, err := Run(t.Context(), cfg); err != nil || findings != 1 || disclosed != tt.disclosed {
						t.Errorf("expected one finding, disclosure: %v, got %d, %v; %v", tt.disclosed, findings, disclosed, err)
					}
				})
			})
		}
	}
}

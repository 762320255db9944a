package fuzz

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/internal/target"
)

var suites sync.Map // functions that load a suite, by protocol

// suiteOf returns the conformance suite of a protocol, which the tests load once, because that takes long.
func suiteOf(t *testing.T, p *codec.Protocol) *conform.Suite {
	load, _ := suites.LoadOrStore(p, sync.OnceValues(func() (*conform.Suite, error) { return conform.Load(p) }))
	suite, err := load.(func() (*conform.Suite, error))()
	if err != nil {
		t.Fatal(err)
	}
	return suite
}

// TestKnownOfGearmand tests that the profile of gearmand excludes a tab in the name of a function, but not in a workload.
func TestKnownOfGearmand(t *testing.T) {
	t.Parallel()
	suite := suiteOf(t, gearman.Protocol)
	profile, err := conform.LoadProfile("gearmand", suite)
	if err != nil {
		t.Fatal(err)
	}
	for wire, known := range map[string]bool{
		`Worker -> Job Server: CAN_DO "a\tb"`:                true,
		`Client -> Job Server: SUBMIT_JOB_LOW_BG "a\t" u x`:  true,
		`Client -> Job Server: SUBMIT_JOB_LOW_BG a u "x\ty"`: false,
		`Worker -> Job Server: CAN_DO_TIMEOUT a 1`:           false,
		`Client -> Job Server: SUBMIT_JOB a "\t" ""`:         false,
	} {
		in := fuzztest.Input(t, gearman.Protocol, wire+"\n")
		m := codec.Message{Type: in.Steps[0].Type}
		for _, a := range in.Steps[0].Args {
			m.Args = append(m.Args, a.Value)
		}
		b, err := gearman.Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, codec.Peer, &m)
		if err != nil {
			t.Fatal(err)
		}
		if got := profile.Fuzz.Never.Match(b); got != known {
			t.Errorf("%s: %v, want %v", wire, got, known)
		}
	}
}

// TestSlowServerStartDoesNotEndTheRun tests that a failed start of a server is repeated for maxStarting. The first start of a run is not repeated, because a server that never starts is a mistake in the configuration.
func TestSlowServerStartDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := fuzztest.Serve(faults.Faultless("gearman"))
		failures := 0
		f := &Fuzzer{}
		late := func(ctx context.Context) (target.Target, error) {
			if failures > 0 {
				failures--
				return nil, errors.New("too late")
			}
			return start(ctx)
		}
		for _, tt := range []struct {
			servers  uint64 // number of servers started before
			failures int
			ok       bool
		}{{0, 0, true}, {0, 1, false}, {1, 20, true}, {1, 1000, false}} {
			f.servers.Store(tt.servers)
			failures = tt.failures
			server, err := (&worker{f: f, Servers: exec.Servers{Start: late, Ending: &f.ending}}).nextServer(t.Context())
			if (err == nil) != tt.ok {
				t.Errorf("%+v: %v", tt, err)
			}
			if err == nil {
				server.Stop()
			}
		}
	})
}

package exec

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/internal/target"
)

// executorOf returns an executor with a correct server of the protocol, which stops at the end of the test.
func executorOf(t *testing.T, p *codec.Protocol, start func(context.Context, string, func(context.Context, net.Listener) error) (target.Target, error)) *Executor {
	srv, err := start(t.Context(), p.Name, faults.Faultless(p.Name).Serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	x, err := NewExecutor(srv, 0, NewBarrier(p, p.Barriers[0]), &input.Known{}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.CloseCanary)
	return x
}

// TestExecutes tests that an input that is executed on a server gets the expected replies, with and without a prefix of
// its names.
func TestExecutes(t *testing.T) {
	x := executorOf(t, gearman.Protocol, target.Func)
	in := fuzztest.Input(t, gearman.Protocol, fuzztest.Work)
	for _, prefix := range []string{"", "A00001."} {
		r := x.Execute(in, prefix)
		if r.Fault != nil {
			t.Fatal(r.Fault)
		}
		if got, want := r.Outcome(), "JOB_CREATED WORK_COMPLETE ; JOB_ASSIGN"; got != want {
			t.Errorf("prefix %q: expected the replies %s, got %s", prefix, want, got)
		}
	}
}

// TestServerMayHaveClient tests that an input after which the server may still have a client does not count as clean:
// the next input could observe that client.
func TestServerMayHaveClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := executorOf(t, beanstalk.Protocol, target.InMemory)
		for wire, clean := range map[string]bool{"Client -> Server: watch a\n": true, "Client -> Server: reserve\n": false} {
			if r := x.Execute(fuzztest.Input(t, beanstalk.Protocol, wire), ""); r.Clean != clean || r.Fault != nil {
				t.Errorf("%q: clean: %v, expected %v; fault %v", wire, r.Clean, clean, r.Fault)
			}
		}
	})
}

// TestManyConnections tests that an input of more connections than the generator uses is executed: an input that joins
// several has the connections of all.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := executorOf(t, beanstalk.Protocol, target.InMemory)
		x.Steady = true
		in := &input.Input{}
		reserve := beanstalk.Protocol.TypeNamed("reserve")
		for conn := range input.MaxConns + 2 {
			in.Steps = append(in.Steps, input.Step{ID: conn + 1, Conn: conn, Verb: transcript.Send, Type: reserve})
		}
		r := x.Execute(in, "")
		if sent := len(r.AsSent()); r.Fault != nil || sent < len(in.Steps) {
			t.Errorf("expected at least %d messages and no fault, got %d and %v", len(in.Steps), sent, r.Fault)
		}
	})
}

// TestDataOfOtherInputIsNotDisclosure tests that the data of another input's job is not reported as data that no client has sent, if a
// request contains the handle of that job.
func TestDataOfOtherInputIsNotDisclosure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := executorOf(t, danga.Protocol, target.InMemory)
		first := x.Execute(fuzztest.Input(t, danga.Protocol, `Application -> Job Server: job_create_req $fn "" 1 1 work
	Job Server -> Application: job_create_res $handle
	Worker -> Job Server: worker_connect $fn
	Worker -> Job Server: job_assign_req
	Job Server -> Worker: job_assign_res $fn work
	Worker -> Job Server: job_complete_announce 0 secret
	`), "A00001.")
		if first.Fault != nil {
			t.Fatal(first.Fault)
		}
		handle := ""
		for _, e := range first.Events {
			if e.Type != nil && e.Type.Name == "job_create_res" {
				handle = string(e.Args[0])
			}
		}
		second := x.Execute(fuzztest.Input(t, danga.Protocol, "Application -> Job Server: job_complete_req "+handle+"\n"), "A00002.")
		got := ""
		for _, e := range second.Events {
			if e.Type != nil && e.Type.Name == "job_complete_res" {
				got = string(e.Args[2])
			}
		}
		if second.Fault != nil || got != "secret" {
			t.Errorf("handle %q, result %q, %v", handle, got, second.Fault)
		}
	})
}

// TestReplyBeforeEndOfRequest tests that a server may refuse a request before it has received the whole body.
func TestReplyBeforeEndOfRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := executorOf(t, beanstalk.Protocol, target.InMemory)
		r := x.Execute(fuzztest.Input(t, beanstalk.Protocol, `Client -> Server: raw "put 1 1 1 65536\r\n" "zl"*14000
	Client -> Server: raw "lz"*18768 "\r\n"
	Client -> Server: list-tube-used
	`), "")
		if got, want := r.Outcome(), "JOB_TOO_BIG USING"; r.Fault != nil || got != want {
			t.Errorf("expected the replies %s, got %s; %v", want, got, r.Fault)
		}
	})
}

// TestMessageBeforeEndOfRequest tests that a message without a request, which arrives before a request is complete, is
// read at once.
func TestMessageBeforeEndOfRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := executorOf(t, gearmonkey.Protocol, target.InMemory)
		r := x.Execute(fuzztest.Input(t, gearmonkey.Protocol, `Operator -> Server: SUBSCRIBE_CHANNEL b
	Server -> Operator: SUBSCRIBED b 1
	Operator -> Server: raw "*"
	Worker -> Server: PUBLISH_START b 0
	Server -> Worker: integer 1
	`), "")
		if r.Fault != nil {
			t.Errorf("%v", r.Fault)
		}
	})
}

// TestFailuresAfterSkippedBytes tests that a wrong reply after bytes that the server should have skipped breaks the rule
// about them, and that a server that answers no client remains a failure of its own.
func TestFailuresAfterSkippedBytes(t *testing.T) {
	for oracle, resync := range map[string]bool{Law: true, Framing: true, HangConn: true, HangAll: false, Disclosure: false, Disturbed: false} {
		x := &execution{Executor: &Executor{}, record: &Record{}, conns: []*conn{{}}}
		x.conns[0].resync = "p.skips"
		x.fault(Fault{Oracle: oracle, Rule: "p.own", Step: 1})
		if f := x.record.Fault; f.Resync != resync || (f.Rule == "p.skips") != resync {
			t.Errorf("%s: %v, rule %s", oracle, f.Resync, f.Rule)
		}
	}
}

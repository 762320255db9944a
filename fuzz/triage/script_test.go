package triage

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/internal/target"
)

// TestFindingsPlay writes the transcripts of findings whose faults appear in messages that are easily omitted. The
// transcripts must fail on the server.
func TestFindingsPlay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fault, wire string }{
		// Another connection, that of the canary, was closed.
		{"empty-echo-of-another", `Client -> Job Server: ECHO_REQ ""
`},
		// The reply to the barrier reveals the fault.
		{"tube-of-64-not-used", `Client -> Server: use "x"*64
`},
		// The server sends one handle twice.
		{"empty-result-forgotten", `Client -> Job Server: SUBMIT_JOB_BG a "" ""
Job Server -> Client: JOB_CREATED $a
Client -> Job Server: unchecked CAN_DO a
Client -> Job Server: unchecked GRAB_JOB
Client -> Job Server: GET_STATUS $a
Job Server -> Client: STATUS_RES $b 1 1 0 0
Client -> Job Server: unchecked WORK_COMPLETE $a ""
Client -> Job Server: GET_STATUS $b
`},
		// A job is deleted by its ID, and by a guessed ID.
		{"tube-of-64-not-used", `Client -> Server: put 0 0 60 x
Server -> Client: INSERTED $id
Client -> Server: stats-job 1
Client -> Server: delete $id
Client -> Server: use "x"*64
`},
		// An earlier reply is equal to the correct reply.
		{"default-not-ignored", `Client -> Server: watch a
Client -> Server: ignore default
Client -> Server: watch a
`},
		// The next worker connects after the server has noticed that the first has disconnected.
		{"lost-with-its-worker", `Worker -> Job Server: unchecked SUBMIT_JOB_BG a "" ""
Worker -> Job Server: CAN_DO a
Worker -> Job Server: GRAB_JOB
Worker -> Job Server: WORK_STATUS 1 0 0
Worker -> Job Server: half-closes
Worker 2 -> Job Server: CAN_DO a
Worker 2 -> Job Server: GRAB_JOB
`},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fault := faults.Named(tt.fault)
				p := protocolOf(fault)
				cfg := Config{Protocol: p, Timeout: 2 * time.Second, Server: Server{Start: fuzztest.Serve(*fault), Reference: fuzztest.Serve(faults.Faultless(p.Name))}}
				l := testTriage(t, cfg)
				fd := &Finding{Name: tt.fault, Input: fuzztest.Input(t, p, tt.wire)}
				if _, fd.Fault = l.replay.execute(fd.Input); fd.Fault == nil {
					t.Fatal("no oracle reports a fault")
				}
				if l.describe(fd); !fd.Plays {
					t.Errorf("%v: the transcript does not show the fault:\n%s", fd.Fault, fd.Text)
				}
				if n := len(fd.Script.Steps); n > 10 {
					t.Errorf("%d lines:\n%s", n, fd.Text)
				}
				if _, err := transcript.Parse(p, tt.fault, fd.Text); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// examinerOf returns the triage of a server with an injected fault, and a function that returns its first finding.
func examinerOf(t *testing.T, p *codec.Protocol, fault faults.Fault) (l *examiner, reported func() *Finding) {
	var found []*Finding
	l = testTriage(t, Config{Protocol: p, Timeout: time.Second, Minimize: 30 * time.Second, Server: Server{Start: fuzztest.Serve(fault), Reference: fuzztest.Serve(faults.Faultless(p.Name))}, Reports: Reports{Found: func(fd *Finding) { found = append(found, fd) }}})
	return l, func() *Finding {
		t.Helper()
		if len(found) == 0 {
			t.Fatal("nothing is found")
		}
		return found[0]
	}
}

// seen returns a fault that was observed after inputs on one server.
func seen(p *codec.Protocol, v *exec.Fault, all ...*input.Input) *Candidate {
	candidate := &Candidate{Fault: v, Log: &input.Log{Protocol: p}}
	for i, in := range all {
		candidate.Log.Entries = append(candidate.Log.Entries, input.Entry{Input: in, Prefix: input.Nth(i)})
	}
	return candidate
}

// TestFaultThatNeedsAnotherInput tests a fault that needs an earlier input of another client: the server sends the data of that
// client to this client.
func TestFaultThatNeedsAnotherInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, reported := examinerOf(t, beanstalk.Protocol, *faults.Named("empty-body-of-another"))
		read := func(wire string) *input.Input { return fuzztest.Input(t, beanstalk.Protocol, wire) }
		idle := read("Client -> Server: list-tubes-watched\n")
		other := read("Client -> Server: use b\nClient -> Server: put 0 0 60 secret\n")
		in := read(`Client -> Server: put 0 0 60 ""
	Server -> Client: INSERTED $id
	Client -> Server: peek $id
	`)
		v, _ := f.replay.entries(seen(beanstalk.Protocol, nil, other, in).Log.Entries, &exec.Fault{Oracle: exec.Law})
		if v == nil {
			t.Fatal("no oracle reports a fault")
		}
		if f.examineNow(seen(beanstalk.Protocol, v, in)); len(f.findings) > 0 {
			t.Fatal("it is reproduced without the other input")
		}
		f.examineNow(seen(beanstalk.Protocol, v, idle, other, idle, idle, in))
		if found := reported(); len(found.Input.Steps) > 4 || !found.Plays {
			t.Errorf("%d steps, plays %v:\n%s", len(found.Input.Steps), found.Plays, found.Text)
		}
	})
}

// TestFaultThatNeedsManyInputs tests a fault that needs more inputs than one input can combine: the server is correct on
// its first 60 connections. The finding has the log of the inputs, with which the fault appears again.
func TestFaultThatNeedsManyInputs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const correct = 60
		fault := faults.Named("default-not-ignored")
		f, reported := examinerOf(t, beanstalk.Protocol, *fault)
		f.servers.Start = func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "tired", func(ctx context.Context, ln net.Listener) error {
				first := &handed{ln, make(chan net.Conn)}
				defer close(first.conns)
				go faults.Faultless("beanstalk").Serve(ctx, first)
				for range correct {
					c, err := ln.Accept()
					if err != nil {
						return nil
					}
					first.conns <- c
				}
				return fault.Serve(ctx, ln)
			})
		}
		in := fuzztest.Input(t, beanstalk.Protocol, "Client -> Server: watch a\nClient -> Server: ignore default\nClient -> Server: watch a\n")
		all := slices.Repeat([]*input.Input{in}, correct+10)
		v, n := f.replay.entries(seen(beanstalk.Protocol, nil, all...).Log.Entries, &exec.Fault{Oracle: exec.Law})
		if v == nil {
			t.Fatal("no oracle reports a fault")
		}
		f.examineNow(seen(beanstalk.Protocol, v, all[:n]...))
		if len(f.findings) > 0 {
			t.Fatal("the finding does not wait for a simpler observation")
		}
		time.Sleep(deferral)
		f.examine(f.next(either))
		found := reported()
		if found.Inputs <= maxJoined || found.Inputs != len(found.Log.Entries) || found.Shown < minReproductions {
			t.Errorf("%d inputs, %d in the log, reproduced %d of %d times", found.Inputs, len(found.Log.Entries), found.Shown, found.Tried)
		}
		if again, _ := f.replay.entries(found.Log.Entries, v); !again.Same(v) {
			t.Errorf("the log of the finding shows %v, not %v", again, v)
		}
	})
}

// TestNamesUsedAgain tests inputs that use the names of an earlier input again, as a worker lets them if the earlier input
// has left nothing on the server. If the server has kept a job, the finding has both inputs with the same names. If the
// earlier input is reduced so that it leaves a job, the other one meets that job, which is not a failure.
func TestNamesUsedAgain(t *testing.T) {
	t.Parallel()
	work := func(wire string) *Candidate {
		in := fuzztest.Input(t, gearman.Protocol, wire)
		candidate := seen(gearman.Protocol, nil, in, fuzztest.Input(t, gearman.Protocol, `Client -> Job Server: SUBMIT_JOB_BG a u second
Worker -> Job Server: CAN_DO a
Worker -> Job Server: GRAB_JOB
`))
		candidate.Log.Entries[1].Prefix = candidate.Log.Entries[0].Prefix
		return candidate
	}
	synctest.Test(t, func(t *testing.T) {
		f, reported := examinerOf(t, gearman.Protocol, *faults.Named("empty-result-forgotten"))
		candidate := work(`Client -> Job Server: SUBMIT_JOB_BG a u first
Worker -> Job Server: CAN_DO a
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN $id a first
Worker -> Job Server: WORK_COMPLETE $id ""
`)
		if candidate.Fault, _ = f.replay.entries(candidate.Log.Entries, &exec.Fault{Oracle: exec.Law}); candidate.Fault == nil {
			t.Fatal("no oracle reports a fault")
		}
		f.examineNow(candidate)
		if found := reported(); found.Inputs != 1 || !found.Plays {
			t.Errorf("%d inputs, plays %v:\n%s", found.Inputs, found.Plays, found.Text)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f, _ := examinerOf(t, gearman.Protocol, faults.Faultless("gearman"))
		all := work("Client -> Job Server: SUBMIT_JOB_BG a u first\n").Log.Entries
		if v, _ := f.replay.entries(all, &exec.Fault{Oracle: exec.Law}); v != nil {
			t.Errorf("the second input meets the job of the first: %s", v)
		}
	})
}

// handed is a listener whose connections another listener has accepted.
type handed struct {
	net.Listener
	conns chan net.Conn
}

func (l *handed) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *handed) Close() error { return nil }

// TestFaultThatNeedsThePreamble tests that a finding is reproduced when its fault appears only after the messages that fuzz
// sends first on each connection to a server that many inputs share.
func TestFaultThatNeedsThePreamble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, reported := examinerOf(t, beanstalk.Protocol, *faults.Named("body-of-4096-counted-4095"))
		in := fuzztest.Input(t, beanstalk.Protocol, `Client -> Server: watch a
	Client -> Server: ignore default
	Client -> Server: put 0 0 60 "x"*4096
	Client -> Server: reserve-with-timeout 0
	`)
		if _, v := f.replay.execute(in); v != nil {
			t.Fatalf("it appears without the preamble: %v", v)
		}
		v, _ := f.replay.entries(seen(beanstalk.Protocol, nil, in, in).Log.Entries, &exec.Fault{Oracle: exec.Framing})
		if v == nil {
			t.Fatal("no oracle reports a fault")
		}
		f.examineNow(seen(beanstalk.Protocol, v, in))
		if found := reported(); len(found.Input.Steps) > 3 || !found.Plays {
			t.Errorf("%d steps, plays %v:\n%s", len(found.Input.Steps), found.Plays, found.Text)
		}
	})
}

// TestCauseAmongMany tests that triage finds the one of many inputs that disturbs other clients, although the server has
// another fault.
func TestCauseAmongMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		both := *faults.Named("list-sent-to-another")
		both.Script += "\n" + faults.Named("body-of-4096-counted-4095").Script
		f, reported := examinerOf(t, beanstalk.Protocol, both)
		read := func(wire string) *input.Input { return fuzztest.Input(t, beanstalk.Protocol, wire) }
		wrong := read("Client -> Server: put 0 0 60 \"x\"*4096\nServer -> Client: INSERTED $id\nClient -> Server: peek $id\n")
		idle := read("Client -> Server: use b\nClient -> Server: put 0 0 60 x\n")
		cause := read("Client -> Server: list-tubes\n")
		f.examineNow(seen(beanstalk.Protocol, &exec.Fault{Oracle: exec.Disturbed, Step: -1}, idle, wrong, idle, cause, idle, wrong))
		if found := reported(); len(found.Input.Steps) != 1 || found.Fault.Oracle != exec.Disturbed {
			t.Errorf("%v: %v", found.Fault, found.Input)
		}
	})
}

// TestAttemptsAreIndependent tests that the result of an attempt to minimize does not depend on what earlier attempts
// have left on the server. The server queues a job of the lowest priority twice, so deleting it leaves a copy.
func TestAttemptsAreIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, reported := examinerOf(t, beanstalk.Protocol, *faults.Named("last-priority-put-twice"))
		in := fuzztest.Input(t, beanstalk.Protocol, `Client -> Server: use b
	Client 2 -> Server: list-tubes-watched
	Client -> Server: put 4294967295 0 60 x
	Server -> Client: INSERTED $id
	Client -> Server: stats-job $id
	Client -> Server: delete $id
	Client 2 -> Server: use b
	Client 2 -> Server: peek-ready
	`)
		_, v := f.replay.execute(in)
		if v == nil {
			t.Fatal("no oracle reports a fault")
		}
		f.examineNow(seen(beanstalk.Protocol, v, in))
		found := reported()
		var types []string
		for i := range found.Input.Steps {
			types = append(types, found.Input.Steps[i].Type.Name)
		}
		// If copies of jobs of earlier attempts remained, peek-ready alone would seem to be enough.
		if got := strings.Join(types, " "); got != "put delete peek-ready" || !found.Plays {
			t.Errorf("minimized to %s, plays %v:\n%s", got, found.Plays, found.Text)
		}
	})
}

// TestFaultThatNeedsPipelinedMessages tests a fault that appears only if messages arrive together. The transcript sends them together.
func TestFaultThatNeedsPipelinedMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, reported := examinerOf(t, gearman.Protocol, *faults.Named("grab-after-can-do-lost"))
		in := fuzztest.Input(t, gearman.Protocol, `Client -> Job Server: SUBMIT_JOB_BG a "" ""
	Worker -> Job Server: CAN_DO b
	Worker -> Job Server: CAN_DO a
	Worker -> Job Server: ECHO_REQ x
	Worker -> Job Server: GRAB_JOB
	`)
		for i := range in.Steps {
			in.Steps[i].Conn = 0 // only messages on one connection can be pipelined
		}
		if _, v := f.replay.execute(in); v != nil {
			t.Fatalf("it appears with one message after the other: %v", v)
		}
		_, v := f.replay.execute(in.Together(input.Pipelined))
		if v == nil {
			t.Fatal("no oracle reports a fault")
		}
		f.examineNow(seen(gearman.Protocol, v, in))
		found := reported()
		if found.Input.Mode == input.OneByOne || len(found.Input.Steps) > 3 || !found.Plays || found.Script.Value("segments") != "coalesced" {
			t.Errorf("mode %d, %d steps, plays %v:\n%s", found.Input.Mode, len(found.Input.Steps), found.Plays, found.Text)
		}
		var order []string
		events, at := found.Events(gearman.Protocol)
		if at < 0 || at >= len(events) {
			t.Errorf("the finding shows in message %d of %d", at, len(events))
		}
		for _, e := range events {
			if e.Frame.Type != nil {
				order = append(order, e.Frame.Type.Name)
			}
		}
		if grab, created := slices.Index(order, "GRAB_JOB"), slices.Index(order, "JOB_CREATED"); grab < 0 || created < grab {
			t.Errorf("the messages are not together in the capture: %v", order)
		}
	})
}

// TestFaultThatNeedsAdjacentMessages tests a fault that appears only if one message directly follows another in the same segment.
func TestFaultThatNeedsAdjacentMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, first := examinerOf(t, beanstalk.Protocol, faults.Fault{Name: "watch-in-segment-of-use", Protocol: beanstalk.Protocol.Name,
			Script: `misread-segment use\x20b\r\nwatch\x20b\r\n "use b\r\nwatch default\r\n"`})
		in := fuzztest.Input(t, beanstalk.Protocol, `Client -> Server: ignore a
	Client -> Server: use b
	Client -> Server: watch b
	Client -> Server: list-tubes-watched
	`)
		if _, v := f.replay.execute(in); v != nil {
			t.Fatalf("it appears with one message after the other: %v", v)
		}
		_, v := f.replay.execute(in.Together(input.Joined))
		if v == nil {
			t.Fatal("no oracle reports a fault")
		}
		f.examineNow(seen(beanstalk.Protocol, v, in))
		found := first()
		if found.Input.Mode != input.Joined || len(found.Input.Steps) != 2 || !found.Plays || found.Script.Value("segments") != "coalesced" {
			t.Errorf("mode %d, %d steps, plays %v:\n%s", found.Input.Mode, len(found.Input.Steps), found.Plays, found.Text)
		}
	})
}

// TestCauseOfForms tests that a fault has one cause, whether the server gets the messages one after the other or at
// once, and whether a message has a simpler type, if it appears in all cases.
func TestCauseOfForms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _ := examinerOf(t, gearman.Protocol, *faults.Named("workload-of-4096-cut"))
		const wire = `Worker -> Job Server: unchecked SUBMIT_JOB_BG a "" "x"*4096
	Worker -> Job Server: CAN_DO a
	Worker -> Job Server: GRAB_JOB
	Worker -> Job Server: WORK_FAIL 1
	`
		one := fuzztest.Input(t, gearman.Protocol, wire)
		limited := fuzztest.Input(t, gearman.Protocol, strings.Replace(wire, "CAN_DO a", "CAN_DO_TIMEOUT a 0", 1))
		var causes []cause
		for _, in := range []*input.Input{one, one.Together(input.Pipelined), limited} {
			_, v := f.replay.execute(in)
			if v == nil {
				t.Fatalf("no oracle reports a fault of %s", in)
			}
			causes = append(causes, f.onlyExaminer.causeOf(in, v))
		}
		for _, c := range causes[1:] {
			if !causes[0].same(&c) || !slices.Equal(causes[0].acts, c.acts) {
				t.Errorf("two causes: %+v, %+v", causes[0], c)
			}
		}
	})
}

// TestJoinedAfterSleep tests that a message that wakes a worker does not count as the reply to the next request, even if
// the worker requested to sleep with raw bytes.
func TestJoinedAfterSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _ := examinerOf(t, danga.Protocol, faults.Faultless(danga.Protocol.Name))
		in := fuzztest.Input(t, danga.Protocol, `Worker -> Job Server: raw "GEAR" 03 00 00 00 00
	Worker -> Job Server: unchecked job_create_req a "" 0 1 ""
	Worker -> Job Server: worker_connect a
	Worker -> Job Server: job_assign_req
	Worker -> Job Server: job_status_announce 0 0 0
	`)
		for range 20 {
			if _, v := f.replay.execute(in.Together(input.Joined)); v != nil {
				t.Fatal(v)
			}
		}
	})
}

func protocolOf(f *faults.Fault) *codec.Protocol {
	all := codec.Protocols()
	return all[slices.IndexFunc(all, func(p *codec.Protocol) bool { return p.Name == f.Protocol })]
}

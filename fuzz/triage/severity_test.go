package triage

import (
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
)

// TestLosesJob tests that a job is lost if a correct server assigns it, or reports its end, and the other server does not.
func TestLosesJob(t *testing.T) {
	sent := func(conn, step int, name string) exec.Event {
		return exec.Event{Conn: conn, From: codec.Server, Verb: transcript.Send, Type: gearman.Protocol.TypeNamed(name), Step: step}
	}
	correct := &exec.Record{Events: []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "JOB_ASSIGN"), sent(0, 3, "WORK_COMPLETE")}}
	for _, tt := range []struct {
		name  string
		fault exec.Fault
		got   []exec.Event
		lost  bool
	}{
		{"not assigned", exec.Fault{Oracle: exec.Law, Conn: 1, Step: 2}, []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "NO_JOB")}, true},
		{"end not reported", exec.Fault{Oracle: exec.Law, Conn: 0, Step: 3}, []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "JOB_ASSIGN")}, true},
		{"assigned with a wrong field", exec.Fault{Oracle: exec.Law, Conn: 1, Step: 2}, []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "JOB_ASSIGN")}, false},
		{"not created", exec.Fault{Oracle: exec.Law, Conn: 0, Step: 1}, nil, false},
		{"crash", exec.Fault{Oracle: exec.Signal, Conn: -1, Step: 2}, nil, false},
	} {
		if got := extraJobs(&tt.fault, correct, &exec.Record{Events: tt.got}) < 0; got != tt.lost {
			t.Errorf("%s: got %v, expected %v", tt.name, got, tt.lost)
		}
	}
}

// TestSeverityFollowsEffect tests severities that depend on what the fault does to jobs, and not only on the wrong reply.
func TestSeverityFollowsEffect(t *testing.T) {
	p := gearman.Protocol
	asleep := exec.Fault{Oracle: exec.Law, Law: "missing message", Rule: "gearman.worker.wake", Text: "expected NOOP, got no message", Conn: 0, Step: -1}
	closed := exec.Fault{Oracle: exec.Law, Law: closedLaw, Conn: 0, Step: 2}
	const sleeps = "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: PRE_SLEEP\n"
	const submits = "Client -> Job Server: SUBMIT_JOB a \"\" x\n"
	event := func(from codec.Side, name string) exec.Event {
		return exec.Event{From: from, Verb: transcript.Send, Type: p.TypeNamed(name)}
	}
	works := []exec.Event{event(codec.Peer, "GRAB_JOB"), event(codec.Server, "JOB_ASSIGN"), event(codec.Peer, "WORK_STATUS")}
	for _, tt := range []struct {
		what   string
		p      *codec.Protocol
		wire   string
		fault  exec.Fault
		events []exec.Event
		want   Severity
	}{
		{"a sleeping worker that is not woken", p, sleeps + submits, asleep, nil, LostJob},
		{"a worker that sleeps again before it asks", p, sleeps + "Worker -> Job Server: PRE_SLEEP\n" + submits, asleep, nil, WrongAnswer},
		{"a worker that registers while it sleeps", p, sleeps + "Worker -> Job Server: CAN_DO b\n" + submits, asleep, nil, WrongAnswer},
		{"a worker that is disconnected with its job", p, "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nWorker -> Job Server: WORK_STATUS h 1 2\n", closed, works, DuplicateJob},
		{"a worker that is disconnected after its job", p, "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nWorker -> Job Server: WORK_STATUS h 1 2\n", closed, append(works[:2:2], event(codec.Peer, "WORK_COMPLETE")), WrongAnswer},
		{"an illegal value that is sent on", p, "Worker -> Job Server: unchecked WORK_STATUS h soon 0\n", exec.Fault{Oracle: exec.Framing, Rule: "gearman.number.decimal"}, nil, Cosmetic},
		{"a malformed reply", p, "Client -> Job Server: unchecked GET_STATUS h\n", exec.Fault{Oracle: exec.Framing, Rule: "gearman.number.decimal"}, nil, WrongAnswer},
		{"a wrong number", p, "Client -> Job Server: unchecked GET_STATUS h\n", exec.Fault{Oracle: exec.Law, Law: wrongContent, Rule: "gearman.status.progress"}, nil, WrongAnswer},
		{"a body that is executed", beanstalk.Protocol, "Client -> Server: unchecked put 4294967296 0 0 x\n", exec.Fault{Oracle: exec.Law, Rule: "beanstalk.put.bad-format-body", Got: "refuse", Resync: true}, nil, RequestSmuggling},
	} {
		fd := &Finding{Fault: &tt.fault, Input: fuzztest.Input(t, tt.p, tt.wire), Record: &exec.Record{Events: tt.events}}
		if got := fd.Severity(tt.p); got != tt.want {
			t.Errorf("%s: got %s, expected %s", tt.what, got, tt.want)
		}
	}
}

// TestWrongReplyShowsLostJob tests that a wrong reply is a lost job if workers cannot get the job afterward, and not if
// they can.
func TestWrongReplyShowsLostJob(t *testing.T) {
	t.Parallel()
	hidden := faults.Fault{Name: "hides a job", Protocol: "beanstalk", Oracle: "lost",
		Script: `write stats-reply {replace_all(raw, "current-jobs-ready: 1", "current-jobs-ready: 0")}`}
	given := faults.Fault{Name: "fails a job with its worker", Protocol: "gearman", Oracle: "lost", Script: `note JOB_ASSIGN peer.job={job_handle}
note (closed) gone=yes when peer.notes.job != nil
then give WORK_FAIL {peer.notes.job}
`}
	for _, tt := range []struct {
		p     *codec.Protocol
		fault faults.Fault
		wire  string
		want  Severity
	}{
		{gearman.Protocol, *faults.Named("low-job-lost"), "Client -> Job Server: SUBMIT_JOB_LOW_BG a \"" + strings.Repeat("u", 64) + "\" x\nJob Server -> Client: JOB_CREATED $h\nClient -> Job Server: GET_STATUS $h\n", LostJob},
		{gearman.Protocol, given, "Client -> Job Server: SUBMIT_JOB a \"\" x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nWorker -> Job Server: closes\n", LostJob},
		{beanstalk.Protocol, hidden, "Client -> Server: put 0 0 60 x\nClient -> Server: stats-tube default\n", WrongAnswer},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, reported := examinerOf(t, tt.p, tt.fault)
			in := fuzztest.Input(t, tt.p, tt.wire)
			_, v := e.replay.execute(in)
			if v == nil {
				t.Fatal("no oracle reports a fault")
			}
			e.examineNow(seen(tt.p, v, in))
			if fd := reported(); fd.Severity(tt.p) != tt.want {
				t.Errorf("%s: got %s, expected %s: %v", tt.fault.Name, fd.Severity(tt.p), tt.want, fd.Fault)
			}
		})
	}
}

// TestImpact tests that each oracle has a severity, a title and a sentence that ends.
func TestImpact(t *testing.T) {
	for oracle := range oracles {
		for _, fd := range []*Finding{
			{Fault: &exec.Fault{Oracle: oracle}, Reproduced: true, Input: &input.Input{Steps: make([]input.Step, 1)}},
			{Fault: &exec.Fault{Oracle: oracle}, Input: &input.Input{}},
			{Fault: &exec.Fault{Oracle: oracle, Rule: "gearman.queue.fifo"}, Input: &input.Input{Steps: []input.Step{{Conn: 2}}}},
			{Fault: &exec.Fault{Oracle: oracle}, Jobs: -1, Input: &input.Input{}},
		} {
			text := fd.Impact(gearman.Protocol)
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "  ") || fd.Title(gearman.Protocol) == "" || fd.Severity(gearman.Protocol).Level() == "" {
				t.Errorf("%s: %q, %q", oracle, text, fd.Title(gearman.Protocol))
			}
		}
	}
}

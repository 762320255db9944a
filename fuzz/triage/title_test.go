package triage

import (
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/model"
)

// TestTitles tests that a title says what is wrong, where, and after which message with which unusual value.
func TestTitles(t *testing.T) {
	crash := exec.Fault{Oracle: exec.Signal, Signal: "segmentation fault", Conn: -1, Step: -1}
	at := func(f exec.Fault, stack, law string) exec.Fault {
		f.Stack, f.Law = strings.Split(stack, " "), law
		return f
	}
	law := func(conn, step int, what, text string) exec.Fault {
		return exec.Fault{Oracle: exec.Law, Law: what, Text: text, Conn: conn, Step: step}
	}
	refused := func(conn, step int, text string) exec.Fault {
		f := law(conn, step, "unexpected message", text)
		f.Got = codec.Refuse.String()
		return f
	}
	for _, tt := range []struct {
		p     *codec.Protocol
		wire  string
		fault exec.Fault
		want  string
	}{
		{gearman.Protocol, "Worker -> Job Server: unchecked CAN_DO_TIMEOUT \"\" 18446744073709551617\n", at(crash, "gearmand+0x377f8", "x"),
			"SIGSEGV after CAN_DO_TIMEOUT with a timeout above 2^64"},
		{gearman.Protocol, "Worker -> Job Server: CAN_DO_TIMEOUT f 4294967295\n", at(crash, "free_job main", "segmentation fault: free_job < main at job.c:7"),
			"SIGSEGV in free_job at job.c:7 after CAN_DO_TIMEOUT with a timeout of 2^32 - 1"},
		{gearman.Protocol, "Client -> Job Server: raw 00 \"REQ\" ff ff ff ff 00 00 00 00\n", exec.Fault{Oracle: exec.Exit, Stack: []string{"gearmand+0x1de79"}, Conn: -1, Step: -1},
			"server crash after a malformed message (Packet type: expected a known packet type, got 4294967295)"},
		{gearman.Protocol, "Admin -> Job Server: raw \"create function  \\n\"\nAdmin 2 -> Job Server: version\n", at(crash, "gearmand+0x377f8", "x"),
			"SIGSEGV after a malformed create-function (Function: expected one separator before the argument, got several)"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB \"\" \"x\"*72 \"\"\n", refused(0, 0, `expected JOB_CREATED, got ERROR "ARGUMENT_TOO_LARGE" "Unique value too large"`),
			`the server rejects SUBMIT_JOB with a unique ID of 72 bytes (ERROR "ARGUMENT_TOO_LARGE")`},
		{gearman.Protocol, fuzztest.Work, law(1, 2, "unexpected message", `expected a job, got NO_JOB`),
			"the worker receives NO_JOB although a job waits after SUBMIT_JOB and GRAB_JOB"},
		{gearman.Protocol, fuzztest.Work, law(1, 2, "another's job", `expected another job or none, because another worker has this job; got JOB_ASSIGN "H:1"`),
			"the worker receives a wrong JOB_ASSIGN (expected another job or none, because another worker has this job) after SUBMIT_JOB and GRAB_JOB"},
		{gearman.Protocol, "Worker -> Job Server: CANT_DO a\nWorker -> Job Server: unchecked WORK_COMPLETE H:1 x\n", refused(0, 1, `expected WORK_COMPLETE H:1, got ERROR "JOB_NOT_FOUND" "Job given in work result not found"`),
			`the server rejects WORK_COMPLETE (ERROR "JOB_NOT_FOUND") after CANT_DO`},
		{beanstalk.Protocol, "Client -> Server: kick 5\n", law(0, 0, wrongContent, "expected BAD_FORMAT, because the message is illegal (byte 5, Bound: expected a number); got KICKED 0"),
			"the server does not reject kick with a bound of 5 (expected BAD_FORMAT, got KICKED)"},
		{beanstalk.Protocol, "Client -> Server: reserve-with-timeout 4294967296\n", law(0, 0, wrongContent, "expected no TIMED_OUT yet, because the timeout of the reserve has not expired; got TIMED_OUT"),
			"the client receives TIMED_OUT too early after reserve-with-timeout with a timeout of 2^32"},
		{gearman.Protocol, fuzztest.Work, law(0, 3, "missing message", `expected WORK_COMPLETE H:1, got no message`),
			"the client receives no WORK_COMPLETE after SUBMIT_JOB, GRAB_JOB and WORK_COMPLETE"},
		{gearman.Protocol, "Worker -> Job Server: PRE_SLEEP\nWorker -> Job Server: resets\n", exec.Fault{Oracle: exec.Descriptors, Conn: -1, Step: -1},
			"file descriptor leak after PRE_SLEEP and a disconnect"},
		{beanstalk.Protocol, "Client -> Server: urgent \"x\"\n", exec.Fault{Oracle: exec.Processor, Conn: -1, Step: -1}, "the server uses all time of a CPU core after urgent data"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB a " + strings.Repeat("u", 64) + " \"\\n\"\nClient 2 -> Job Server: SUBMIT_JOB_HIGH a " + strings.Repeat("u", 64) + " \"\\n\"\nClient -> Job Server: SUBMIT_JOB_BG a " + strings.Repeat("u", 64) + " \"\\n\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n",
			law(2, 4, "unexpected message", "expected a job, got NO_JOB"), "the worker receives NO_JOB although a job waits after SUBMIT_JOB, SUBMIT_JOB_HIGH, SUBMIT_JOB_BG with a unique ID of 64 bytes and special characters in its workload and GRAB_JOB"},
		{beanstalk.Protocol, "Client -> Server: delete 1\n", exec.Fault{Oracle: exec.Sanitizer, Law: "AddressSanitizer heap-use-after-free: remove_job < dispatch at server.c:120",
			Text: "AddressSanitizer: heap-use-after-free: READ of size 8", Stack: []string{"remove_job", "dispatch"}, Conn: -1, Step: -1},
			"heap-use-after-free (READ of size 8) in remove_job at server.c:120 after delete"},
		{beanstalk.Protocol, "Client -> Server: reserve-with-timeout 4294967296\n", exec.Fault{Oracle: exec.HangAll, Conn: -1, Step: 0},
			"the server answers no client after reserve-with-timeout with a timeout of 2^32"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB a \"\" x\nWorker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: GRAB_JOB\nJob Server -> Client: nothing for 1550ms\n",
			law(1, 3, "missing message", `expected WORK_FAIL H:1, got no message`),
			"the client receives no WORK_FAIL after SUBMIT_JOB, CAN_DO_TIMEOUT with a timeout of 1, GRAB_JOB and 1.55s without messages"},
		{gearman.Protocol, "Client 2 -> Job Server: stops-reading\nClient 2 -> Job Server: raw \"getpid\\n\"*18724\nWorker -> Job Server: CAN_DO a\n", exec.Fault{Oracle: exec.HangConn, Conn: 1, Step: 2},
			"the server stops answering the worker while another client does not read its replies"},
		{gearman.Protocol, fuzztest.Work, law(1, 2, model.ChangedData, `expected function "a" and workload "x", because the client submitted them; got JOB_ASSIGN "H:1" "a" "n"`),
			"the worker receives a job with other data than was submitted after SUBMIT_JOB and GRAB_JOB"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB a u x\nClient -> Job Server: closes\nClient 2 -> Job Server: SUBMIT_JOB a u x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n",
			law(2, 4, "unexpected message", "expected a job, got NO_JOB"),
			"the worker receives NO_JOB although a job waits after SUBMIT_JOB, a disconnect of the client, SUBMIT_JOB and GRAB_JOB"},
		{beanstalk.Protocol, "Client -> Server: put 0 0 60 x\nClient -> Server: reserve-with-timeout 0\n", law(0, 1, "unexpected message", "expected job 5, because it is ready; got TIMED_OUT"),
			"the client receives TIMED_OUT although a job waits after put with a TTR of 60 and reserve-with-timeout"},
		{gearman.Protocol, "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CANT_DO a\nWorker -> Job Server: GRAB_JOB\n", law(0, 2, "unexpected message", `expected NO_JOB, got JOB_ASSIGN "H:1" "a" ""`),
			"the worker receives JOB_ASSIGN although no job waits after CANT_DO and GRAB_JOB"},
		{gearman.Protocol, "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: PRE_SLEEP\nClient -> Job Server: SUBMIT_JOB a \"\" x\n", law(0, 2, "missing message", "expected NOOP, got no message"),
			"the worker sleeps and receives no NOOP although a job waits after PRE_SLEEP and SUBMIT_JOB"},
		{gearman.Protocol, "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: PRE_SLEEP\nWorker -> Job Server: unchecked SUBMIT_JOB_EPOCH a \"\" 1 x\n", law(0, 2, "unexpected message", "expected JOB_CREATED, got NOOP"),
			"the worker receives an unexpected NOOP after PRE_SLEEP and SUBMIT_JOB_EPOCH"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB a b x\nAdmin -> Job Server: cancel-job H:1\nClient -> Job Server: SUBMIT_JOB a b x\n",
			law(0, 2, wrongContent, `expected a new handle, because another job (function "a", unique ID "b") already has this handle; got JOB_CREATED "H:1"`),
			"the client receives a wrong JOB_CREATED (expected a new handle, because another job already has this handle) after SUBMIT_JOB, cancel-job and SUBMIT_JOB"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB a b x\nAdmin -> Job Server: drop-function a\n", law(1, 1, "unexpected message", "expected ERR or ERROR, got OK"),
			"the server does not reject drop-function (expected ERR or ERROR, got OK) after SUBMIT_JOB"},
		{gearman.Protocol, "Client -> Job Server: SUBMIT_JOB_SCHED a b 1 3 2 2 2 x\n", law(0, 0, closedLaw, "expected the connection to stay open, but the server closed it"),
			"the server closes the connection after SUBMIT_JOB_SCHED with an hour of 3 and a day of month of 2"},
		{beanstalk.Protocol, "Client -> Server: unchecked put 4294967296 0 0 x\n", exec.Fault{Oracle: exec.Law, Law: "unexpected message", Text: "expected no message, got UNKNOWN_COMMAND", Got: "refuse", Resync: true},
			"the server executes data as a request after put with a priority of 2^32"},
		{gearman.Protocol, "Client -> Job Server: unchecked GET_STATUS \"\"\n", exec.Fault{Oracle: exec.Framing, Text: "byte 12, Job handle: expected a value that is not empty, got an empty value [gearman.handle.not-empty]"},
			"the client receives a malformed reply (Job handle: expected a value that is not empty, got an empty value) after GET_STATUS with an empty job handle"},
	} {
		in := fuzztest.Input(t, tt.p, tt.wire)
		if got := (&Finding{Fault: &tt.fault, Input: in}).Title(tt.p); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestProbes tests that a barrier that jobwire has added appears neither in the text about a fault nor in the
// conversation that shows it, and that a request of the input itself does.
func TestProbes(t *testing.T) {
	p := gearman.Protocol
	b := exec.NewBarrier(p, p.Barriers[0])
	own := fuzztest.Input(t, p, "Client -> Job Server: ECHO_REQ x\n")
	other := fuzztest.Input(t, p, "Worker -> Job Server: ALL_YOURS\n")
	f := &exec.Fault{Oracle: exec.Law, Law: "unexpected message", Text: `expected NOOP or ECHO_RES with the same data, got ERROR "x, got y" "z"`}
	if got := withoutProbes(b, other, f).Text; got != `expected NOOP, got ERROR "x, got y" "z"` {
		t.Errorf("got %s", got)
	}
	if got := withoutProbes(b, own, f).Text; got != f.Text {
		t.Errorf("got %s", got)
	}
	hang := &exec.Fault{Oracle: exec.HangConn, Text: "the server did not reply to ECHO_REQ within 2s"}
	if got := withoutProbes(b, other, hang).Text; got != "the server did not reply to a further request within 2s" {
		t.Errorf("got %s", got)
	}
	frame := func(side codec.Side, name, nonce string, barrier bool) exec.Event {
		m := b.Message([]byte(nonce))
		if m.Type = p.TypeNamed(name); len(m.Type.Fields) == 0 {
			m.Args = nil
		}
		raw, err := p.NewSession(codec.Options{}).Append(nil, side, &m)
		if err != nil {
			t.Fatal(err)
		}
		return exec.Event{From: side, Verb: transcript.Send, Type: m.Type, Raw: raw, Args: m.Args, Barrier: barrier}
	}
	fd := &Finding{Input: other, Inputs: 1, Fault: &exec.Fault{Oracle: exec.Law, Text: "expected no message, got ERROR", Step: 0}, Record: &exec.Record{Events: []exec.Event{
		frame(codec.Peer, "ALL_YOURS", "", false), frame(codec.Peer, "ECHO_REQ", "nonce1", true), frame(codec.Server, "ECHO_RES", "nonce1", true)}}}
	if got, want := fd.Conversation(p), "Worker -> Job Server: ALL_YOURS\n# here: expected no message, got ERROR\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSentences tests that a finding that needs several inputs has a sentence for each.
func TestSentences(t *testing.T) {
	p := gearman.Protocol
	log := &input.Log{Protocol: p}
	for _, wire := range []string{"Admin -> Job Server: cancel-job nothing\nAdmin -> Job Server: closes\n",
		"Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nClient -> Job Server: SUBMIT_JOB a \"\" x\n"} {
		log.Entries = append(log.Entries, input.Entry{Input: fuzztest.Input(t, p, wire), Prefix: "z00001."})
	}
	fd := &Finding{Fault: &exec.Fault{Oracle: exec.Exit}, Input: log.Entries[1].Input, Inputs: 2, Log: log}
	want := "1. Admin sends cancel-job nothing, closes\n2. Worker sends CAN_DO a, GRAB_JOB; Client sends SUBMIT_JOB a \"\" x\n"
	if got := fd.Conversation(p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

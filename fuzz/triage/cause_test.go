package triage

import (
	"strings"
	"testing"

	"jobwire/codec/gearman"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/model"
)

// TestBehavior tests that bytes that begin a message, together with the messages after them, count as this message.
func TestBehavior(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n", "register ask"},
		{"Worker -> Job Server: raw 00 \"REQ\" 00 00 00 0f 00 00 00\nWorker -> Job Server: GRAB_JOB\n", " gearman.handle.not-empty"},
		{"Worker -> Job Server: raw 00 \"REQ\" 00 00 00 09 00 00 00 00 00\nWorker -> Job Server: GRAB_JOB\n", "ask gearman.packet.magic"},
		{"Client -> Job Server: raw 00 \"REQ\"\nClient 2 -> Job Server: ECHO_REQ a\nClient -> Job Server: unchecked GRAB_JOB\nClient -> Job Server: ECHO_REQ a\n", " echo  gearman.packet.type-known"},
	} {
		in := fuzztest.Input(t, gearman.Protocol, tt.src)
		var does []string
		for _, a := range behavior(gearman.Protocol, in) {
			does = append(does, a.does)
		}
		if got := strings.Join(does, " "); got != tt.want {
			t.Errorf("%s: got %q, expected %q", tt.src, got, tt.want)
		}
	}
}

// TestKeys tests that findings with the same cause have the same key: a hang after different inputs, and a connection that
// the server closes after different messages of the same kind and size.
func TestKeys(t *testing.T) {
	read := func(src string) *input.Input { return fuzztest.Input(t, gearman.Protocol, src) }
	first := read("Worker -> Job Server: CAN_DO a\nWorker -> Job Server: WORK_COMPLETE h x\n")
	longer := read("Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nWorker -> Job Server: WORK_FAIL h\n")
	other := read("Worker -> Job Server: CAN_DO a\nWorker -> Job Server: PRE_SLEEP\n")
	hang := func(in *input.Input) string {
		return key(gearman.Protocol, in, &exec.Fault{Oracle: exec.HangAll, Law: "no connection answered", Step: len(in.Steps) - 1})
	}
	if hang(first) != hang(longer) {
		t.Errorf("one hang has two keys: %q, %q", hang(first), hang(longer))
	}
	if hang(first) == hang(other) {
		t.Errorf("two hangs have one key: %q", hang(first))
	}
	unread := "Client -> Job Server: stops-reading\nClient -> Job Server: raw \"getpid\\n\"*20000\n"
	if a, b := hang(read(unread+"Worker -> Job Server: CAN_DO a\n")), hang(read(unread+"Client 2 -> Job Server: ECHO_REQ a\n")); a != b {
		t.Errorf("a hang because a client does not read has two keys: %q, %q", a, b)
	}
	long := read("Worker -> Job Server: CAN_DO \"" + strings.Repeat("x", 8000) + "\"\n")
	closed := func(in *input.Input) string {
		return key(gearman.Protocol, in, &exec.Fault{Oracle: exec.Law, Law: closedLaw, Step: len(in.Steps) - 1})
	}
	if closed(first) == closed(other) || closed(other) == closed(long) || closed(read("Worker -> Job Server: CAN_DO a\n")) == closed(long) {
		t.Error("connections that are closed for different reasons have one key")
	}
	if closed(long) != closed(read("Worker -> Job Server: CANT_DO \""+strings.Repeat("x", 8001)+"\"\n")) {
		t.Error("connections that are closed because a message is too long have two keys")
	}
	changed := func(src string) string {
		return key(gearman.Protocol, read(src), &exec.Fault{Oracle: exec.Law, Law: model.ChangedData})
	}
	lost := changed("Client -> Job Server: SUBMIT_JOB a \"\" x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n")
	if lost != changed("Client -> Job Server: SUBMIT_JOB_LOW a \"\" x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB_ALL\nWorker -> Job Server: WORK_FAIL h\n") {
		t.Error("job data that is changed whatever it is has two keys")
	}
	if lost == changed("Client -> Job Server: SUBMIT_JOB a \"\" \"\\0\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n") {
		t.Error("job data that is changed only if it is unusual has the key of any data")
	}
	skipped := func(in *input.Input, law string) string {
		return key(gearman.Protocol, in, &exec.Fault{Oracle: exec.Law, Law: law, Rule: "r", Resync: true})
	}
	if skipped(first, "unexpected message") != skipped(long, closedLaw) {
		t.Error("bytes that a server reads although it should skip them have two keys")
	}
	wrong := func(text, src string) string {
		return key(gearman.Protocol, read(src), &exec.Fault{Oracle: exec.Law, Law: wrongContent, Text: text})
	}
	const joined = "Client -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: closes\nClient 2 -> Job Server: SUBMIT_JOB a u \"\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n"
	if wrong("expected a job, got NO_JOB", joined) == wrong("expected a job, got NO_JOB", "Client 2 -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: closes\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n") {
		t.Error("a submission that joins an abandoned job, and a job that is abandoned although another client waits for it, have one key")
	}
	if a, b := wrong(`expected handle H:1, because that job (function "a") is queued; got JOB_CREATED "H:2"`, joined), wrong(`expected handle H:72, because that job (function "b") is queued; got JOB_CREATED "H:9"`, strings.ReplaceAll(joined, " a", " b")); a != b {
		t.Errorf("one wrong reply has two keys because of its values: %q, %q", a, b)
	}
	freed := func(end string) string {
		in := read("Client -> Job Server: SUBMIT_JOB a u x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nWorker -> Job Server: unchecked " + end + "\n")
		in.Mode = input.Joined
		return key(gearman.Protocol, in, &exec.Fault{Oracle: exec.Law, Law: model.ChangedData, Step: 2, Conn: 1})
	}
	if freed("WORK_COMPLETE h x") != freed("WORK_FAIL h") || freed("WORK_FAIL h") == freed("GRAB_JOB") {
		t.Errorf("keys of changed data after messages that are sent together: %q, %q, %q", freed("WORK_COMPLETE h x"), freed("WORK_FAIL h"), freed("GRAB_JOB"))
	}
	listedID := func(id string) string {
		return key(gearman.Protocol, read("Worker -> Job Server: SET_CLIENT_ID "+id+"\nAdmin -> Job Server: workers\n"), &exec.Fault{Oracle: exec.Law, Law: wrongContent, Step: 1, Text: "expected a; got workers-reply"})
	}
	if listedID("a") == listedID(strings.Repeat("x", 127)) || listedID("a") != listedID("b") {
		t.Error("a list that is wrong because of a long value has the key of a list that is always wrong")
	}
	malformed := func(end string) string {
		return key(gearman.Protocol, read("Worker -> Job Server: unchecked "+end+"\n"), &exec.Fault{Oracle: exec.Framing, Rule: "gearman.args.trailing-nul", Law: "Job handle", Got: "fail"})
	}
	if malformed("WORK_EXCEPTION h x") == malformed("WORK_FAIL h \"\"") || malformed("WORK_FAIL h \"\"") != malformed("WORK_FAIL h x") {
		t.Errorf("keys of malformed replies: %q, %q, %q", malformed("WORK_EXCEPTION h x"), malformed("WORK_FAIL h \"\""), malformed("WORK_FAIL h x"))
	}
	if closed(read("Worker -> Job Server: CAN_DO b\n")) != closed(read("Worker -> Job Server: PRE_SLEEP\nWorker -> Job Server: CAN_DO a\n")) {
		t.Error("connections that are closed for the same reason have two keys")
	}
}

// TestCauses tests which minimized inputs count as one cause, and that a message may break more rules than another.
func TestCauses(t *testing.T) {
	of := func(v exec.Fault, src string) cause {
		return causeOf(gearman.Protocol, fuzztest.Input(t, gearman.Protocol, src), &v)
	}
	const job = "Worker -> Job Server: unchecked SUBMIT_JOB a \"\" \"\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n"
	const limited = "Client -> Job Server: SUBMIT_JOB a \"\" \"\"\nWorker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: GRAB_JOB\n"
	long := strings.Repeat("x", 64)
	refused := exec.Fault{Oracle: exec.Law, Law: "unexpected message", Text: "expected a job, got NO_JOB", Got: "no-job"}
	crash := func(law string, stack ...string) exec.Fault {
		return exec.Fault{Oracle: exec.Sanitizer, Law: law, Stack: stack}
	}
	woken := exec.Fault{Oracle: exec.Law, Law: "unexpected message", Rule: "gearman.worker.wake-only-able"}
	stuck := exec.Fault{Oracle: exec.HangAll, Law: "no connection"}
	listed := func(step int) exec.Fault { return exec.Fault{Oracle: exec.Law, Law: wrongContent, Step: step} }
	law, hang, closed := exec.Fault{Oracle: exec.Law, Law: "unexpected message"}, exec.Fault{Oracle: exec.HangConn, Law: "no answer"}, exec.Fault{Oracle: exec.Law, Law: closedLaw}
	for _, tt := range []struct {
		what string
		a, b cause
		same bool
	}{
		{"reports after the end of a registration", of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: WORK_FAIL h\n"), of(law, job+"Worker -> Job Server: RESET_ABILITIES\nWorker -> Job Server: WORK_STATUS h 1 1\n"), true},
		{"a status after the end of a registration", of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: WORK_FAIL h\n"), of(exec.Fault{Oracle: exec.Law, Law: "wrong reply content"}, job+"Worker -> Job Server: RESET_ABILITIES\nWorker -> Job Server: unchecked GET_STATUS h\n"), true},
		{"a worker that sleeps after the end of its registration", of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: WORK_FAIL h\n"), of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: PRE_SLEEP\n"), true},
		{"ordinary messages", of(law, job), of(law, job+"Worker -> Job Server: WORK_FAIL h\n"), false},
		{"another worker that leaves", of(law, job+"Worker -> Job Server: CANT_DO a\n"), of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: closes\n"), false},
		{"long unique IDs", of(law, "Client -> Job Server: SUBMIT_JOB \"\" "+long+" \"\"\n"), of(law, "Client -> Job Server: SUBMIT_JOB_BG a "+long+" a\n"), true},
		{"another long value", of(law, "Client -> Job Server: SUBMIT_JOB \"\" "+long+" \"\"\n"), of(law, "Client -> Job Server: SUBMIT_JOB "+long+" \"\" \"\"\n"), false},
		{"connections closed after a long value", of(closed, "Client -> Job Server: SUBMIT_JOB \"\" "+long+" \"\"\n"), of(closed, "Client -> Job Server: OPTION_REQ "+long+"\n"), true},
		{"more unusual things before the same failure", of(woken, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 \"\"\n"), of(woken, "Client -> Job Server: SUBMIT_JOB_EPOCH a "+long+" 1 \"\"\n"), true},
		{"more unusual things before another failure", of(woken, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 \"\"\n"), of(exec.Fault{Oracle: exec.Law, Law: "wrong reply content"}, "Client -> Job Server: SUBMIT_JOB_EPOCH a "+long+" 1 \"\"\n"), false},
		{"a time limit, and a message of a worker", of(law, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\n"), of(law, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: WORK_WARNING h x\n"), true},
		{"a time limit that passes, whatever shows it", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(listed(5), limited+"Worker 2 -> Job Server: CAN_DO a after 2s\nWorker 2 -> Job Server: unchecked GET_STATUS h\n"), true},
		{"a time limit that passes after the end of a job", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(law, limited+"Worker -> Job Server: WORK_COMPLETE h x\nWorker -> Job Server: GRAB_JOB after 2s\n"), false},
		{"a time limit that passes, and a pause without one", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(law, job+"Worker -> Job Server: GRAB_JOB after 2s\n"), false},
		{"servers that hang, and more unusual things", of(stuck, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\n"), of(stuck, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\nClient -> Job Server: SUBMIT_JOB "+long+" \"\" \"\"\n"), true},
		{"connections closed after large times", of(closed, "Worker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), of(closed, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 9223372036854775807 \"\"\n"), true},
		{"connections closed after another large number", of(closed, "Worker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), of(closed, "Worker -> Job Server: WORK_STATUS h 1 9223372036854775807\n"), false},
		{"two numbers of a message, above 2^31", of(listed(3), job+"Worker -> Job Server: WORK_STATUS h 0 4294967296\n"), of(law, job+"Worker -> Job Server: WORK_STATUS h 4294967296 0\n"), true},
		{"two numbers of a message", of(listed(3), job+"Worker -> Job Server: WORK_STATUS h 0 2\n"), of(law, job+"Worker -> Job Server: WORK_STATUS h 2 0\n"), false},
		{"a server that hangs after a time limit has passed", of(stuck, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(law, limited+"Worker 2 -> Job Server: PRE_SLEEP after 2s\n"), true},
		{"lists that show one state", of(listed(2), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked status\n"), of(listed(2), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked prioritystatus\n"), true},
		{"lists that show different states", of(listed(1), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked status\n"), of(listed(2), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked status\n"), false},
		{"values that are sent on although they break rules", of(exec.Fault{Oracle: exec.Framing, Rule: "gearman.number.decimal"}, job+"Worker -> Job Server: unchecked WORK_STATUS h soon 0\n"), of(exec.Fault{Oracle: exec.Framing, Rule: "gearman.handle.not-empty"}, "Client -> Job Server: unchecked GET_STATUS \"\"\n"), true},
		{"a value that is sent on, and a reply that breaks a rule of its own", of(exec.Fault{Oracle: exec.Framing, Rule: "gearman.number.decimal"}, job+"Worker -> Job Server: unchecked WORK_STATUS h soon 0\n"), of(exec.Fault{Oracle: exec.Framing, Rule: "gearman.admin.reply-form"}, "Client -> Job Server: SUBMIT_JOB \"\\n\" \"\" \"\"\n"), false},
		{"a time limit", of(law, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\n"), of(law, "Worker -> Job Server: CAN_DO a\n"), false},
		{"missing arguments, and an empty handle too", of(hang, "Worker -> Job Server: unchecked WORK_STATUS a\n"), of(hang, "Worker -> Job Server: unchecked WORK_STATUS \"\"\n"), true},
		{"crashes at one line, of different callers", of(crash("AddressSanitizer SEGV: find < delete at s.c:9", "find", "delete"), job), of(crash("AddressSanitizer heap-buffer-overflow: find < touch at s.c:9", "find", "touch"), limited), true},
		{"crashes at different lines of a function", of(crash("AddressSanitizer SEGV: find < delete at s.c:9", "find", "delete"), job), of(crash("AddressSanitizer SEGV: find < delete at s.c:8", "find", "delete"), job), false},
		{"crashes at unknown lines of a function", of(crash("AddressSanitizer SEGV: find < delete", "find", "delete"), job), of(crash("AddressSanitizer SEGV: find < touch", "find", "touch"), job), false},
		{"crashes at one address", of(crash("", "s+0x1", "s+0x2"), job), of(crash("", "s+0x1", "s+0x3"), job), true},
		{"a client that leaves, and a job that is canceled", of(law, "Client -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: closes\nClient 2 -> Job Server: SUBMIT_JOB a u \"\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n"),
			of(listed(2), "Client -> Job Server: SUBMIT_JOB a u \"\"\nAdmin -> Job Server: cancel-job H:1\nClient -> Job Server: unchecked GET_STATUS h\n"), true},
		{"a client that leaves before and after another submission", of(law, "Client -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: closes\nClient 2 -> Job Server: SUBMIT_JOB a u \"\"\nWorker -> Job Server: GRAB_JOB\n"),
			of(law, "Client 2 -> Job Server: SUBMIT_JOB_BG a u \"\"\nClient -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: closes\nWorker -> Job Server: GRAB_JOB\n"), false},
		{"a worker that leaves with a job, and one that has none", of(law, job+"Worker -> Job Server: closes\n"), of(law, "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: closes\nWorker 2 -> Job Server: PRE_SLEEP\n"), false},
		{"a job whose time comes, and one that hides another job", of(law, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\nWorker -> Job Server: PRE_SLEEP\nJob Server -> Worker: nothing for 1s\n"),
			of(law, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\nClient -> Job Server: SUBMIT_JOB_LOW a \"\" x\nWorker -> Job Server: GRAB_JOB\n"), false},
		{"a job for later that wakes a worker, and one that hides another job", of(woken, "Worker -> Job Server: PRE_SLEEP\nClient -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\n"),
			of(law, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\nClient -> Job Server: SUBMIT_JOB_LOW a \"\" x\nWorker -> Job Server: GRAB_JOB\n"), false},
		{"a job whose time comes while the worker that may have it for a limited time sleeps", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"),
			of(law, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\nWorker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: PRE_SLEEP\nJob Server -> Worker: nothing for 1s\n"), false},
		{"more disconnects before the same reply", of(refused, "Client -> Job Server: SUBMIT_JOB a u \"\"\nClient 2 -> Job Server: SUBMIT_JOB a u \"\"\nClient 2 -> Job Server: closes\nWorker -> Job Server: GRAB_JOB\n"),
			of(refused, "Client -> Job Server: SUBMIT_JOB a u \"\"\nClient 2 -> Job Server: SUBMIT_JOB_BG a u \"\"\nClient 2 -> Job Server: closes\nClient -> Job Server: closes\nWorker -> Job Server: GRAB_JOB\n"), true},
		{"a large number, with one job and with two", of(refused, "Client -> Job Server: SUBMIT_JOB a u \"\"\nWorker -> Job Server: CAN_DO_TIMEOUT a 5000\nWorker -> Job Server: CANT_DO a\n"),
			of(refused, "Client -> Job Server: SUBMIT_JOB a u \"\"\nClient -> Job Server: SUBMIT_JOB a v \"\"\nWorker -> Job Server: CAN_DO_TIMEOUT a 5000\nWorker -> Job Server: CANT_DO a\n"), true},
		{"commands that configure different things", of(law, "Admin -> Job Server: maxqueue a 1\nClient -> Job Server: SUBMIT_JOB a \"\" x\n"), of(law, "Client -> Job Server: SUBMIT_JOB a \"\" x\nAdmin -> Job Server: drop-function a\n"), false},
		{"a malformed reply, and a wrong one, after the same messages", of(law, job+"Worker -> Job Server: WORK_EXCEPTION h x\n"), of(exec.Fault{Oracle: exec.Framing, Rule: "gearman.args.trailing-nul"}, job+"Worker -> Job Server: WORK_EXCEPTION h x\n"), false},
		{"crashes after the same unusual message", of(exec.Fault{Oracle: exec.Signal}, "Worker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), of(exec.Fault{Oracle: exec.Signal}, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\nWorker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), true},
		{"crashes after different unusual messages", of(exec.Fault{Oracle: exec.Signal}, "Worker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), of(exec.Fault{Oracle: exec.Signal}, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 x\n"), false},
		{"an illegal request that is performed, whatever shows it", of(exec.Fault{Oracle: exec.Law, Law: notRejected, Rule: "gearman.number.decimal"}, "Worker -> Job Server: unchecked CAN_DO_TIMEOUT a soon\n"), of(exec.Fault{Oracle: exec.Law, Law: notRejected, Rule: "gearman.number.decimal", Step: 1}, "Client -> Job Server: SUBMIT_JOB a "+long+" x\nWorker -> Job Server: unchecked CAN_DO_TIMEOUT a later\n"), true},
		{"missing arguments and other rules", of(hang, "Worker -> Job Server: unchecked WORK_STATUS a\n"), of(hang, "Worker -> Job Server: unchecked WORK_FAIL \"\"\n"), false},
	} {
		if got := tt.a.same(&tt.b); got != tt.same {
			t.Errorf("%s: one cause: %v, expected %v: %v, %v", tt.what, got, tt.same, tt.a, tt.b)
		}
	}
}

// TestTimedFaultsAreOne tests that a missing effect of a timer is one finding, whatever the messages around that time and
// however many inputs are needed.
func TestTimedFaultsAreOne(t *testing.T) {
	p := gearman.Protocol
	f := exec.Fault{Oracle: exec.Law, Law: "missing message", Rule: "gearman.work.fail", Step: 1, Timed: true,
		Text: "expected WORK_FAIL H:1, got no message"}
	a := fuzztest.Input(t, p, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: GRAB_JOB\n")
	b := fuzztest.Input(t, p, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: GRAB_JOB\n"+
		"Admin -> Job Server: version after 2s\nWorker -> Job Server: unchecked SUBMIT_JOB a \"\" x\n")
	g := f
	g.Step, g.Text = -1, "expected WORK_FAIL H:2, got no message"
	x, y := causeOf(p, a, &f), causeOf(p, b, &g)
	if k, l := key(p, a, &f), key(p, b, &g); k != l || !x.same(&y) {
		t.Errorf("expected one key and one cause, got %q and %q, %+v and %+v", k, l, x, y)
	}
	if g.Rule = "gearman.worker.wake"; key(p, b, &g) == key(p, a, &f) {
		t.Error("effects of different timers have one key")
	}
}

package fuzz

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/model"
)

// sends reports whether a step is a message of a type whose name has the prefix.
func sends(s *Step, prefix string) bool {
	return s.Type != nil && s.Verb == transcript.Send && strings.HasPrefix(s.Type.Name, prefix)
}

// value returns the argument for the field with the label, or nil.
func value(s *Step, label string) []byte {
	for i := range s.Args {
		if f := s.Type.FieldAt(i); f != nil && f.Name == label && s.Args[i].Of == 0 {
			return s.Args[i].Value
		}
	}
	return nil
}

// inTurn reports whether the conditions are true for steps in this order, possibly with other steps in between.
func inTurn(c *Input, conds ...func(s *Step) bool) bool {
	for i := range c.Steps {
		if len(conds) > 0 && conds[0](&c.Steps[i]) {
			conds = conds[1:]
		}
	}
	return len(conds) == 0
}

// The generator reaches, without seeds, messages that are known to crash real servers.
func TestGeneratesWhatBreaksServers(t *testing.T) {
	any := func(cond func(s *Step) bool) func(c *Input) bool {
		return func(c *Input) bool { return inTurn(c, cond) }
	}
	unique := func(n int) func(c *Input) bool {
		return any(func(s *Step) bool { return sends(s, "SUBMIT") && len(value(s, "Unique ID")) == n })
	}
	for _, tt := range []struct {
		p    *codec.Protocol
		what string
		is   func(c *Input) bool
	}{
		{gearman.Protocol, "a unique ID of 63 bytes", unique(63)},
		{gearman.Protocol, "a unique ID of 64 bytes", unique(64)},
		{gearman.Protocol, "a unique ID of 65 bytes", unique(65)},
		{gearman.Protocol, "a unique ID of 8000 bytes", unique(8000)},
		{gearman.Protocol, "progress beyond 32 bits", any(func(s *Step) bool {
			return sends(s, "WORK_STATUS") && s.Args[0].Of > 0 && len(value(s, "Numerator")) >= 10 && value(s, "Numerator")[0] >= '4'
		})},
		{gearman.Protocol, "a blank at the end of a line", any(func(s *Step) bool {
			return s.Verb == transcript.Raw && bytes.HasPrefix(s.Bytes, []byte("status ")) && bytes.HasSuffix(s.Bytes, []byte(" \n"))
		})},
		{gearman.Protocol, "a client who leaves behind a join, before the result", func(c *Input) bool {
			of := map[string]int{}
			return inTurn(c, func(s *Step) bool {
				if sends(s, "SUBMIT_JOB") && len(value(s, "Unique ID")) > 0 {
					of[string(value(s, "Function"))+"\x00"+string(value(s, "Unique ID"))]++
				}
				for _, n := range of {
					if n > 1 {
						return true
					}
				}
				return false
			}, func(s *Step) bool { return slices.Contains(leaves, s.Verb) }, func(s *Step) bool { return sends(s, "WORK_COMPLETE") && s.Args[0].Of > 0 })
		}},
		{gearman.Protocol, "a grab with a time limit, after which time passes", func(c *Input) bool {
			return inTurn(c, func(s *Step) bool { return sends(s, "CAN_DO_TIMEOUT") }, func(s *Step) bool { return sends(s, "GRAB") },
				func(s *Step) bool { return s.Verb == transcript.Nothing }, func(s *Step) bool { return sends(s, "WORK_") })
		}},
		{beanstalk.Protocol, "a blank at the end of a command", any(func(s *Step) bool {
			return s.Verb == transcript.Raw && bytes.HasPrefix(s.Bytes, []byte("stats ")) && bytes.HasSuffix(s.Bytes, []byte(" \r\n"))
		})},
		{beanstalk.Protocol, "the lowest priority", any(func(s *Step) bool { return sends(s, "put") && string(value(s, "Priority")) == "4294967295" })},
		{beanstalk.Protocol, "a worker who leaves while it waits", func(c *Input) bool {
			return inTurn(c, func(s *Step) bool { return sends(s, "reserve") }, func(s *Step) bool { return slices.Contains(leaves, s.Verb) }, func(s *Step) bool { return sends(s, "put") })
		}},
	} {
		b := newGenerator(tt.p, randOf(3), &Known{})
		b.slow = true
		made := 0
		for n := 0; n < 100_000 && made == 0; n++ {
			c := b.generate()
			if len(c.Steps) > 0 && n%2 == 0 {
				c = b.mutate(c, func() *Input { return nil })
			}
			if tt.is(c) {
				made = n + 1
			}
		}
		if made == 0 {
			t.Errorf("%s: never made: %s", tt.p.Name, tt.what)
		}
		t.Logf("%s: %s: first in input %d", tt.p.Name, tt.what, made)
	}
}

// TestBehavior tests that bytes that begin a message, together with the messages after them, count as this message.
func TestBehavior(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n", "register ask"},
		{"Worker -> Job Server: raw 00 \"REQ\" 00 00 00 0f 00 00 00\nWorker -> Job Server: GRAB_JOB\n", " gearman.handle.not-empty"},
		{"Worker -> Job Server: raw 00 \"REQ\" 00 00 00 09 00 00 00 00 00\nWorker -> Job Server: GRAB_JOB\n", "ask gearman.packet.magic"},
		{"Client -> Job Server: raw 00 \"REQ\"\nClient 2 -> Job Server: ECHO_REQ a\nClient -> Job Server: unchecked GRAB_JOB\nClient -> Job Server: ECHO_REQ a\n", " echo  gearman.packet.type-known"},
	} {
		in := FromScript(script(t, gearman.Protocol, tt.src))
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
	input := func(src string) *Input { return FromScript(script(t, gearman.Protocol, src)) }
	first := input("Worker -> Job Server: CAN_DO a\nWorker -> Job Server: WORK_COMPLETE h x\n")
	longer := input("Worker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\nWorker -> Job Server: WORK_FAIL h\n")
	other := input("Worker -> Job Server: CAN_DO a\nWorker -> Job Server: PRE_SLEEP\n")
	hang := func(c *Input) string {
		return key(gearman.Protocol, c, &Fault{Oracle: HangAll, Law: "no connection answered", Step: len(c.Steps) - 1})
	}
	if hang(first) != hang(longer) {
		t.Errorf("one hang has two keys: %q, %q", hang(first), hang(longer))
	}
	if hang(first) == hang(other) {
		t.Errorf("two hangs have one key: %q", hang(first))
	}
	long := input("Worker -> Job Server: CAN_DO \"" + strings.Repeat("x", 8000) + "\"\n")
	closed := func(c *Input) string {
		return key(gearman.Protocol, c, &Fault{Oracle: Law, Law: closedLaw, Step: len(c.Steps) - 1})
	}
	if closed(first) == closed(other) || closed(other) == closed(long) || closed(input("Worker -> Job Server: CAN_DO a\n")) == closed(long) {
		t.Error("connections that are closed for different reasons have one key")
	}
	if closed(long) != closed(input("Worker -> Job Server: CANT_DO \""+strings.Repeat("x", 8001)+"\"\n")) {
		t.Error("connections that are closed because a message is too long have two keys")
	}
	changed := func(src string) string {
		return key(gearman.Protocol, input(src), &Fault{Oracle: Law, Law: model.ChangedData})
	}
	lost := changed("Client -> Job Server: SUBMIT_JOB a \"\" x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n")
	if lost != changed("Client -> Job Server: SUBMIT_JOB_LOW a \"\" x\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB_ALL\nWorker -> Job Server: WORK_FAIL h\n") {
		t.Error("job data that is changed whatever it is has two keys")
	}
	if lost == changed("Client -> Job Server: SUBMIT_JOB a \"\" \"\\0\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n") {
		t.Error("job data that is changed only if it is unusual has the key of any data")
	}
	if closed(input("Worker -> Job Server: CAN_DO b\n")) != closed(input("Worker -> Job Server: PRE_SLEEP\nWorker -> Job Server: CAN_DO a\n")) {
		t.Error("connections that are closed for the same reason have two keys")
	}
}

// TestCauses tests which minimized inputs count as one cause, and that a message may break more rules than another.
func TestCauses(t *testing.T) {
	of := func(v Fault, src string) cause {
		return causeOf(gearman.Protocol, FromScript(script(t, gearman.Protocol, src)), &v)
	}
	const job = "Worker -> Job Server: unchecked SUBMIT_JOB a \"\" \"\"\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: GRAB_JOB\n"
	const limited = "Client -> Job Server: SUBMIT_JOB a \"\" \"\"\nWorker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: GRAB_JOB\n"
	long := strings.Repeat("x", 64)
	woken := Fault{Oracle: Law, Law: "unexpected message", Rule: "gearman.worker.wake-only-able"}
	stuck := Fault{Oracle: HangAll, Law: "no connection"}
	listed := func(step int) Fault { return Fault{Oracle: Law, Law: wrongContent, Step: step} }
	law, hang, closed := Fault{Oracle: Law, Law: "unexpected message"}, Fault{Oracle: HangConn, Law: "no answer"}, Fault{Oracle: Law, Law: closedLaw}
	for _, tt := range []struct {
		what string
		a, b cause
		same bool
	}{
		{"reports after the end of a registration", of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: WORK_FAIL h\n"), of(law, job+"Worker -> Job Server: RESET_ABILITIES\nWorker -> Job Server: WORK_STATUS h 1 1\n"), true},
		{"a status after the end of a registration", of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: WORK_FAIL h\n"), of(Fault{Oracle: Law, Law: "wrong reply content"}, job+"Worker -> Job Server: RESET_ABILITIES\nWorker -> Job Server: unchecked GET_STATUS h\n"), true},
		{"a worker that sleeps after the end of its registration", of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: WORK_FAIL h\n"), of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: PRE_SLEEP\n"), true},
		{"ordinary messages", of(law, job), of(law, job+"Worker -> Job Server: WORK_FAIL h\n"), false},
		{"another worker that leaves", of(law, job+"Worker -> Job Server: CANT_DO a\n"), of(law, job+"Worker -> Job Server: CANT_DO a\nWorker -> Job Server: closes\n"), false},
		{"long unique IDs", of(law, "Client -> Job Server: SUBMIT_JOB \"\" "+long+" \"\"\n"), of(law, "Client -> Job Server: SUBMIT_JOB_BG a "+long+" a\n"), true},
		{"another long value", of(law, "Client -> Job Server: SUBMIT_JOB \"\" "+long+" \"\"\n"), of(law, "Client -> Job Server: SUBMIT_JOB "+long+" \"\" \"\"\n"), false},
		{"connections closed after a long value", of(closed, "Client -> Job Server: SUBMIT_JOB \"\" "+long+" \"\"\n"), of(closed, "Client -> Job Server: OPTION_REQ "+long+"\n"), true},
		{"more unusual things before the same failure", of(woken, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 \"\"\n"), of(woken, "Client -> Job Server: SUBMIT_JOB_EPOCH a "+long+" 1 \"\"\n"), true},
		{"more unusual things before another failure", of(woken, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 1 \"\"\n"), of(Fault{Oracle: Law, Law: "wrong reply content"}, "Client -> Job Server: SUBMIT_JOB_EPOCH a "+long+" 1 \"\"\n"), false},
		{"a time limit, and a message of a worker", of(law, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\n"), of(law, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\nWorker -> Job Server: WORK_WARNING h x\n"), true},
		{"a time limit that passes, whatever shows it", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(listed(5), limited+"Worker 2 -> Job Server: CAN_DO a after 2s\nWorker 2 -> Job Server: unchecked GET_STATUS h\n"), true},
		{"a time limit that passes after the end of a job", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(law, limited+"Worker -> Job Server: WORK_COMPLETE h x\nWorker -> Job Server: GRAB_JOB after 2s\n"), false},
		{"a time limit that passes, and a pause without one", of(law, limited+"Worker -> Job Server: GRAB_JOB after 2s\n"), of(law, job+"Worker -> Job Server: GRAB_JOB after 2s\n"), false},
		{"servers that hang, and more unusual things", of(stuck, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\n"), of(stuck, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\nClient -> Job Server: SUBMIT_JOB "+long+" \"\" \"\"\n"), true},
		{"connections closed after large times", of(closed, "Worker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), of(closed, "Client -> Job Server: SUBMIT_JOB_EPOCH a \"\" 9223372036854775807 \"\"\n"), true},
		{"connections closed after another large number", of(closed, "Worker -> Job Server: CAN_DO_TIMEOUT a 9223372036854775807\n"), of(closed, "Worker -> Job Server: WORK_STATUS h 1 9223372036854775807\n"), false},
		{"lists that show one state", of(listed(2), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked status\n"), of(listed(2), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked prioritystatus\n"), true},
		{"lists that show different states", of(listed(1), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked status\n"), of(listed(2), "Worker -> Job Server: CAN_DO a\nWorker -> Job Server: CAN_DO a\nWorker -> Job Server: unchecked status\n"), false},
		{"values that are sent on although they break rules", of(Fault{Oracle: Framing, Rule: "gearman.number.decimal"}, job+"Worker -> Job Server: unchecked WORK_STATUS h soon 0\n"), of(Fault{Oracle: Framing, Rule: "gearman.handle.not-empty"}, "Client -> Job Server: unchecked GET_STATUS \"\"\n"), true},
		{"a value that is sent on, and a reply that breaks a rule of its own", of(Fault{Oracle: Framing, Rule: "gearman.number.decimal"}, job+"Worker -> Job Server: unchecked WORK_STATUS h soon 0\n"), of(Fault{Oracle: Framing, Rule: "gearman.admin.reply-form"}, "Client -> Job Server: SUBMIT_JOB \"\\n\" \"\" \"\"\n"), false},
		{"a time limit", of(law, "Worker -> Job Server: CAN_DO_TIMEOUT a 1\n"), of(law, "Worker -> Job Server: CAN_DO a\n"), false},
		{"missing arguments, and an empty handle too", of(hang, "Worker -> Job Server: unchecked WORK_STATUS a\n"), of(hang, "Worker -> Job Server: unchecked WORK_STATUS \"\"\n"), true},
		{"missing arguments and other rules", of(hang, "Worker -> Job Server: unchecked WORK_STATUS a\n"), of(hang, "Worker -> Job Server: unchecked WORK_FAIL \"\"\n"), false},
	} {
		if got := tt.a.same(&tt.b); got != tt.same {
			t.Errorf("%s: one cause: %v, expected %v: %v, %v", tt.what, got, tt.same, tt.a, tt.b)
		}
	}
}

// TestMessagesWithLongLists tests that some messages have lists of 256 values, and that all of these are different.
func TestMessagesWithLongLists(t *testing.T) {
	b := newGenerator(danga.Protocol, randOf(1), &Known{})
	for range 100_000 {
		for _, s := range b.generate().Steps {
			if s.Type == nil || len(s.Type.Repeat) == 0 || len(s.Args) < 256 {
				continue
			}
			values := map[string]bool{}
			for _, a := range s.Args {
				values[string(a.Value)] = true
			}
			if len(values) < 255 {
				t.Errorf("%d values, %d different", len(s.Args), len(values))
			}
			return
		}
	}
	t.Error("no message has a list of 256 values")
}

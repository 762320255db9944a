package gearman

import (
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// peerOf is a peer with shortcuts for Gearman.
type peerOf struct{ *peertest.Peer }

// quiet checks that the server has sent the peer nothing: the next message must be the reply to an ECHO_REQ.
func (p peerOf) quiet(t *testing.T) {
	t.Helper()
	p.Send("ECHO_REQ", "quiet?")
	p.Want("ECHO_RES", "quiet?")
}

// submit submits a job and returns its handle.
func (p peerOf) submit(typ string, args ...string) string {
	p.Send(typ, args...)
	return p.Want("JOB_CREATED", "*")[0]
}

// ask sends a command and returns the arguments of its reply, with the name of the reply unless it is the expected one.
func (p peerOf) ask(reply, cmd string, args ...string) string {
	p.Send(cmd, args...)
	name, got := p.Next()
	return strings.TrimPrefix(name+" "+strings.Join(got, " "), reply+" ")
}

// bubble runs a test with a server in a synctest bubble, which also checks that all goroutines of the server end.
func bubble(t *testing.T, o Options, ro refserver.Options, test func(t *testing.T, dial func() peerOf)) {
	synctest.Test(t, func(t *testing.T) {
		o.Host = "test"
		ro.Protocol = gearman.Protocol
		srv := refserver.New(New(o), ro)
		test(t, func() peerOf { return peerOf{peertest.Dial(t, gearman.Protocol, srv)} })
		srv.Close()
	})
}

// TestEveryRequestHasAHandler tests that the reference server has a handler for each request, and for no message that
// only a server sends.
func TestEveryRequestHasAHandler(t *testing.T) {
	for _, msgType := range gearman.Protocol.Types {
		if has := handlers[msgType.Index] != nil; has != (msgType.Req != 0) {
			t.Errorf("%s: sent to the server: %v, has a handler: %v", msgType.Name, msgType.Req != 0, has)
		}
	}
}

// TestOneClientWaitsTwice tests that a client that submits the same unique ID twice gets the result twice.
func TestOneClientWaitsTwice(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w := dial(), dial()
		h := c.submit("SUBMIT_JOB", "f", "id", "x")
		c.submit("SUBMIT_JOB", "f", "id", "x")
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", h, "f", "x")
		w.Send("WORK_COMPLETE", h, "y")
		c.Want("WORK_COMPLETE", h, "y")
		c.Want("WORK_COMPLETE", h, "y")
		c.quiet(t)
	})
}

// TestSleepAndWake tests that each sleeping worker that can run a queued job gets one NOOP, also if it registers the
// function or sends PRE_SLEEP after the job was queued.
func TestSleepAndWake(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w1, w2 := dial(), dial(), dial()
		for _, w := range []peerOf{w1, w2} {
			w.Send("CAN_DO", "f")
			w.Send("PRE_SLEEP")
			w.quiet(t)
		}
		c.submit("SUBMIT_JOB_BG", "g", "", "")
		w1.quiet(t)
		c.submit("SUBMIT_JOB_BG", "f", "", "1")
		w1.Want("NOOP")
		w2.Want("NOOP")
		c.submit("SUBMIT_JOB_BG", "f", "", "2")
		w1.quiet(t) // it is not woken again
		w1.Send("PRE_SLEEP")
		w1.Want("NOOP") // it has not grabbed the jobs, which are still queued
		w1.Send("GRAB_JOB")
		w1.Want("JOB_ASSIGN", "*", "f", "1")
		w1.Send("GRAB_JOB")
		w1.Want("JOB_ASSIGN", "*", "f", "2")
		w2.Send("PRE_SLEEP")
		w2.quiet(t)
		w2.Send("CAN_DO", "g") // while it sleeps, it registers a function that has a job
		w2.Want("NOOP")
		w1.Send("PRE_SLEEP")
		w1.Send("CANT_DO", "f")
		w1.quiet(t)
		w2.Send("RESET_ABILITIES")
		w2.Send("PRE_SLEEP")
		w2.quiet(t)
		c.submit("SUBMIT_JOB_BG", "f", "", "3")
		w1.quiet(t)
		w2.quiet(t)
	})
}

// TestWakeupsAreLimited tests that the option Wakeups limits how many workers are woken for a job, and that another
// worker is woken if the first disconnects or can no longer run the job.
func TestWakeupsAreLimited(t *testing.T) {
	bubble(t, Options{Wakeups: 1}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w1, w2 := dial(), dial(), dial()
		for _, w := range []peerOf{w1, w2} {
			w.Send("CAN_DO", "f")
			w.Send("PRE_SLEEP")
			w.quiet(t)
		}
		c.submit("SUBMIT_JOB_BG", "f", "", "1")
		w1.Want("NOOP")
		w2.quiet(t)
		w1.Leave() // it has not grabbed the job, so the other worker must be woken
		w2.Want("NOOP")
		w2.Send("GRAB_JOB")
		w2.Want("JOB_ASSIGN", "*", "f", "1")
		w2.Send("PRE_SLEEP")
		w3 := dial()
		w3.Send("CAN_DO", "f")
		w3.Send("PRE_SLEEP")
		w3.quiet(t)
		c.submit("SUBMIT_JOB_BG", "f", "", "2")
		w2.Want("NOOP")
		w3.quiet(t)
		w2.Send("CANT_DO", "f")
		w3.Want("NOOP")
	})
}

// TestLostWorker tests that the jobs of a worker that disconnects are queued again with their handles, before later
// jobs, without the reported progress.
func TestLostWorker(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, w, next := dial(), dial(), dial()
		w.Send("CAN_DO", "f")
		var handles []string
		for _, load := range []string{"1", "2", "3"} {
			handles = append(handles, c.submit("SUBMIT_JOB", "f", "", load))
		}
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", handles[0], "f", "1")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", handles[1], "f", "2")
		w.Send("WORK_STATUS", handles[0], "1", "2")
		c.Want("WORK_STATUS", handles[0], "1", "2")
		next.Send("CAN_DO", "f")
		next.Send("GRAB_JOB_UNIQ")
		next.Want("JOB_ASSIGN_UNIQ", handles[2], "f", "", "3")
		next.Send("PRE_SLEEP")
		next.quiet(t)
		w.Leave()
		next.Want("NOOP")
		c.Send("GET_STATUS", handles[0])
		c.Want("STATUS_RES", handles[0], "1", "0", "0", "0")
		c.submit("SUBMIT_JOB", "f", "", "4")
		for i, load := range []string{"1", "2", "4"} {
			next.Send("GRAB_JOB")
			h := next.Want("JOB_ASSIGN", "*", "f", load)[0]
			if i < 2 && h != handles[i] {
				t.Errorf("job %s has handle %s, had %s", load, h, handles[i])
			}
		}
		next.Send("WORK_COMPLETE", handles[0], "done")
		c.Want("WORK_COMPLETE", handles[0], "done")
	})
}

// TestRetriesAreLimited tests that a job fails with WORK_FAIL after as many workers as the option Retries says have
// disconnected while running it.
func TestRetriesAreLimited(t *testing.T) {
	bubble(t, Options{Retries: 2}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		h := c.submit("SUBMIT_JOB", "f", "", "poison")
		for range 2 {
			w := dial()
			w.Send("CAN_DO", "f")
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", h, "f", "poison")
			c.quiet(t)
			w.Leave()
		}
		c.Want("WORK_FAIL", h)
		if got := c.ask("status-reply", "status"); got != "" {
			t.Errorf("status %q, want nothing left", got)
		}
	})
}

// TestClientLeaves checks what happens to the jobs of a client that disconnects.
func TestClientLeaves(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c, other, w := dial(), dial(), dial()
		w.Send("CAN_DO", "f")
		runs := c.submit("SUBMIT_JOB", "f", "", "runs")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", runs, "f", "runs")
		c.submit("SUBMIT_JOB", "f", "", "dropped")
		shared := c.submit("SUBMIT_JOB", "f", "shared", "")
		other.submit("SUBMIT_JOB", "f", "shared", "")
		c.submit("SUBMIT_JOB", "f", "detached", "")
		detached := other.submit("SUBMIT_JOB_BG", "f", "detached", "")
		c.Leave()
		if got := other.ask("status-reply", "status"); got != "f 3 1 1" {
			t.Errorf("status %q", got)
		}
		w.Send("WORK_COMPLETE", runs, "nobody hears it")
		w.quiet(t)
		for _, h := range []string{shared, detached} {
			w.Send("GRAB_JOB")
			w.Want("JOB_ASSIGN", h, "f", "")
		}
		w.Send("GRAB_JOB")
		w.Want("NO_JOB")
	})
}

// TestRejects tests that the reply to an illegal packet is an ERROR that names the rule, that the server still knows
// its jobs, and that the connection ends if the end of the packet is unknown or the option Strict is set.
func TestRejects(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		h := c.submit("SUBMIT_JOB", "f", "", "kept")
		packet := func(magic, code, data string) []byte {
			return []byte("\x00" + magic + "\x00\x00\x00" + code + "\x00\x00\x00" + string(rune(len(data))) + data)
		}
		for _, bad := range []struct {
			raw        []byte
			code, rule string
		}{
			{packet("REQ", "\x4d", "x"), "INVALID_COMMAND", "gearman.packet.type-known"},
			{packet("REQ", "\x08", "H:x:1"), "INVALID_COMMAND", "gearman.packet.type-direction"},
			{packet("RES", "\x09", ""), "INVALID_MAGIC", "gearman.packet.magic-direction"},
			{packet("REQ", "\x09", "x"), "INVALID_PACKET", "gearman.args.surplus"},
			{packet("REQ", "\x07", "f"), "INVALID_PACKET", "gearman.args.missing"},
			{packet("REQ", "\x0f", strings.Repeat("H", 64)), "ARGUMENT_TOO_LARGE", "gearman.handle.length"},
		} {
			c.Raw(bad.raw)
			if got := c.Want("ERROR", bad.code, "*"); !strings.Contains(got[1], bad.rule) {
				t.Errorf("%q: text %q, want rule %s", bad.raw, got[1], bad.rule)
			}
		}
		c.Send("GET_STATUS", h)
		c.Want("STATUS_RES", h, "1", "0", "0", "0")
		c.Raw([]byte("\x00RAQ"))
		c.Want("ERROR", "INVALID_MAGIC", "*")
		c.Ended()
	})
	bubble(t, Options{}, refserver.Options{Strict: true}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		c.Send("OPTION_REQ", "unheard of") // a legal message with an unknown option
		c.Want("ERROR", "UNKNOWN_OPTION", "*")
		c.Raw([]byte("\x00REQ\x00\x00\x00\x4d\x00\x00\x00\x00"))
		c.Want("ERROR", "INVALID_COMMAND", "*")
		c.Ended()
	})
}

// TestJobMustFitIntoItsAssignment tests that a job is refused if the packet that would assign it to a worker, or the
// reply about it, would be larger than the limit.
func TestJobMustFitIntoItsAssignment(t *testing.T) {
	bubble(t, Options{}, refserver.Options{Codec: codec.Options{MaxData: 200}}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		c.Send("SUBMIT_JOB_BG", "f", "", strings.Repeat("x", 190))
		c.Want("ERROR", "ARGUMENT_TOO_LARGE", "*")
		h := c.submit("SUBMIT_JOB_BG", "f", "", strings.Repeat("x", 130))
		c.Send("CAN_DO", "f")
		c.Send("GRAB_JOB_ALL")
		c.Want("JOB_ASSIGN_UNIQ", h, "f", "", "*")
		c.Send("GET_STATUS_UNIQUE", strings.Repeat("u", 199))
		c.Want("ERROR", "ARGUMENT_TOO_LARGE", "*")
		c.Raw([]byte("\x00REQ\x00\x00\x00\x10\xff\xff\xff\xff"))
		c.Want("ERROR", "ARGUMENT_TOO_LARGE", "*")
		c.Ended()
	})
}

// TestNamesAreBounded checks that names longer than maxName bytes are rejected in all messages.
func TestNamesAreBounded(t *testing.T) {
	bubble(t, Options{}, refserver.Options{}, func(t *testing.T, dial func() peerOf) {
		c := dial()
		longest, over := strings.Repeat("n", maxName), strings.Repeat("n", maxName+1)
		for _, m := range [][]string{
			{"CAN_DO", over}, {"CAN_DO_TIMEOUT", over, "1"}, {"SET_CLIENT_ID", over}, {"GET_STATUS_UNIQUE", over},
			{"SUBMIT_JOB", over, "", ""}, {"SUBMIT_JOB_BG", "f", over, ""}, {"SUBMIT_REDUCE_JOB", "f", "", over, "", ""},
		} {
			c.Send(m[0], m[1:]...)
			c.Want("ERROR", "ARGUMENT_TOO_LARGE", "*")
		}
		if got := c.ask("status-reply", "status"); got != "" {
			t.Errorf("status %.40q, want nothing", got)
		}
		h := c.submit("SUBMIT_JOB", longest, longest, over) // the limit does not apply to the workload
		c.Send("SET_CLIENT_ID", longest)
		c.Send("CAN_DO", longest)
		c.Send("GRAB_JOB_UNIQ")
		c.Want("JOB_ASSIGN_UNIQ", h, longest, longest, over)
		c.quiet(t)
	})
}

package model

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	codecgearman "jobwire/codec/gearman"
)

// gearmanFrame returns a message of Gearman as a session decodes it.
func gearmanFrame(t *testing.T, from codec.Side, name string, args ...string) *codec.Frame {
	t.Helper()
	return frame(t, codecgearman.Protocol, from, name, args...)
}

// frame returns a message as a session of the protocol decodes it.
func frame(t *testing.T, p *codec.Protocol, from codec.Side, name string, args ...string) *codec.Frame {
	t.Helper()
	msg := codec.Message{Type: p.TypeNamed(name)}
	for _, a := range args {
		msg.Args = append(msg.Args, []byte(a))
	}
	f := new(codec.Frame)
	raw, err := p.NewSession(codec.Options{}).Append(nil, from, &msg)
	if err == nil {
		_, err = p.NewSession(codec.Options{}).Decode(from, raw, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// gearmanModel returns a model with two open connections, a function that reports a message of a client or worker to the
// model, and a function that reports a message of the server and fails the test if the model complains about it.
func gearmanModel(t *testing.T) (m Model, sent, received func(conn int, name string, args ...string)) {
	m = New(codecgearman.Protocol, time.Now())
	m.Opened(0)
	m.Opened(1)
	sent = func(conn int, name string, args ...string) { m.Sent(conn, gearmanFrame(t, codec.Peer, name, args...)) }
	received = func(conn int, name string, args ...string) {
		t.Helper()
		if err := m.Received(conn, gearmanFrame(t, codec.Server, name, args...)); err != nil {
			t.Error(err)
		}
	}
	return m, sent, received
}

// TestNothingIsRequiredAfterUnknownBytes tests that no message is required after a client has sent bytes whose effect
// is unknown.
func TestNothingIsRequiredAfterUnknownBytes(t *testing.T) {
	m := New(codecgearman.Protocol, time.Now())
	sent := func(conn int, name string, args ...string) { m.Sent(conn, gearmanFrame(t, codec.Peer, name, args...)) }
	for conn := range 3 {
		m.Opened(conn)
	}
	sent(1, "CAN_DO", "a")
	m.Garbled(2)
	sent(1, "PRE_SLEEP")
	sent(0, "maxqueue", "a", "1")
	sent(0, "SUBMIT_JOB_BG", "a", "", "x")
	sent(0, "SUBMIT_JOB_BG", "a", "", "y")
	if err := m.CheckMissing(); err != nil {
		t.Error(err)
	}
}

// TestErrorForEarlierRequest tests that the model does not guess which of two submissions, sent one after the other, the
// server has rejected, if it must not reject the first.
func TestErrorForEarlierRequest(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(0, "maxqueue", "b", "1")
	if err := m.Received(0, replyTo(t, "maxqueue b 1\n", "OK\n")); err != nil {
		t.Fatal(err)
	}
	sent(0, "SUBMIT_JOB_BG", "b", "", "w")
	received(0, "JOB_CREATED", "H:1")
	sent(0, "SUBMIT_JOB_BG", "a", "", "x")
	sent(0, "SUBMIT_JOB_BG", "b", "", "y")
	received(0, "ERROR", "queue_full", "full")
	received(0, "JOB_CREATED", "H:2")
	sent(1, "CAN_DO", "b")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:1", "b", "w")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:2", "b", "y")
}

// TestErrorsInOrder tests that an error reply belongs to the first request that the server may reject.
func TestErrorsInOrder(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(0, "maxqueue", "a", "1")
	if err := m.Received(0, replyTo(t, "maxqueue a 1\n", "OK\n")); err != nil {
		t.Fatal(err)
	}
	sent(0, "SUBMIT_JOB_BG", "a", "", "w")
	received(0, "JOB_CREATED", "H:1")
	sent(1, "CAN_DO", "a")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:1", "a", "w")
	sent(0, "SUBMIT_JOB_BG", "a", "", "x") // the limit may include the running job
	sent(0, "OPTION_REQ", "no-such-option")
	received(0, "ERROR", "queue_full", "full")
	received(0, "ERROR", "unknown", "unknown option")
	if err := m.CheckMissing(); err != nil {
		t.Error(err)
	}
}

// refusal is the reply of a server to an administrative command that it does not have.
const refusal = "ERR unknown_command Unknown+server+command\n"

// replyTo returns the reply of the server to an administrative command.
func replyTo(t *testing.T, command, reply string) *codec.Frame {
	t.Helper()
	sess, f := codecgearman.Protocol.NewSession(codec.Options{}), new(codec.Frame)
	if _, err := sess.Decode(codec.Peer, []byte(command), f); err != nil {
		t.Fatal(err)
	}
	if _, err := sess.Decode(codec.Server, []byte(reply), f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestUnknownExtension tests that a server need not implement the messages that are not in the specification.
func TestUnknownExtension(t *testing.T) {
	for name, command := range map[string]string{"prioritystatus": "prioritystatus\n", "show-jobs": "show jobs\n", "status": "status\n"} {
		m, sent, _ := gearmanModel(t)
		sent(0, name)
		if err := m.Received(0, replyTo(t, command, refusal)); (err == nil) != (name != "status") {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.CheckMissing(); name != "status" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, sent, _ := gearmanModel(t)
	sent(0, "cancel-job", "H:1")
	if err := m.Received(0, replyTo(t, "cancel job H:1\n", refusal)); err != nil || m.Tainted() {
		t.Errorf("an error that the message leads to: %v, and the state is uncertain: %v", err, m.Tainted())
	}
}

// TestModelAllowsWakeNearScheduledTime tests that the server may wake a worker at about the time of a scheduled job,
// whatever the server has sent to the worker before, but not earlier.
func TestModelAllowsWakeNearScheduledTime(t *testing.T) {
	for wait, early := range map[time.Duration]bool{Slack: true, 10*time.Second - Slack/2: false} {
		synctest.Test(t, func(t *testing.T) {
			m := New(codecgearman.Protocol, time.Now())
			sent := func(conn int, name string, args ...string) { m.Sent(conn, gearmanFrame(t, codec.Peer, name, args...)) }
			received := func(conn int, name string, args ...string) error {
				return m.Received(conn, gearmanFrame(t, codec.Server, name, args...))
			}
			m.Opened(0)
			m.Opened(1)
			sent(1, "CAN_DO", "a")
			sent(1, "PRE_SLEEP")
			sent(0, "SUBMIT_JOB_EPOCH", "a", "", strconv.FormatInt(time.Now().Unix()+10, 10), "x")
			if err := received(0, "JOB_CREATED", "H:1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			m.Elapsed(wait)
			sent(1, "ECHO_REQ", "x")
			if err := received(1, "ECHO_RES", "x"); err != nil {
				t.Fatal(err)
			}
			if err := received(1, "NOOP"); (err != nil) != early {
				t.Errorf("after %v: %v", wait, err)
			}
		})
	}
}

// TestReportAfterTimeLimit tests that the model accepts any report about a job from its worker after the time limit of
// the job may have been exceeded, also if the client has disconnected.
func TestReportAfterTimeLimit(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(1, "CAN_DO_TIMEOUT", "a", "1000")
	sent(0, "SUBMIT_JOB", "a", "", "x")
	received(0, "JOB_CREATED", "H:1")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:1", "a", "x")
	m.Elapsed(time.Second)
	m.Elapsed(2 * Slack)
	if err := m.CheckMissing(); err != nil {
		t.Error(err)
	}
	m.Closed(0)
	sent(1, "WORK_EXCEPTION", "H:1", "late")
	received(1, "ERROR", "unknown", "no such job")
	if err := m.CheckMissing(); err != nil {
		t.Error(err)
	}
}

// TestShortTimeLimitFailsJobBeforeAssignment tests that the client (0) may receive WORK_FAIL before the worker (1) receives
// the job, if the time limit is at most Slack.
func TestShortTimeLimitFailsJobBeforeAssignment(t *testing.T) {
	for limit, mayFail := range map[string]bool{"1": true, "1000": false} {
		m, sent, received := gearmanModel(t)
		sent(1, "CAN_DO_TIMEOUT", "a", limit)
		sent(0, "SUBMIT_JOB", "a", "", "x")
		received(0, "JOB_CREATED", "H:1")
		sent(1, "GRAB_JOB")
		if err := m.Received(0, gearmanFrame(t, codec.Server, "WORK_FAIL", "H:1")); (err == nil) != mayFail {
			t.Errorf("time limit %s ms: %v", limit, err)
		}
		received(1, "JOB_ASSIGN", "H:1", "a", "x")
		if !mayFail {
			continue
		}
		// JOB_ASSIGN has arrived, so nothing is missing later.
		m.Elapsed(Slack / 2)
		m.Elapsed(2 * Slack)
		if err := m.CheckMissing(); err != nil {
			t.Error(err)
		}
	}
}

// TestZeroTimeLimit tests that a server may fail jobs with the time limit 0 at once, or treat 0 as no limit.
func TestZeroTimeLimit(t *testing.T) {
	for _, fails := range []bool{true, false} {
		m, sent, received := gearmanModel(t)
		sent(1, "CAN_DO_TIMEOUT", "a", "0")
		sent(0, "SUBMIT_JOB", "a", "", "x")
		received(0, "JOB_CREATED", "H:1")
		sent(1, "GRAB_JOB")
		received(1, "JOB_ASSIGN", "H:1", "a", "x")
		m.Elapsed(time.Millisecond)
		if fails {
			received(0, "WORK_FAIL", "H:1")
			continue
		}
		m.Elapsed(time.Hour)
		sent(1, "WORK_COMPLETE", "H:1", "y")
		received(0, "WORK_COMPLETE", "H:1", "y")
		if err := m.CheckMissing(); err != nil {
			t.Error(err)
		}
	}
}

// TestUnitOfTimeLimit tests that a server may treat a time limit as seconds, because the specification does not state
// the unit.
func TestUnitOfTimeLimit(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(1, "CAN_DO_TIMEOUT", "a", "2")
	sent(0, "SUBMIT_JOB", "a", "", "x")
	received(0, "JOB_CREATED", "H:1")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:1", "a", "x")
	m.Elapsed(time.Second)
	if err := m.CheckMissing(); err != nil {
		t.Errorf("after a second: %v", err)
	}
	m.Elapsed(2 * time.Second)
	if m.CheckMissing() == nil {
		t.Error("expected a complaint after three seconds, because the client has no WORK_FAIL")
	}
}

// TestModelExpectsMessagesWhenTimesCome tests that the server must report an exceeded time limit to the client, once,
// and must wake workers when a scheduled time comes, also if the model was asked while the time was near.
func TestModelExpectsMessagesWhenTimesCome(t *testing.T) {
	for _, reported := range []bool{true, false} {
		m, sent, received := gearmanModel(t)
		sent(1, "CAN_DO_TIMEOUT", "a", "1000")
		sent(0, "SUBMIT_JOB", "a", "", "x")
		received(0, "JOB_CREATED", "H:1")
		sent(1, "GRAB_JOB")
		received(1, "JOB_ASSIGN", "H:1", "a", "x")
		m.Elapsed(time.Second)
		if reported {
			received(0, "WORK_FAIL", "H:1")
		}
		m.Elapsed(1000 * time.Second)
		if err := m.CheckMissing(); (err == nil) != reported {
			t.Errorf("WORK_FAIL sent: %v; the model says: %v", reported, err)
		}
	}
	m, sent, received := gearmanModel(t)
	sent(1, "CAN_DO", "a")
	sent(1, "PRE_SLEEP")
	sent(0, "SUBMIT_JOB_EPOCH", "a", "", strconv.FormatInt(time.Now().Unix()+2, 10), "x")
	received(0, "JOB_CREATED", "H:1")
	m.Elapsed(2 * time.Second)
	m.Elapsed(2 * Slack)
	if m.CheckMissing() == nil {
		t.Error("expected a complaint, because the worker was not woken")
	}
}

// TestModelKnowsThatCancelEndsJob tests that the model expects no job after its cancellation, also if it was canceled at
// about its scheduled time.
func TestModelKnowsThatCancelEndsJob(t *testing.T) {
	for _, wait := range []time.Duration{0, 2*time.Second - Slack/2, 2 * time.Second} {
		m, sent, received := gearmanModel(t)
		sent(0, "SUBMIT_JOB_EPOCH", "a", "", strconv.FormatInt(time.Now().Unix()+2, 10), "x")
		received(0, "JOB_CREATED", "H:1")
		m.Elapsed(wait)
		sent(0, "cancel-job", "H:1")
		if err := m.Received(0, replyTo(t, "cancel job H:1\n", "OK\n")); err != nil {
			t.Fatal(err)
		}
		m.Elapsed(3 * time.Second)
		sent(1, "CAN_DO", "a")
		sent(1, "GRAB_JOB")
		if err := m.Received(1, gearmanFrame(t, codec.Server, "NO_JOB")); err != nil {
			t.Errorf("canceled after %v: %v", wait, err)
		}
	}
}

// TestModelDistinguishesWakingSomeAndNoWorkers tests that a server that wakes one of several workers violates another
// rule than a server that wakes none.
func TestModelDistinguishesWakingSomeAndNoWorkers(t *testing.T) {
	for woken, rule := range []codec.RuleID{"gearman.worker.wake", "gearman.worker.wake-each", "gearman.worker.wake-each", ""} {
		m, sent, received := gearmanModel(t)
		for worker := 1; worker <= 3; worker++ {
			m.Opened(worker)
			sent(worker, "CAN_DO", "a")
			sent(worker, "PRE_SLEEP")
		}
		sent(0, "SUBMIT_JOB", "a", "", "x")
		received(0, "JOB_CREATED", "H:1")
		for worker := 1; worker <= woken; worker++ {
			received(worker, "NOOP")
		}
		c, _ := m.CheckMissing().(*Complaint)
		if c == nil && rule != "" || c != nil && c.Rule != rule {
			t.Errorf("%d of 3 workers were woken: %v, expected %q", woken, c, rule)
		}
	}
}

// TestEndNearTimeLimit tests that WORK_FAIL is not expected if a worker finishes a job just before the time limit.
func TestEndNearTimeLimit(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(0, "SUBMIT_JOB", "a", "", "x")
	received(0, "JOB_CREATED", "H:1")
	sent(1, "CAN_DO_TIMEOUT", "a", "1")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:1", "a", "x")
	m.Elapsed(time.Millisecond)
	sent(1, "WORK_COMPLETE", "H:1", "y")
	received(0, "WORK_COMPLETE", "H:1", "y")
	m.Elapsed(2 * time.Second)
	if err := m.CheckMissing(); err != nil {
		t.Error(err)
	}
}

// TestModelAllowsBothOrdersOfScheduledJob tests that a job whose scheduled time has come may be queued in the order of
// submission, or at the time when its time came.
func TestModelAllowsBothOrdersOfScheduledJob(t *testing.T) {
	for _, first := range []string{"H:1", "H:2"} {
		m, sent, received := gearmanModel(t)
		sent(0, "SUBMIT_JOB_EPOCH", "a", "", strconv.FormatInt(time.Now().Unix()+1, 10), "x")
		received(0, "JOB_CREATED", "H:1")
		sent(0, "SUBMIT_JOB", "a", "", "x")
		received(0, "JOB_CREATED", "H:2")
		m.Elapsed(2 * time.Second)
		sent(1, "CAN_DO", "a")
		sent(1, "GRAB_JOB")
		received(1, "JOB_ASSIGN", first, "a", "x")
	}
}

// TestProgressBeforeAssignment tests that a server may reject a report of progress from a worker to which the job may
// not be assigned.
func TestProgressBeforeAssignment(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(0, "SUBMIT_JOB_EPOCH", "a", "", strconv.FormatInt(time.Now().Unix()+2, 10), "x")
	received(0, "JOB_CREATED", "H:1")
	m.Elapsed(2*time.Second - Slack/2)
	sent(1, "WORK_STATUS", "H:1", "0", "1")
	received(1, "ERROR", "unknown", "no such job")
	sent(1, "CAN_DO", "a")
	sent(1, "GRAB_JOB")
	received(1, "JOB_ASSIGN", "H:1", "a", "x")
	sent(0, "GET_STATUS", "H:1")
	received(0, "STATUS_RES", "H:1", "1", "1", "0", "0")
}

// TestRefusedSubmission tests that a job has the handle in the reply to its own submission, if the server refuses
// another one that the specification does not contain.
func TestRefusedSubmission(t *testing.T) {
	for _, together := range []bool{true, false} {
		m := New(codecgearman.Protocol, time.Now())
		m.Opened(0)
		sent := func(name string, args ...string) {
			m.Sent(0, frame(t, codecgearman.Protocol, codec.Peer, name, args...))
		}
		received := func(name string, args ...string) {
			if err := m.Received(0, frame(t, codecgearman.Protocol, codec.Server, name, args...)); err != nil {
				t.Errorf("together %v: %v", together, err)
			}
		}
		sent("SUBMIT_REDUCE_JOB", "a", "", "", "", "x")
		if !together {
			received("ERROR", "unknown", "no such request")
		}
		sent("SUBMIT_JOB", "b", "", "y")
		sent("CAN_DO", "b")
		sent("GRAB_JOB")
		if together {
			received("ERROR", "unknown", "no such request")
		}
		received("JOB_CREATED", "H:1")
		received("JOB_ASSIGN", "H:1", "b", "y")
	}
}

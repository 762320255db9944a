package model

import (
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	codecbeanstalk "jobwire/codec/beanstalk"
	codecdanga "jobwire/codec/danga"
)

// illegalLine reports an illegal line of Beanstalk to a new model, and the reply of the server to it.
func illegalLine(t *testing.T, line, reply string) (m Model, known bool, err error) {
	t.Helper()
	m = New(codecbeanstalk.Protocol, time.Now(), Watched)
	m.Opened(0)
	sess, f := codecbeanstalk.Protocol.NewSession(codec.Options{}), new(codec.Frame)
	_, e := sess.Decode(codec.Peer, []byte(line), f)
	broken, ok := e.(*codec.Error)
	if !ok {
		t.Fatalf("%q: %v", line, e)
	}
	known = m.Illegal(0, f, broken)
	if _, e := sess.Decode(codec.Server, []byte(reply), f); e != nil {
		t.Fatalf("%q: %v", reply, e)
	}
	return m, known, m.Received(0, f)
}

// TestIllegalLines tests which replies to illegal lines the model accepts: every rejection that the specification allows,
// and the reply to the command where servers differ in whether the line is legal.
func TestIllegalLines(t *testing.T) {
	for _, tt := range []struct {
		line, reply string
		right       bool
	}{
		{"kick x\r\n", "BAD_FORMAT\r\n", true},
		{"kick x\r\n", "UNKNOWN_COMMAND\r\n", false},
		{"kick x\r\n", "KICKED 0\r\n", false},
		{"kick x y\r\n", "UNKNOWN_COMMAND\r\n", true},
		{"kick  1\r\n", "KICKED 0\r\n", true},
		{"kick +1\r\n", "KICKED 0\r\n", true},
		{"peek 18446744073709551616\r\n", "NOT_FOUND\r\n", true},
		{"delete\r\n", "UNKNOWN_COMMAND\r\n", true},
		{"deletex\r\n", "BAD_FORMAT\r\n", true},
		{"peek-ready\r\r\n", "BAD_FORMAT\r\n", true},
		{"kick 0\nlist-tubes\r\n", "KICKED 0\r\n", false},
		{"use a,b\r\n", "USING a\r\n", false},
		{"use a,b\r\n", "UNKNOWN_COMMAND\r\n", false},
		{"put 4294967296 0 1 1\r\nx\r\n", "BAD_FORMAT\r\n", true},
		{"put 4294967296 0 1 1\r\nx\r\n", "INSERTED 1\r\n", false},
		{"put 0 4294967296 1 1\r\nx\r\n", "INSERTED 1\r\n", true},
		{"put 0 0 1 1\r\nxyz\r\n", "EXPECTED_CRLF\r\n", true},
		{"put 0 0 1 1\r\nxyz\r\n", "BAD_FORMAT\r\n", false},
	} {
		if m, _, err := illegalLine(t, tt.line, tt.reply); (err == nil) != tt.right {
			t.Errorf("%q, %q: %v", tt.line, tt.reply, err)
		} else if tt.right && m.CheckMissing() != nil {
			t.Errorf("%q, %q: %v", tt.line, tt.reply, m.CheckMissing())
		}
	}
	for _, line := range []string{"peek-ready\n\r\n", strings.Repeat("\n", 223) + "\r\n"} {
		if _, known, _ := illegalLine(t, line, "BAD_FORMAT\r\n"); known {
			t.Errorf("the model knows where the next command begins after LF alone in %q", line)
		}
	}
	if m, _, _ := illegalLine(t, "kick x\r\n", "BAD_FORMAT\r\n"); m.Tainted() {
		t.Error("a rejected line has changed the state")
	}
}

// TestLinesAfterUnclearEnd tests that the model expects nothing of commands after a line whose end servers see in
// different places, so that it does not take the rejection of the line for the reply to the next command.
func TestLinesAfterUnclearEnd(t *testing.T) {
	m := New(codecbeanstalk.Protocol, time.Now(), Watched)
	m.Opened(0)
	sess, f := codecbeanstalk.Protocol.NewSession(codec.Options{}), new(codec.Frame)
	for _, request := range []string{"put 0 0 0 1\r\nx\r\n", "\nr\r\n", "reserve\r\n", "reserve\r\n"} {
		_, err := sess.Decode(codec.Peer, []byte(request), f)
		if illegal, _ := err.(*codec.Error); illegal != nil {
			m.Illegal(0, f, illegal)
		} else {
			m.Sent(0, f)
		}
	}
	for _, reply := range []string{"INSERTED 1\r\n", "BAD_FORMAT\r\n", "RESERVED 1 1\r\nx\r\n", "DEADLINE_SOON\r\n"} {
		if _, err := sess.Decode(codec.Server, []byte(reply), f); err != nil {
			t.Fatal(err)
		}
		if err := m.Received(0, f); err != nil {
			t.Errorf("%q: %v", reply, err)
		}
	}
}

// TestLargeBound tests that a server may reject a bound of kick that it cannot represent, and that the count is checked if
// it accepts the bound.
func TestLargeBound(t *testing.T) {
	for _, tt := range []struct {
		bound, reply string
		right        bool
	}{
		{"1", "BAD_FORMAT\r\n", false},
		{"4294967296", "BAD_FORMAT\r\n", true},
		{"4294967296", "KICKED 0\r\n", true},
		{"4294967296", "KICKED 1\r\n", false},
	} {
		m := New(codecbeanstalk.Protocol, time.Now(), Watched)
		m.Opened(0)
		sess, f := codecbeanstalk.Protocol.NewSession(codec.Options{}), new(codec.Frame)
		if _, err := sess.Decode(codec.Peer, []byte("kick "+tt.bound+"\r\n"), f); err != nil {
			t.Fatal(err)
		}
		m.Sent(0, f)
		if _, err := sess.Decode(codec.Server, []byte(tt.reply), f); err != nil {
			t.Fatal(err)
		}
		if err := m.Received(0, f); (err == nil) != tt.right {
			t.Errorf("kick %s, %q: %v", tt.bound, tt.reply, err)
		}
	}
}

// TestLargestBody tests that the model checks the size of a body only if it knows the largest size, and otherwise only
// whether the replies contradict each other.
func TestLargestBody(t *testing.T) {
	for _, tt := range []struct {
		known        int
		sizes, wrong string // the sizes, in units of 10 bytes, in the order of the puts; "!" if the body is too big
	}{
		{0, "1 9! 5 9!", ""},
		{0, "5 3!", "3!"},
		{0, "3! 5", "5"},
		{50, "4 6! 5", ""},
		{50, "4 5!", ""},
		{50, "4!", "4!"},
		{50, "6", "6"},
	} {
		m := New(codecbeanstalk.Protocol, time.Now(), Watched)
		m.Opened(0)
		m.Accepts(tt.known)
		wrong := ""
		for i, size := range strings.Fields(tt.sizes) {
			m.Sent(0, frame(t, codecbeanstalk.Protocol, codec.Peer, "put", "0", "0", "1", strings.Repeat("x", int(size[0]-'0')*10)))
			sess, f := codecbeanstalk.Protocol.NewSession(codec.Options{}), new(codec.Frame)
			reply := "INSERTED " + string(rune('1'+i)) + "\r\n"
			if len(size) > 1 {
				reply = "JOB_TOO_BIG\r\n"
			}
			sess.Decode(codec.Peer, []byte("put 0 0 1 0\r\n\r\n"), f)
			sess.Decode(codec.Server, []byte(reply), f)
			if m.Received(0, f) != nil {
				wrong = size
			}
		}
		if wrong != tt.wrong {
			t.Errorf("largest size %d, bodies %s: wrong is %q, want %q", tt.known, tt.sizes, wrong, tt.wrong)
		}
	}
}

// TestAbandonedJob tests that the model follows a job whose client has disconnected as soon as another client has joined
// it.
func TestAbandonedJob(t *testing.T) {
	m, sent, received := gearmanModel(t)
	sent(0, "SUBMIT_JOB", "f", "u", "x")
	received(0, "JOB_CREATED", "H:1")
	m.Closed(0)
	m.Opened(2)
	sent(1, "CAN_DO", "f")
	sent(1, "GRAB_JOB")
	if err := m.Received(1, gearmanFrame(t, codec.Server, "NO_JOB")); err != nil {
		t.Errorf("the server may have dropped the job: %v", err)
	}
	sent(2, "SUBMIT_JOB", "f", "u", "x")
	received(2, "JOB_CREATED", "H:1")
	sent(1, "GRAB_JOB")
	if err := m.Received(1, gearmanFrame(t, codec.Server, "NO_JOB")); err == nil {
		t.Error("NO_JOB although a client has joined the job")
	}
}

// TestContract tests that a protocol without a model of its own gets one that requires the replies that the contract
// declares, and nothing else.
func TestContract(t *testing.T) {
	p := *codecdanga.Protocol
	p.Name = "without-model"
	m := New(&p, time.Now())
	m.Opened(0)
	m.Sent(0, frame(t, &p, codec.Peer, "job_status_req", "H:1"))
	if err := m.CheckMissing(); err == nil || !strings.Contains(err.Error(), string(p.Answered)) {
		t.Errorf("the request is not answered: %v", err)
	}
	before := m.State(Everything)
	if err := m.Received(0, frame(t, &p, codec.Server, "job_status_res", "\x00\x00\x00\x01", "\x00\x00\x00\x05", "\x00\x00\x00\x07")); err != nil || m.CheckMissing() != nil {
		t.Errorf("the request is answered: %v, %v", err, m.CheckMissing())
	}
	if m.State(Everything) == before {
		t.Error("the reply has not changed the state")
	}
	if err := m.Received(0, frame(t, &p, codec.Server, "job_status_res", "\x00\x00\x00\x01", "\x00\x00\x00\x05", "\x00\x00\x00\x07")); err != nil {
		t.Errorf("another message: %v", err)
	}
}

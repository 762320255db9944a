package inject

import (
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/refserver"
	server "jobwire/refserver/beanstalk"
)

var protocol = &Protocol{
	Protocol: beanstalk.Protocol,
	New:      func() refserver.Machine { return server.New(server.Options{}) },
	Paired:   true,
}

// TestReply checks that a reply is decoded as a reply to its command, even if the command is malformed.
func TestReply(t *testing.T) {
	s := protocol.server(protocol.New())
	for _, tt := range []struct{ command, reply, name, first string }{
		{"put 0 0 60 1\r\nx\r\n", "BURIED 7\r\n", "BURIED_JOB", "7"},
		{"bury 7 0\r\n", "BURIED\r\n", "BURIED", ""},
		{"kick 1\r\n", "KICKED 1\r\n", "KICKED", "1"},
		{"kick-job 7\r\n", "KICKED\r\n", "KICKED_JOB", ""},
		{"kick x\r\n", "BAD_FORMAT\r\n", "BAD_FORMAT", ""},
		{"nonsense\r\n", "UNKNOWN_COMMAND\r\n", "UNKNOWN_COMMAND", ""},
		{"reserve\r\n", "RESERVED 7 2\r\n\r\n\r\n", "RESERVED", "7"},
		{"list-tubes\r\n", "OK 14\r\n---\n- default\n\r\n", "list-reply", "default"},
	} {
		m := s.reply(new(Peer), []byte(tt.command), &codec.Frame{Raw: []byte(tt.reply)})
		if m.Name != tt.name || m.Arg(0) != tt.first {
			t.Errorf("%q to %q is read as %s with %q, want %s with %q", tt.reply, tt.command, m.Name, m.Args, tt.name, tt.first)
		}
	}
}

// TestTick checks that the timer of an edit expires although the machine has no timer.
func TestTick(t *testing.T) {
	s := protocol.server(protocol.New())
	if !s.Next().IsZero() {
		t.Error("Next returns a time without a timer")
	}
	var causes []string
	s.After(time.Minute, func() { causes = append(causes, s.Cause) })
	next := s.Next()
	s.Tick(next.Add(-time.Second))
	s.Tick(next)
	s.Tick(next.Add(time.Second))
	if !slices.Equal(causes, []string{Time}) {
		t.Errorf("the timer expired with the causes %q, want %q", causes, Time)
	}
}

// TestRun checks that edits of one type run in order until one of them drops or passes the message.
func TestRun(t *testing.T) {
	var ran []string
	add := func(name string) func(*Message) { return func(*Message) { ran = append(ran, name) } }
	s := protocol.server(protocol.New())
	Both(On("put delete", nil, add("first")), On("put", nil, add("second")), On("put", nil, (*Message).Drop), On("put", nil, add("never")))(s)
	s.run(s.received, &Message{Server: s, Name: "put"})
	s.run(s.received, &Message{Server: s, Name: "delete"})
	if got := strings.Join(ran, " "); got != "first second first" {
		t.Errorf("ran %s", got)
	}
}

// TestCheck checks that a row without a fault and an edit of an unknown message type are errors.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		spec MutantSpec
		want string
	}{
		{MutantSpec{Name: "x"}, "x has no fault"},
		{MutantSpec{Name: "x", Fault: "drop nothing"}, "x: "},
		{MutantSpec{Name: "x", Waive: []codec.RuleID{"no.rule"}}, "unknown rule no.rule"},
		{MutantSpec{Name: "x", Fault: "drop put"}, ""},
		{MutantSpec{Name: "x", Edit: Out("USING", nil, (*Message).Drop)}, ""},
	} {
		err := protocol.Check(&tt.spec)
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.spec, err, tt.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown type is accepted")
		}
	}()
	protocol.Check(&MutantSpec{Edit: Out("nothing", nil, (*Message).Drop)})
}

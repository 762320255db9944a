package resp

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"jobwire/codec"
)

// piece is a part of a conversation: bytes that one side sends, and the messages to which they must decode.
type piece struct {
	from codec.Side
	raw  string
	want []string
}

func converse(t *testing.T, s codec.Session, pieces []piece) {
	t.Helper()
	for _, p := range pieces {
		if got := read(t, s, p.from, p.raw); !slices.Equal(got, p.want) {
			t.Fatalf("%s: %q read as %q, want %q", p.from, p.raw, got, p.want)
		}
	}
}

// TestRepliesFollowTheirRequests tests that the decoder knows which messages of a Redis server answer a request and
// which are pushed, also after subscriptions, CLIENT REPLY, MONITOR and RESET, and rejects a reply without a request.
func TestRepliesFollowTheirRequests(t *testing.T) {
	unasked := string(RuleReplyAsked)
	message := "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"
	tests := []struct {
		name   string
		pieces []piece
	}{
		{"one for each", []piece{
			{codec.Peer, ping + "PING\r\n" + "*0\r\n", []string{"command PING", "inline PING", string(RuleEmpty)}},
			{codec.Server, "+PONG\r\n+PONG\r\n+PONG\r\n", []string{"simple PONG", "simple PONG", unasked}},
		}},
		{"a refused reply is one", []piece{
			{codec.Peer, "PING\r\nPING\r\n", []string{"inline PING", "inline PING"}},
			{codec.Server, ":x\r\n:1\r\n:2\r\n", []string{string(RuleInteger), "integer 1", unasked}},
		}},
		{"last words", []piece{
			{codec.Peer, "*x\r\n", []string{string(RuleCount)}},
			{codec.Server, "-ERR Protocol error: invalid multibulk length\r\n", []string{"error ERR Protocol error: invalid multibulk length"}},
		}},
		{"subscribed", []piece{
			{codec.Peer, "SUBSCRIBE a b\r\nPING\r\n", []string{"inline SUBSCRIBE a b", "inline PING"}},
			{codec.Server, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", []string{"subscribed a 1"}},
			{codec.Server, message, []string{"message a x"}},
			{codec.Server, "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n", []string{"subscribed b 2"}},
			{codec.Server, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", []string{"list pong "}},
			{codec.Server, message, []string{"message a x"}},
			{codec.Server, "+PONG\r\n", []string{unasked}},
			{codec.Peer, "unsubscribe\r\nunsubscribe\r\n" + ping, []string{"inline unsubscribe", "inline unsubscribe", "command PING"}},
			{codec.Server, "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n", []string{"unsubscribed b 1"}},
			{codec.Server, message, []string{"message a x"}},
			{codec.Server, "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n", []string{"unsubscribed a 0"}},
			{codec.Server, "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", []string{"aggregate *3 $11 unsubscribe $-1 :0"}},
			{codec.Server, message, []string{"list message a x"}},
		}},
		{"patterns beside channels", []piece{
			{codec.Peer, "*2\r\n$9\r\nSubscribe\r\n$1\r\na\r\n*3\r\n$10\r\npsubscribe\r\n$1\r\np\r\n$1\r\nq\r\nunsubscribe\r\npunsubscribe\r\nPING\r\n",
				[]string{"command Subscribe a", "command psubscribe p q", "inline unsubscribe", "inline punsubscribe", "inline PING"}},
			{codec.Server, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", []string{"subscribed a 1"}},
			{codec.Server, "*3\r\n$10\r\npsubscribe\r\n$1\r\np\r\n:2\r\n*3\r\n$10\r\npsubscribe\r\n$1\r\nq\r\n:3\r\n", []string{"psubscribed p 2", "psubscribed q 3"}},
			{codec.Server, "*4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\na\r\n$1\r\nx\r\n", []string{"pmessage p a x"}},
			{codec.Server, "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:2\r\n", []string{"unsubscribed a 2"}},
			{codec.Server, "*3\r\n$12\r\npunsubscribe\r\n$1\r\nq\r\n:1\r\n*3\r\n$12\r\npunsubscribe\r\n$1\r\np\r\n:0\r\n+PONG\r\n", []string{"punsubscribed q 1", "punsubscribed p 0", "simple PONG"}},
			{codec.Server, "+PONG\r\n", []string{unasked}},
		}},
		{"shards", []piece{
			{codec.Peer, "ssubscribe a\r\nsunsubscribe\r\nPING\r\n", []string{"inline ssubscribe a", "inline sunsubscribe", "inline PING"}},
			{codec.Server, "*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\nx\r\n", []string{"ssubscribed a 1", "smessage a x"}},
			{codec.Server, "*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n+PONG\r\n+PONG\r\n", []string{"sunsubscribed a 0", "simple PONG", unasked}},
		}},
		{"a subscription that fails", []piece{
			{codec.Peer, "SUBSCRIBE a b\r\nSUBSCRIBE\r\nPING\r\n", []string{"inline SUBSCRIBE a b", "inline SUBSCRIBE", "inline PING"}},
			{codec.Server, "-NOPERM a\r\n-ERR b\r\n+PONG\r\n+PONG\r\n", []string{"error NOPERM a", "error ERR b", "simple PONG", unasked}},
		}},
		{"RESP3", []piece{
			{codec.Peer, "SUBSCRIBE a\r\nPUBLISH a x\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPING\r\n", []string{"inline SUBSCRIBE a", "inline PUBLISH a x", "inline UNSUBSCRIBE", "inline UNSUBSCRIBE", "inline PING"}},
			{codec.Server, ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n:1\r\n", []string{"push >3 $9 subscribe $1 a :1", "push >3 $7 message $1 a $1 x", "integer 1"}},
			{codec.Server, ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n>3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n+PONG\r\n", []string{"push >3 $11 unsubscribe $1 a :0", "push >3 $11 unsubscribe _ :0", "simple PONG"}},
			{codec.Server, ">1\r\n:1\r\n+PONG\r\n", []string{"push >1 :1", unasked}},
		}},
		{"CLIENT REPLY", []piece{
			{codec.Peer, "CLIENT REPLY SKIP\r\nPING\r\nPING\r\n", []string{"inline CLIENT REPLY SKIP", "inline PING", "inline PING"}},
			{codec.Server, "+PONG\r\n", []string{"simple PONG"}},
			{codec.Peer, "*3\r\n$6\r\nclient\r\n$5\r\nreply\r\n$3\r\noff\r\nGET a\r\nclient reply skip\r\nClient Reply On\r\nSUBSCRIBE a\r\n",
				[]string{"command client reply off", "inline GET a", "inline client reply skip", "inline Client Reply On", "inline SUBSCRIBE a"}},
			{codec.Server, "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", []string{"simple OK", "subscribed a 1"}},
			{codec.Server, "+what?\r\n", []string{"simple what?"}},
		}},
		{"CLIENT REPLY that is wrong", []piece{
			{codec.Peer, "CLIENT REPLY FOO\r\nCLIENT ID\r\n", []string{"inline CLIENT REPLY FOO", "inline CLIENT ID"}},
			{codec.Server, "-ERR syntax error\r\n:3\r\n+PONG\r\n", []string{"error ERR syntax error", "integer 3", unasked}},
		}},
		{"MONITOR", []piece{
			{codec.Peer, "MONITOR\r\n", []string{"inline MONITOR"}},
			{codec.Server, "+OK\r\n+1.5 [0 lua] \"GET\"\r\n", []string{"simple OK", "simple 1.5 [0 lua] \"GET\""}},
		}},
		{"RESET", []piece{
			{codec.Peer, "SUBSCRIBE a\r\nRESET\r\nGET a\r\n", []string{"inline SUBSCRIBE a", "inline RESET", "inline GET a"}},
			{codec.Server, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n+RESET\r\n" + message, []string{"subscribed a 1", "simple RESET", "list message a x"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { converse(t, Protocol.NewSession(codec.Options{}), tt.pieces) })
	}
}

// TestWaivers tests that a message that violates one rule is rejected, and is decoded if this rule is waived.
func TestWaivers(t *testing.T) {
	tests := []struct {
		waive codec.RuleID
		from  codec.Side
		raw   string
		want  string
	}{
		{RuleLineEnd, codec.Peer, "*1\rx$4\r\nPING\r\n", "command PING"},
		{RuleLineEnd, codec.Server, "+PO\rNG\n", "simple PO\rNG"},
		{RuleBulkEnd, codec.Peer, "*1\r\n$4\r\nPINGxx", "command PING"},
		{RuleCap, codec.Peer, "*1\r\n$2000\r\n" + repeat("a", 2000) + "\r\n", "command " + repeat("a", 2000)},
		{RuleLineLength, codec.Server, "+" + repeat("a", 300) + "\r\n", "simple " + repeat("a", 300)},
		{RuleInlineLength, codec.Peer, repeat("a", 300) + "\r\n", "inline " + repeat("a", 300)},
		{RuleInlineWords, codec.Peer, "PING 'a\n", "inline PING 'a"},
		{RuleEmpty, codec.Peer, "*0\r\n", "command"},
		{RuleEmpty, codec.Peer, " \n", "inline  "},
		{RuleInteger, codec.Server, ":one\r\n", "integer one"},
		{RuleInteger, codec.Server, "*1\r\n:+1\r\n", "aggregate *1 :+1"},
		{RuleBoolean, codec.Server, "#yes\r\n", "boolean yes"},
		{RuleDouble, codec.Server, ",\r\n", "double "},
		{RuleBigNumber, codec.Server, "(0x1\r\n", "big-number 0x1"},
		{RuleNull, codec.Server, "_x\r\n", "aggregate _x"},
		{RuleVerbatim, codec.Server, "=3\r\na:b\r\n", "verbatim a b"},
		{RuleVerbatim, codec.Server, "=2\r\nab\r\n", "aggregate =2 ab"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %.30q", tt.waive, tt.raw), func(t *testing.T) {
			o := codec.Options{MaxData: 1000, MaxLine: 200}
			var f codec.Frame
			if _, err := pingSession(t, o).Decode(tt.from, []byte(tt.raw), &f); err == nil {
				t.Fatal("accepted without the waiver")
			}
			o.Waive = []codec.RuleID{tt.waive}
			if got := read(t, pingSession(t, o), tt.from, tt.raw); len(got) != 1 || got[0] != tt.want {
				t.Errorf("waived: %q, want %q", got, tt.want)
			}
		})
	}
	s := Protocol.NewSession(codec.Options{Waive: []codec.RuleID{RuleReplyAsked}})
	if got := read(t, s, codec.Server, "+PONG\r\n"); !slices.Equal(got, []string{"simple PONG"}) {
		t.Error(got)
	}
}

// TestAppendRejectsWhatDecodeRejects tests that a message that the decoder would reject is not encoded, unless all
// rules are waived, and that neither the buffer nor the waiting request changes.
func TestAppendRejectsWhatDecodeRejects(t *testing.T) {
	tests := []struct {
		asked string
		from  codec.Side
		m     *codec.Message
		rule  codec.RuleID
	}{
		{"", codec.Peer, message("simple", "OK"), RuleDirection},
		{"PING", codec.Server, message("command", "PING"), RuleDirection},
		{"", codec.Server, message("simple", "OK"), RuleReplyAsked},
		{"", codec.Peer, message("command"), RuleForm},
		{"", codec.Peer, message("inline", ""), RuleEmpty},
		{"", codec.Peer, message("inline", "*1"), RuleCount},
		{"", codec.Peer, message("inline", "PING\nPING"), RuleForm},
		{"", codec.Peer, message("inline", "PING\r"), RuleForm},
		{"", codec.Peer, message("inline", "PING 'a"), RuleInlineWords},
		{"PING", codec.Server, message("simple", "a\r\nb"), RuleForm},
		{"PING", codec.Server, message("simple", "a\nb"), RuleLineEnd},
		{"PING", codec.Server, message("simple"), RuleForm},
		{"PING", codec.Server, message("simple", "a", "b"), RuleForm},
		{"PING", codec.Server, message("error", "E E", "b"), RuleForm},
		{"PING", codec.Server, message("nil", "x"), RuleForm},
		{"PING", codec.Server, message("integer", "1.5"), RuleInteger},
		{"PING", codec.Server, message("integer", "007"), RuleInteger},
		{"PING", codec.Server, message("boolean", "yes"), RuleBoolean},
		{"PING", codec.Server, message("double", "inf!"), RuleDouble},
		{"PING", codec.Server, message("map", "a"), RuleForm},
		{"PING", codec.Server, message("verbatim", "text", "a"), RuleVerbatim},
		{"PING", codec.Server, message("aggregate", "*1", "$1", "a"), RuleForm},
		{"PING", codec.Server, message("aggregate", ":1"), RuleForm},
		{"PING", codec.Server, message("aggregate", "*1", ":1", ":2"), RuleForm},
		{"PING", codec.Server, message("aggregate", "*2", ":1"), RuleForm},
		{"PING", codec.Server, message("aggregate"), RuleForm},
		{"PING", codec.Server, message("aggregate", "*1", "$2", "a"), RuleBulkEnd},
		{"PING", codec.Server, message("message", "a", "b"), RuleForm},
		{"SUBSCRIBE a", codec.Server, message("list", "message", "a", "b"), RuleForm},
		{"", codec.Peer, message("command", "SET", repeat("a", 1000)), RuleCap},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{MaxData: 1000})
		if tt.asked != "" {
			read(t, s, codec.Peer, tt.asked+"\r\n")
		}
		out, err := s.Append([]byte("kept"), tt.from, tt.m)
		var e *codec.Error
		if !errors.As(err, &e) || e.Rule != tt.rule || string(out) != "kept" {
			t.Errorf("%s %.40q: %.40q, %v; want %s", tt.m.Type.Name, tt.m.Args, out, err, tt.rule)
		}
		if waiting := s.(*session).waiting(); (waiting == 1) != (tt.asked != "") {
			t.Errorf("%s %.40q: %d requests wait after the refusal", tt.m.Type.Name, tt.m.Args, waiting)
		}
		if _, err := Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, tt.from, tt.m); err != nil {
			t.Errorf("%s %.40q with all rules waived: %v", tt.m.Type.Name, tt.m.Args, err)
		}
	}
}

// TestLimitsAreOptions tests that the options MaxData, MaxLine and MaxPending limit the size of a message, the number
// of its elements, the length of a line and the number of requests without a reply.
func TestLimitsAreOptions(t *testing.T) {
	o := codec.Options{MaxData: 128, MaxLine: 8, MaxPending: 2} // 1026 elements
	tests := []struct {
		from codec.Side
		raw  string
		want []string
	}{
		{codec.Peer, "*1\r\n$128\r\n" + repeat("a", 128) + "\r\n", []string{"command " + repeat("a", 128)}},
		{codec.Peer, "*1\r\n$129\r\n", []string{string(RuleCap)}},
		{codec.Peer, "*2\r\n$64\r\n" + repeat("a", 64) + "\r\n$65\r\n", []string{string(RuleCap)}},
		{codec.Peer, "*2\r\n$1\r\na\r\n$0\r\n\r\n", []string{"command a "}},
		{codec.Peer, "*1027\r\n", []string{string(RuleCap)}},
		{codec.Server, "*2\r\n:1\r\n:1\r\n", []string{"aggregate *2 :1 :1"}},
		{codec.Server, "*1026\r\n" + repeat("*0\r\n", 1026), []string{"aggregate *1026" + repeat(" *0", 1026)}},
		{codec.Server, "*1\r\n*1026\r\n", []string{string(RuleCap)}},
		{codec.Server, "*1027\r\n", []string{string(RuleCap)}},
		{codec.Server, "+aaaaa\r\n", []string{"simple aaaaa"}},
		{codec.Server, "+aaaaaaa", []string{string(RuleLineLength)}},
		{codec.Peer, "aaaaaa\r\n", []string{"inline aaaaaa"}},
		{codec.Peer, "aaaaaaaa", []string{string(RuleInlineLength)}},
		{codec.Peer, "a\na\n", []string{"inline a", string(RulePending)}},
	}
	for _, tt := range tests {
		if got := read(t, pingSession(t, o), tt.from, tt.raw); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q read as %q, want %q", tt.from, tt.raw, got, tt.want)
		}
	}
}

// TestLargeBulkStringIsScannedFewTimes tests that a large message that arrives byte by byte is decoded with few calls
// of Decode, if the caller waits for the length that Decode returned.
func TestLargeBulkStringIsScannedFewTimes(t *testing.T) {
	tests := []struct {
		name  string
		from  codec.Side
		raw   []byte
		calls int
	}{
		{"a request", codec.Peer, fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n%s\r\n", repeat("a", 1000000)), 40},
		{"a reply", codec.Server, fmt.Appendf(nil, "*2\r\n$1000000\r\n%s\r\n$-1\r\n", repeat("a", 1000000)), 40},
	}
	for _, tt := range tests {
		s := pingSession(t, codec.Options{})
		var f codec.Frame
		calls := 0
		for have := 1; ; calls++ {
			n, err := s.Decode(tt.from, tt.raw[:have], &f)
			if err == nil {
				break
			}
			if err != codec.ErrShort || n <= have || n > len(tt.raw) {
				t.Fatalf("%s: of %d bytes of %d: %d, %v", tt.name, have, len(tt.raw), n, err)
			}
			have = n
		}
		if calls > tt.calls {
			t.Errorf("%s: looked at %d times, want at most %d", tt.name, calls, tt.calls)
		}
	}
}

// TestWaivedMessageKeepsTheOrderOfRequests checks that, with all rules waived, a message that decodes to two is counted as
// one request, and that the requests before it keep their order.
func TestWaivedMessageKeepsTheOrderOfRequests(t *testing.T) {
	s := Protocol.NewSession(codec.Options{WaiveAll: true})
	var f codec.Frame
	send := func(name string, args ...string) {
		t.Helper()
		if _, err := s.Append(nil, codec.Peer, message(name, args...)); err != nil {
			t.Fatal(err)
		}
	}
	send("command", "PING")
	send("command", "PING")
	send("command", "SUBSCRIBE", "a")
	send("command", "PING")
	for range 2 {
		if _, err := s.Decode(codec.Server, []byte("+PONG\r\n"), &f); err != nil {
			t.Fatal(err)
		}
	}
	// SUBSCRIBE and the last PING have no reply yet.
	send("inline", "PING\nPING")
	if _, err := s.Decode(codec.Server, []byte("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"), &f); err != nil || f.Type.Name != "subscribed" {
		t.Errorf("read as %v, %v", f.Type, err)
	}
}

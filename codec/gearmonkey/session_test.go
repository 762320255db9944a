package gearmonkey

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/internal/codectest"
	"jobwire/codec/resp"
)

var samples = codectest.TypeTests{Protocol: Protocol, Samples: map[string][]string{
	"double":     {"-1.5e+30"},
	"big-number": {"-123456789012345678901234567890"},
	"aggregate":  {"*3", "$3", "a\r\n", "*-1", "~1", ":7"},
	"push":       {">2", "$10", "invalidate", "_"},
}}

func message(name string, args ...string) *codec.Message {
	return codectest.Message(Protocol, name, args...)
}

// TestDeclarationsAreConsistent tests that the declaration of the protocol has no contradictions, and that the general
// message types of RESP come after those of GearMonkey.
func TestDeclarationsAreConsistent(t *testing.T) {
	if err := Protocol.Check(); err != nil {
		t.Fatal(err)
	}
	general := map[string]bool{}
	for _, msgType := range resp.Protocol.Types {
		general[msgType.Name] = true
	}
	for i, msgType := range Protocol.Types {
		if want := i >= len(typeDecls); general[msgType.Name] != want {
			t.Errorf("%s is at index %d; expected general message types after the %d others", msgType.Name, i, len(typeDecls))
		}
	}
}

// TestRulesAreConsistent tests that each rule of GearMonkey has an ID with the prefix "gearmonkey." and a text that
// ends with a period.
func TestRulesAreConsistent(t *testing.T) {
	for _, r := range codec.ParseRules(rules) {
		if !strings.HasPrefix(string(r.ID), "gearmonkey.") || !strings.HasSuffix(r.Text, ".") {
			t.Errorf("%+v", r)
		}
	}
}

// TestEveryTypeRoundTrips tests that a message of each type is the same after it has been encoded and decoded.
func TestEveryTypeRoundTrips(t *testing.T) { samples.RoundTrips(t) }

// TestEveryPrefixIsIncomplete tests that the decoder asks for more bytes, and not for more than the message has, while
// a message of any type is incomplete.
func TestEveryPrefixIsIncomplete(t *testing.T) { samples.Prefixes(t) }

// array encodes words as a request.
func array(words ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return s
}

// read decodes all of b and returns the messages, with each argument in quotes.
func read(t *testing.T, s codec.Session, from codec.Side, b string) (all []string) {
	t.Helper()
	for len(b) > 0 {
		var f codec.Frame
		n, err := s.Decode(from, []byte(b), &f)
		var e *codec.Error
		switch {
		case err == codec.ErrShort:
			return append(all, "...")
		case errors.As(err, &e):
			all = append(all, string(e.Rule))
		default:
			var m codec.Message
			f.Message(&m)
			all = append(all, fmt.Sprintf("%s %q", f.Type.Name, m.Args))
		}
		b = b[min(n, len(b)):]
	}
	return all
}

// TestRequestHasTheFirstMatchingType tests that a Redis command with the keys and values of GearMonkey is decoded as
// the message type of its step, and any other command as a general one.
func TestRequestHasTheFirstMatchingType(t *testing.T) {
	sha := strings.Repeat("0123abCD", 5)
	tests := []struct{ words, want string }{
		{"GET count:a", `GET_COUNT ["a"]`},
		{"get count:a", `GET_COUNT ["a"]`},
		{"GET Count:a", `command ["GET" "Count:a"]`},
		{"GET uid:a", `command ["GET" "uid:a"]`},
		{"GET count:", `GET_COUNT [""]`},
		{"GET count:a b", `command ["GET" "count:a" "b"]`},
		{"INCR uid:a", `INCR_UID ["a"]`},
		{"INCR count:a", `INCR_COUNT ["a"]`},
		{"INCR job:a", `command ["INCR" "job:a"]`},
		{"hmset job:a:7 status idle input x", `HMSET_IDLE ["a" "7" "x"]`},
		{"HMSET job:a:b::7 status idle input job:c:8", `HMSET_IDLE ["a:b:" "7" "job:c:8"]`},
		{"HMSET job::7 status idle input x", `HMSET_IDLE ["" "7" "x"]`},
		{"HMSET job:a:7 status IDLE input x", `command ["HMSET" "job:a:7" "status" "IDLE" "input" "x"]`},
		{"HMSET job:a:7 input x status idle", `command ["HMSET" "job:a:7" "input" "x" "status" "idle"]`},
		{"HMSET job:a:x status idle input x", `command ["HMSET" "job:a:x" "status" "idle" "input" "x"]`},
		{"HMSET job:a: status idle input x", `command ["HMSET" "job:a:" "status" "idle" "input" "x"]`},
		{"HMSET job:7 status idle input x", `command ["HMSET" "job:7" "status" "idle" "input" "x"]`},
		{"HMSET job:a:-7 status busy", `command ["HMSET" "job:a:-7" "status" "busy"]`},
		{"HMSET job:a:7 status busy", `HMSET_BUSY ["a" "7"]`},
		{"HMSET job:a:7 status:dividend 1/2 status:divisor 0.5", `HMSET_PROGRESS ["a" "7" "1/2" "0.5"]`},
		{"HMSET job:a:7 status success output x", `HMSET_DONE ["a" "7" "success" "x"]`},
		{"HMSET job:a:7 status error output x", `HMSET_DONE ["a" "7" "error" "x"]`},
		{"HMSET job:a:7 status failed output x", `command ["HMSET" "job:a:7" "status" "failed" "output" "x"]`},
		{"HSET job:a:7 status busy", `command ["HSET" "job:a:7" "status" "busy"]`},
		{"PUBLISH channel:a create:7", `PUBLISH_CREATE ["a" "7"]`},
		{"PUBLISH channel:a start:7", `PUBLISH_START ["a" "7"]`},
		{"PUBLISH channel:a finish:7", `PUBLISH_FINISH ["a" "7"]`},
		{"PUBLISH channel:a stop:7", `command ["PUBLISH" "channel:a" "stop:7"]`},
		{"ZADD queue:a:scheduled 1700000000 7", `ZADD_SCHEDULED ["a" "1700000000" "7"]`},
		{"ZADD queue:a:scheduled 1.5 7", `command ["ZADD" "queue:a:scheduled" "1.5" "7"]`},
		{"LPUSH queue:a:high 7", `LPUSH_QUEUE ["a" "high" "7"]`},
		{"LPUSH queue:a:low:normal 7", `LPUSH_QUEUE ["a:low" "normal" "7"]`},
		{"LPUSH queue:a:urgent 7", `command ["LPUSH" "queue:a:urgent" "7"]`},
		{"LPUSH queue:a:scheduled 7", `command ["LPUSH" "queue:a:scheduled" "7"]`},
		{"LPUSH queue:a:high 7 8", `command ["LPUSH" "queue:a:high" "7" "8"]`},
		{"LPUSH lock:a:7 OK", `LPUSH_LOCK ["a" "7" "OK"]`},
		{"BRPOP lock:a:7 5", `BRPOP_LOCK ["a" "7" "5"]`},
		{"BRPOP lock:a:7 0.5", `command ["BRPOP" "lock:a:7" "0.5"]`},
		{"BRPOP queue:a:high queue:a:normal queue:a:low 1", `BRPOP_QUEUES ["a" "1"]`},
		{"BRPOP queue:a:high queue:b:normal queue:a:low 1", `command ["BRPOP" "queue:a:high" "queue:b:normal" "queue:a:low" "1"]`},
		{"BRPOP queue:a:normal queue:a:high queue:a:low 1", `command ["BRPOP" "queue:a:normal" "queue:a:high" "queue:a:low" "1"]`},
		{"HGETALL job:a:7", `HGETALL_JOB ["a" "7"]`},
		{"HGETALLL job:a:7", `command ["HGETALLL" "job:a:7"]`},
		{"script load return", `SCRIPT_LOAD ["return"]`},
		{"SCRIPT LOADED return", `command ["SCRIPT" "LOADED" "return"]`},
		{"SCRIPT FLUSH", `command ["SCRIPT" "FLUSH"]`},
		{"EVALSHA " + sha + " 1 queue:a:scheduled 5", `EVALSHA_SCHEDULED ["` + sha + `" "a" "5"]`},
		{"EVALSHA " + sha[1:] + " 1 queue:a:scheduled 5", `command ["EVALSHA" "` + sha[1:] + `" "1" "queue:a:scheduled" "5"]`},
		{"EVALSHA x" + sha[1:] + " 1 queue:a:scheduled 5", `command ["EVALSHA" "x` + sha[1:] + `" "1" "queue:a:scheduled" "5"]`},
		{"EVALSHA " + sha + " 2 queue:a:scheduled 5", `command ["EVALSHA" "` + sha + `" "2" "queue:a:scheduled" "5"]`},
		{"HGET job:a:7 input", `HGET_INPUT ["a" "7"]`},
		{"HGET job:a:7 status", `HGET_STATUS ["a" "7"]`},
		{"HGET job:a:7 output", `command ["HGET" "job:a:7" "output"]`},
		{"HMGET job:a:7 status output", `HMGET_JOB ["a" "7" "status" "output"]`},
		{"HMGET job:a:7", `command ["HMGET" "job:a:7"]`},
		{"EXPIRE job:a:7 90000", `EXPIRE_JOB ["a" "7" "90000"]`},
		{"EXPIRE job:a:7 -1", `command ["EXPIRE" "job:a:7" "-1"]`},
		{"EXPIRE lock:a:7 10", `EXPIRE_LOCK ["a" "7" "10"]`},
		{"DECR count:a", `DECR_COUNT ["a"]`},
		{"LRANGE queue:a:low 0 -1", `LRANGE_QUEUE ["a" "low" "0" "-1"]`},
		{"SET count:a -3", `SET_COUNT ["a" "-3"]`},
		{"SET count:a 3 EX", `command ["SET" "count:a" "3" "EX"]`},
		{"PING", `command ["PING"]`},
		{"AVERYLONGCOMMANDINDEEDTHATHASNOROW a", `command ["AVERYLONGCOMMANDINDEEDTHATHASNOROW" "a"]`},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		if got := read(t, s, codec.Peer, array(strings.Fields(tt.words)...)); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s\nis read as %q,\nwant       %q", tt.words, got, tt.want)
		}
	}
}

// TestReplyTypeDependsOnTheRequest tests that a reply gets the message type that belongs to its request and form, and
// that a second reply to the same request is rejected.
func TestReplyTypeDependsOnTheRequest(t *testing.T) {
	sha := strings.Repeat("0a", 20)
	tests := []struct {
		request *codec.Message
		raw     string
		want    string
	}{
		{message("INCR_UID", "a"), ":7\r\n", `ID ["7"]`},
		{message("INCR_UID", "a"), ":-7\r\n", `integer ["-7"]`},
		{message("INCR_UID", "a"), "-ERR no\r\n", `error ["ERR" "no"]`},
		{message("INCR_UID", "a"), "$1\r\n7\r\n", `bulk ["7"]`},
		{message("INCR_COUNT", "a"), ":7\r\n", `integer ["7"]`},
		{message("command", "INCR", "uid:a"), ":7\r\n", `ID ["7"]`},
		{message("inline", "INCR uid:a"), ":7\r\n", `integer ["7"]`},
		{message("SCRIPT_LOAD", "x"), "$40\r\n" + sha + "\r\n", fmt.Sprintf("SHA1 [%q]", sha)},
		{message("SCRIPT_LOAD", "x"), "$2\r\n0a\r\n", `bulk ["0a"]`},
		{message("BRPOP_QUEUES", "a", "1"), array("queue:a:low", "7"), `POPPED ["a" "low" "7"]`},
		{message("BRPOP_QUEUES", "a", "1"), array("queue:a:scheduled", "7"), `list ["queue:a:scheduled" "7"]`},
		{message("BRPOP_QUEUES", "a", "1"), "*-1\r\n", `nil-array []`},
		{message("BRPOP_LOCK", "a", "7", "1"), array("lock:a:7", "OK"), `UNLOCKED ["a" "7" "OK"]`},
		{message("BRPOP_LOCK", "a", "7", "1"), array("queue:a:low", "7"), `list ["queue:a:low" "7"]`},
		{message("EVALSHA_SCHEDULED", sha, "a", "5"), array("queue:a:scheduled", "7"), `DUE ["a" "7"]`},
		{message("EVALSHA_SCHEDULED", sha, "a", "5"), "$-1\r\n", `nil []`},
		{message("EVALSHA_SCHEDULED", sha, "a", "5"), "-NOSCRIPT No matching script.\r\n", `error ["NOSCRIPT" "No matching script."]`},
		{message("HGETALL_JOB", "a", "7"), array("status", "idle", "input", ""), `JOB ["status" "idle" "input" ""]`},
		{message("HGETALL_JOB", "a", "7"), "*0\r\n", `JOB []`},
		{message("HGETALL_JOB", "a", "7"), array("status"), `list ["status"]`},
		{message("HGETALL_JOB", "a", "7"), "%1\r\n$6\r\nstatus\r\n$4\r\nidle\r\n", `map ["status" "idle"]`},
		{message("HMGET_JOB", "a", "7", "status", "output"), "*2\r\n$4\r\nidle\r\n$-1\r\n", `aggregate ["*2" "$4" "idle" "$-1"]`},
		{message("SUBSCRIBE_CHANNEL", "a"), "*3\r\n$9\r\nsubscribe\r\n$9\r\nchannel:a\r\n:1\r\n", `SUBSCRIBED ["a" "1"]`},
		{message("SUBSCRIBE_CHANNEL", "a"), "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", `subscribed ["a" "1"]`},
		{message("UNSUBSCRIBE_CHANNEL", "a"), "*3\r\n$11\r\nunsubscribe\r\n$9\r\nchannel:a\r\n:0\r\n", `UNSUBSCRIBED ["a" "0"]`},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		if _, err := s.Append(nil, codec.Peer, tt.request); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, codec.Server, tt.raw+"+more\r\n"); len(got) != 2 || got[0] != tt.want || got[1] != string(resp.RuleReplyAsked) {
			t.Errorf("%s: %q read as %q, want %q", tt.request.Type.Name, tt.raw, got, tt.want)
		}
	}
}

// TestEventsNeedNoRequest tests that messages of a subscribed channel are decoded as events although no request waits
// for a reply, and that they do not count as replies.
func TestEventsNeedNoRequest(t *testing.T) {
	s := Protocol.NewSession(codec.Options{})
	read(t, s, codec.Peer, array("SUBSCRIBE", "channel:a", "channel:b"))
	got := read(t, s, codec.Server, "*3\r\n$9\r\nsubscribe\r\n$9\r\nchannel:a\r\n:1\r\n"+
		array("message", "channel:a", "create:7")+
		"*3\r\n$9\r\nsubscribe\r\n$9\r\nchannel:b\r\n:2\r\n"+
		array("message", "channel:a:b", "a:b:7")+array("message", "channel:a", "create")+array("message", "news", "x")+"+x\r\n")
	want := []string{`SUBSCRIBED ["a" "1"]`, `EVENT ["a" "create" "7"]`, `SUBSCRIBED ["b" "2"]`, `EVENT ["a:b" "a:b" "7"]`,
		`message ["channel:a" "create"]`, `message ["news" "x"]`, string(resp.RuleReplyAsked)}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestRepliesToMessagesSentWithWaivedRules tests that replies are still assigned to their requests if the requests
// violated rules that were waived when they were sent.
func TestRepliesToMessagesSentWithWaivedRules(t *testing.T) {
	s := Protocol.NewSession(codec.Options{WaiveAll: true})
	if _, err := s.Append(nil, codec.Peer, message("SUBSCRIBE_CHANNEL", "a", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(nil, codec.Peer, message("BRPOP_QUEUES", "a", "0.5")); err != nil {
		t.Fatal(err)
	}
	confirm := func(channel string, n int) string {
		return fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, n)
	}
	got := read(t, s, codec.Server, confirm("channel:a", 1)+confirm("b", 2)+array("queue:a:low", "7"))
	if want := []string{`SUBSCRIBED ["a" "1"]`, `subscribed ["b" "2"]`, `POPPED ["a" "low" "7"]`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLongArrays checks that the fields of a long array are those of a short one, also of a form with more fields than
// words.
func TestLongArrays(t *testing.T) {
	for _, tt := range []struct {
		from codec.Side
		name string
		args []string
	}{{codec.Peer, "HMGET_JOB", []string{"f", "1"}}, {codec.Server, "list", nil}, {codec.Peer, "command", []string{"LPUSH"}}} {
		for range 40_000 {
			tt.args = append(tt.args, strconv.Itoa(len(tt.args)))
		}
		s := Protocol.NewSession(codec.Options{Waive: Protocol.Unpaired})
		raw, err := s.Append(nil, tt.from, message(tt.name, tt.args...))
		if err != nil {
			t.Fatal(err)
		}
		var f codec.Frame
		var m codec.Message
		n, err := s.Decode(tt.from, raw, &f)
		if f.Message(&m); err != nil || n != len(raw) || f.Type.Name != tt.name || len(m.Args) != len(tt.args) {
			t.Fatalf("%s: %d bytes of %d, %d arguments, %v", f.Type.Name, n, len(raw), len(m.Args), err)
		}
		next := 0
		for i, span := range f.Spans {
			if span.Off < next || span.End < span.Off || span.Next < span.End {
				t.Fatalf("%s: span %d is %+v, the one before ends at byte %d", tt.name, i, span, next)
			}
			next = span.Next
		}
		for i, arg := range m.Args {
			if string(arg) != tt.args[i] {
				t.Fatalf("%s: argument %d is %q", tt.name, i, arg)
			}
		}
	}
}

// TestCommandsAreWrittenInCapitals tests that commands of GearMonkey are encoded in upper case, whatever the case in
// which they were received, and that other commands do not change.
func TestCommandsAreWrittenInCapitals(t *testing.T) {
	s := Protocol.NewSession(codec.Options{})
	for _, tt := range []struct{ in, out string }{
		{array("hmSet", "job:a:7", "status", "busy"), array("HMSET", "job:a:7", "status", "busy")},
		{array("script", "load", "x"), array("SCRIPT", "LOAD", "x")},
		{array("ping"), array("ping")},
	} {
		var f codec.Frame
		if _, err := s.Decode(codec.Peer, []byte(tt.in), &f); err != nil {
			t.Fatal(err)
		}
		var m codec.Message
		f.Message(&m)
		if out, err := s.Append(nil, codec.Peer, &m); err != nil || string(out) != tt.out {
			t.Errorf("%q is written again as %q, %v; want %q", tt.in, out, err, tt.out)
		}
	}
}

// TestAppendRejectsIllegalMessages checks the rule that each message breaks, that Append then leaves the bytes before it
// unchanged, and the bytes that it writes with all rules waived.
func TestAppendRejectsIllegalMessages(t *testing.T) {
	tests := []struct {
		request *codec.Message // sent before, or nil
		from    codec.Side
		m       *codec.Message
		rule    codec.RuleID
		raw     string // with all rules waived
	}{
		{nil, codec.Peer, message("GET_COUNT"), resp.RuleForm, array("GET")},
		{nil, codec.Peer, message("GET_COUNT", "a", "b"), resp.RuleForm, array("GET", "count:a", "b")},
		{nil, codec.Peer, message("HMSET_BUSY", "a"), resp.RuleForm, array("HMSET", "a")},
		{nil, codec.Peer, message("HMSET_BUSY", "a", "x"), RuleID, array("HMSET", "job:a:x", "status", "busy")},
		{nil, codec.Peer, message("HMSET_IDLE", "a", "", "x"), RuleID, array("HMSET", "job:a:", "status", "idle", "input", "x")},
		{nil, codec.Peer, message("LPUSH_QUEUE", "a", "urgent", "7"), RulePriority, array("LPUSH", "queue:a:urgent", "7")},
		{nil, codec.Peer, message("HMSET_DONE", "a", "7", "busy", "x"), RuleStatus, array("HMSET", "job:a:7", "status", "busy", "output", "x")},
		{nil, codec.Peer, message("BRPOP_LOCK", "a", "7", "0.5"), RuleTimeout, array("BRPOP", "lock:a:7", "0.5")},
		{nil, codec.Peer, message("BRPOP_QUEUES", "a", "-1"), RuleTimeout, array("BRPOP", "queue:a:high", "queue:a:normal", "queue:a:low", "-1")},
		{nil, codec.Peer, message("ZADD_SCHEDULED", "a", "soon", "7"), RuleTimestamp, array("ZADD", "queue:a:scheduled", "soon", "7")},
		{nil, codec.Peer, message("EVALSHA_SCHEDULED", "abc", "a", "5"), RuleSHA1, array("EVALSHA", "abc", "1", "queue:a:scheduled", "5")},
		{nil, codec.Peer, message("EXPIRE_JOB", "a", "7", "-1"), RuleSeconds, array("EXPIRE", "job:a:7", "-1")},
		{nil, codec.Peer, message("SET_COUNT", "a", "many"), RuleCount, array("SET", "count:a", "many")},
		{nil, codec.Peer, message("LRANGE_QUEUE", "a", "low", "0", "end"), RuleRange, array("LRANGE", "queue:a:low", "0", "end")},
		{nil, codec.Peer, message("ZRANGE_SCHEDULED", "a", "-0", "1"), RuleRange, array("ZRANGE", "queue:a:scheduled", "-0", "1")},
		{message("INCR_UID", "a"), codec.Server, message("ID", "07"), RuleID, ":07\r\n"},
		{message("INCR_UID", "a"), codec.Server, message("ID", "9223372036854775808"), RuleID, ":9223372036854775808\r\n"},
		{nil, codec.Server, message("push", ">1", "$3", "a", ""), resp.RuleForm, ">1\r\n$3\r\na\r\n\r\n"},
		{nil, codec.Peer, message("HMGET_JOB", "a", "7"), resp.RuleForm, array("HMGET", "job:a:7")},
		{nil, codec.Peer, message("POPPED", "a", "low", "7"), resp.RuleDirection, array("queue:a:low", "7")},
		{message("BRPOP_QUEUES", "a", "1"), codec.Server, message("DUE", "a", "7"), resp.RuleReplyAsked, array("queue:a:scheduled", "7")},
		{message("BRPOP_QUEUES", "a", "1"), codec.Server, message("EVENT", "a", "create", "7"), resp.RuleReplyAsked, array("message", "channel:a", "create:7")},
		{message("HGETALL_JOB", "a", "7"), codec.Server, message("JOB", "status"), resp.RuleForm, array("status")},
		{message("SUBSCRIBE_CHANNEL", "a"), codec.Server, message("EVENT", "a", "", "7"), RuleEvent, array("message", "channel:a", ":7")},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		if tt.request != nil {
			if _, err := s.Append(nil, codec.Peer, tt.request); err != nil {
				t.Fatal(err)
			}
		}
		out, err := s.Append([]byte("kept"), tt.from, tt.m)
		var e *codec.Error
		if !errors.As(err, &e) || e.Rule != tt.rule || string(out) != "kept" {
			t.Errorf("%s %q: %q, %v; want %s", tt.m.Type.Name, tt.m.Args, out, err, tt.rule)
		}
		if out, err = Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, tt.from, tt.m); err != nil || string(out) != tt.raw {
			t.Errorf("%s %q with all rules waived: %q, %v; want %q", tt.m.Type.Name, tt.m.Args, out, err, tt.raw)
		}
	}
}

// TestHashOfScript tests that the hash that the specification prints belongs to the script as it was hashed, and that
// the hash of the script that jobwire loads has not changed.
func TestHashOfScript(t *testing.T) {
	for script, want := range map[string]string{hashedScript: printedSHA1, Script: "14eede1cd25f7ebc1c5c3dc8db79813a62abacba"} {
		if got := fmt.Sprintf("%x", sha1.Sum([]byte(script))); got != want {
			t.Errorf("%s: the hash is %s, want %s", script, got, want)
		}
	}
}

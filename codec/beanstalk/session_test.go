package beanstalk

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/internal/codectest"
)

var typeTests = codectest.TypeTests{Protocol: Protocol, Samples: map[string][]string{"OK": {"{\"a\": '\"b\"'}\n"}}}

func message(name string, args ...string) *codec.Message {
	return codectest.Message(Protocol, name, args...)
}

// TestDeclarationsAreConsistent tests that the declaration of the protocol has no contradictions, such as a message
// type that refers to a missing rule.
func TestDeclarationsAreConsistent(t *testing.T) {
	if err := Protocol.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestRulesAreConsistent tests that each rule of Beanstalk has an ID with the prefix "beanstalk." and a text that ends
// with a period.
func TestRulesAreConsistent(t *testing.T) {
	for _, r := range codec.ParseRules(rules) {
		if !strings.HasPrefix(string(r.ID), "beanstalk.") || !strings.HasSuffix(r.Text, ".") {
			t.Errorf("%+v", r)
		}
	}
}

// TestEveryTypeRoundTrips tests that a message of each type is the same after it has been encoded and decoded.
func TestEveryTypeRoundTrips(t *testing.T) { typeTests.RoundTrips(t) }

// TestEveryPrefixIsIncomplete tests that the decoder asks for more bytes, and not for more than the message has, while
// a message of any type is incomplete.
func TestEveryPrefixIsIncomplete(t *testing.T) { typeTests.Prefixes(t) }

func repeat(s string, n int) string { return strings.Repeat(s, n) }

var rejects = []struct {
	name   string
	from   codec.Side
	asked  string // a request that is sent before
	raw    string
	rule   codec.RuleID
	offset int
	field  string
	more   int // bytes of the message that have not arrived
}{
	{"LF alone", codec.Peer, "", "use a\nuse b\r\n", RuleLineCRLF, 5, "Command", 0},
	{"CR alone", codec.Peer, "", "use a\ruse b\r\n", RuleLineCRLF, 5, "Command", 0},
	{"two CRs", codec.Peer, "", "reserve\r\r\n", RuleLineCRLF, 7, "Command", 0},
	{"LF in a reply", codec.Server, "reserve\r\n", "TIMED_OUT\nx\r\n", RuleLineCRLF, 9, "Reply", 0},
	{"a line of 225 bytes", codec.Peer, "", repeat("x", 223) + "\r\n", RuleLineLength, 224, "Command", 0},
	{"a reply of 225 bytes", codec.Server, "use a\r\n", "USING " + repeat("x", 217) + "\r\n", RuleLineLength, 224, "Reply", 0},
	{"unknown", codec.Peer, "", "bogus 1\r\n", RuleCommandKnown, 0, "Command", 0},
	{"empty line", codec.Peer, "", "\r\n", RuleCommandKnown, 0, "Command", 0},
	{"capitals", codec.Peer, "", "STATS\r\n", RuleCommandKnown, 0, "Command", 0},
	{"a reply as a command", codec.Peer, "", "DELETED\r\n", RuleCommandKnown, 0, "Command", 0},
	{"the beginning of a command", codec.Peer, "", "peek-\r\n", RuleCommandKnown, 0, "Command", 0},
	{"space before", codec.Peer, "", " reserve\r\n", RuleCommandKnown, 0, "Command", 0},
	{"put alone", codec.Peer, "", "put\r\n", RuleCommandArgs, 3, "Priority", 0},
	{"put without a size", codec.Peer, "", "put 1 2 3\r\n", RuleCommandArgs, 9, "Bytes", 0},
	{"delete without an ID", codec.Peer, "", "delete\r\n", RuleCommandArgs, 6, "Job ID", 0},
	{"delete of two", codec.Peer, "", "delete 1 2\r\n", RuleCommandArgs, 9, "Job ID", 0},
	{"reserve of something", codec.Peer, "", "reserve 1\r\n", RuleCommandArgs, 8, "Command", 0},
	{"space after", codec.Peer, "", "reserve \r\n", RuleCommandSpacing, 7, "Command", 0},
	{"space after an argument", codec.Peer, "", "delete 1 \r\n", RuleCommandSpacing, 8, "Job ID", 0},
	{"two spaces", codec.Peer, "", "release 1  2 3\r\n", RuleCommandSpacing, 10, "Priority", 0},
	{"ID in words", codec.Peer, "", "delete one\r\n", RuleDecimal, 7, "Job ID", 0},
	{"ID negative", codec.Peer, "", "peek -1\r\n", RuleDecimal, 5, "Job ID", 0},
	{"ID beyond 64 bits", codec.Peer, "", "touch 18446744073709551616\r\n", RuleDecimal, 6 + 19, "Job ID", 0},
	{"priority 2^32", codec.Peer, "", "bury 1 4294967296\r\n", RulePriority, 7, "Priority", 0},
	{"delay with a unit", codec.Peer, "", "pause-tube t 5s\r\n", RuleSeconds, 14, "Delay", 0},
	{"timeout with a plus", codec.Peer, "", "reserve-with-timeout +1\r\n", RuleTimeout, 21, "Timeout", 0},
	{"timeout of a sign", codec.Peer, "", "reserve-with-timeout -\r\n", RuleTimeout, 22, "Timeout", 0},
	{"name with a comma", codec.Peer, "", "use a,b\r\n", RuleNameChars, 5, "Tube", 0},
	{"name with a hyphen first", codec.Peer, "", "watch -a\r\n", RuleNameChars, 6, "Tube", 0},
	{"name with a NUL", codec.Peer, "", "ignore a\x00\r\n", RuleNameChars, 8, "Tube", 0},
	{"name of nothing", codec.Peer, "", "use \r\n", RuleNameEmpty, 4, "Tube", 0},
	{"name of 201 bytes", codec.Peer, "", "use " + repeat("a", 201) + "\r\n", RuleNameLength, 204, "Tube", 0},

	{"put, priority in words", codec.Peer, "", "put x 0 60 6\r\nquit\r\n\r\n", RulePriority, 4, "Priority", 0},
	{"put, priority in words, body to come", codec.Peer, "", "put x 0 60 5\r\n", RulePriority, 4, "Priority", 7},
	{"put, delay of 2^32", codec.Peer, "", "put 1 4294967296 60 5\r\n", RuleSeconds, 6, "Delay", 7},
	{"put with five numbers", codec.Peer, "", "put 1 0 60 5 6\r\n", RuleCommandArgs, 13, "Bytes", 8},
	{"put of words", codec.Peer, "", "put 1 0 60 x\r\n", RuleBytes, 11, "Bytes", 0},
	{"put of 2^32", codec.Peer, "", "put 1 0 60 4294967296\r\n", RuleBytes, 11, "Bytes", 0},
	{"put too long a line", codec.Peer, "", "put " + repeat("0", 220) + " 0 60 5\r\n", RuleLineLength, 224, "Command", 7},
	{"put with LF inside the line", codec.Peer, "", "put 1 0\n60 5\r\n", RuleLineCRLF, 7, "Command", 0},
	{"put too big", codec.Peer, "", "put 1 0 60 65536\r\n", RulePutSize, 11, "Bytes", 65538},
	{"put as big as can be", codec.Peer, "", "put 1 0 60 4294967295\r\n", RulePutSize, 11, "Bytes", min(4294967297, math.MaxInt-1<<16+2)},
	{"put, body longer", codec.Peer, "", "put 1 0 60 3\r\nhello\r\n", RulePutCRLF, 14 + 3, "Body", 0},
	{"put, body one byte longer", codec.Peer, "", "put 1 0 60 3\r\nhell\r\n", RulePutCRLF, 14 + 3, "Body", 0},
	{"put, body shorter", codec.Peer, "", "put 1 0 60 6\r\nhell\r\nuse a\r\n", RulePutCRLF, 14 + 6, "Body", 0},
	{"put, CR after the body", codec.Peer, "", "put 1 0 60 1\r\na\rb\r\n", RulePutCRLF, 14 + 2, "Body", 0},
	{"put, LF after the body", codec.Peer, "", "put 1 0 60 1\r\na\n\r\n", RulePutCRLF, 14 + 1, "Body", 0},

	{"reply to nothing", codec.Server, "", "DELETED\r\n", RuleReplyAsked, 0, "Reply", 0},
	{"reply to quit", codec.Server, "quit\r\n", "BAD_FORMAT\r\n", RuleReplyAsked, 0, "Reply", 0},
	{"job to nobody", codec.Server, "", "RESERVED 1 6\r\nquit\r\n\r\n", RuleReplyAsked, 0, "Reply", 0},
	{"wrong reply", codec.Server, "delete 1\r\n", "RELEASED\r\n", RuleReplyForm, 0, "Reply", 0},
	{"a job for delete", codec.Server, "delete 1\r\n", "FOUND 1 2\r\n", RuleReplyForm, 0, "Reply", 4},
	{"no words", codec.Server, "delete 1\r\n", "ok\r\n", RuleReplyForm, 0, "Reply", 0},
	{"DEADLINE_SOON for peek", codec.Server, "peek 1\r\n", "DEADLINE_SOON\r\n", RuleReplyForm, 0, "Reply", 0},
	{"BURIED without an ID for put", codec.Server, "put 1 0 60 0\r\n\r\n", "BURIED\r\n", RuleReplyForm, 6, "Job ID", 0},
	{"BURIED with an ID for bury", codec.Server, "bury 1 1\r\n", "BURIED 1\r\n", RuleReplyForm, 7, "Reply", 0},
	{"KICKED without a count", codec.Server, "kick 1\r\n", "KICKED\r\n", RuleReplyForm, 6, "Count", 0},
	{"space after a reply", codec.Server, "delete 1\r\n", "DELETED \r\n", RuleReplyForm, 7, "Reply", 0},
	{"WATCHING words", codec.Server, "watch a\r\n", "WATCHING two\r\n", RuleDecimal, 9, "Count", 0},
	{"FOUND without a size", codec.Server, "peek 1\r\n", "FOUND 1\r\n", RuleReplyForm, 7, "Bytes", 0},
	{"RESERVED, body longer", codec.Server, "reserve\r\n", "RESERVED 1 1\r\nab\r\n", RuleBodyCRLF, 15, "Body", 0},
	{"RESERVED, 64 MiB and a byte", codec.Server, "reserve\r\n", "RESERVED 1 67108865\r\n", RuleReplySize, 11, "Bytes", 67108867},
	{"OK, list for a dictionary", codec.Server, "stats\r\n", "OK 8\r\n---\n- a\n\r\n", RuleReplyYAML, 6, "YAML", 0},
	{"OK, dictionary for a list", codec.Server, "list-tubes\r\n", "OK 9\r\n---\na: b\n\r\n", RuleReplyYAML, 6, "YAML", 0},
	{"OK, nested", codec.Server, "stats\r\n", "OK 12\r\n---\na: [b]\n\n\r\n", RuleReplyYAML, 7 + 7, "YAML", 0},
	{"OK, no YAML", codec.Server, "stats\r\n", "OK 10\r\n---\na: \"b\n\r\n", RuleReplyYAML, 7 + 7, "YAML", 0},
	{"OK, nothing", codec.Server, "stats\r\n", "OK 0\r\n\r\n", RuleReplyYAML, 6, "YAML", 0},
}

// TestRejectsNameRuleOffsetAndField tests that the error about an illegal message names the violated rule, the offset
// and the field, whether the message arrives in one piece or byte by byte.
func TestRejectsNameRuleOffsetAndField(t *testing.T) {
	for _, tt := range rejects {
		t.Run(tt.name, func(t *testing.T) {
			open := func() codec.Session {
				s := Protocol.NewSession(codec.Options{})
				if tt.asked != "" {
					var f codec.Frame
					if _, err := s.Decode(codec.Peer, []byte(tt.asked), &f); err != nil {
						t.Fatal(err)
					}
				}
				return s
			}
			n := len(tt.raw) + tt.more
			codectest.Refused(t, open, tt.from, []byte(tt.raw), codec.Error{Rule: tt.rule, Offset: tt.offset, Field: tt.field}, n)
			if Protocol.Rule(tt.rule) == nil {
				t.Errorf("%s is not in rules.txt", tt.rule)
			}
		})
	}
}

// TestUnboundedLinesAndBodiesAreFatal tests that the decoder returns a fatal error if it finds no end of a line or body
// within the limit of bytes that it searches.
func TestUnboundedLinesAndBodiesAreFatal(t *testing.T) {
	open := func() codec.Session { return Protocol.NewSession(codec.Options{}) }
	want := codec.Error{Rule: RuleLineLength, Offset: maxScan - 1, Field: "Command", Fatal: true}
	codectest.Refused(t, open, codec.Peer, []byte(repeat("a\n", maxScan/2)+"\r\n"), want, 0)
	want = codec.Error{Rule: RulePutCRLF, Offset: 14, Field: "Body", Fatal: true}
	codectest.Refused(t, open, codec.Peer, []byte("put 1 0 60 0\r\n"+repeat("a", maxScan)+"\r\n"), want, 0)
}

// TestLongestLineIsAccepted tests that the default limit of a command line is exactly the length of the longest legal
// command.
func TestLongestLineIsAccepted(t *testing.T) {
	raw := "pause-tube " + repeat("t", maxName) + " 4294967295\r\n"
	if len(raw) != DefaultMaxLine {
		t.Fatalf("%d bytes", len(raw))
	}
	var f codec.Frame
	if n, err := Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(raw), &f); n != len(raw) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestWaivers tests that a message that violates one rule is rejected, and is decoded with its arguments if this rule
// is waived.
func TestWaivers(t *testing.T) {
	tests := []struct {
		waive codec.RuleID
		raw   string
		args  []string
	}{
		{RuleLineCRLF, "use a\n", []string{"a"}},
		{RuleLineLength, "delete " + repeat("0", 250) + "\r\n", []string{repeat("0", 250)}},
		{RuleCommandArgs, "put 1 2\r\n", []string{"1", "2"}},
		{RuleCommandSpacing, "release  1   2 3  \r\n", []string{"1", "2", "3"}},
		{RuleCommandSpacing, "stats  \r\n", nil},
		{RuleDecimal, "delete one\r\n", []string{"one"}},
		{RulePriority, "bury 1 4294967296\r\n", []string{"1", "4294967296"}},
		{RuleNameChars, "use -a,b\r\n", []string{"-a,b"}},
		{RuleNameLength, "use " + repeat("a", 210) + "\r\n", []string{repeat("a", 210)}},
		{RuleNameEmpty, "use \r\n", []string{""}},
		{RulePutSize, "put 1 0 60 65536\r\n" + repeat("a", 65536) + "\r\n", []string{"1", "0", "60", repeat("a", 65536)}},
		{RulePutCRLF, "put 1 0 60 1\r\nabc", []string{"1", "0", "60", "a"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %.30q", tt.waive, tt.raw), func(t *testing.T) {
			var f codec.Frame
			if _, err := Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(tt.raw), &f); err == nil {
				t.Fatal("accepted without the waiver")
			}
			s := Protocol.NewSession(codec.Options{Waive: []codec.RuleID{tt.waive}})
			n, err := s.Decode(codec.Peer, []byte(tt.raw), &f)
			if err != nil || n != len(tt.raw) {
				t.Fatalf("waived: %d, %v", n, err)
			}
			var m codec.Message
			f.Message(&m)
			if want := message("put", tt.args...).Args; !slices.EqualFunc(m.Args, want, bytes.Equal) {
				t.Errorf("arguments %q, want %q", m.Args, want)
			}
		})
	}
}

// read decodes all of b and returns the names of the messages; "..." represents an incomplete message.
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
			all = append(all, strings.TrimSpace(f.Type.Name+" "+string(bytes.Join(m.Args, []byte(" ")))))
		}
		b = b[min(n, len(b)):]
	}
	return all
}

// TestRepliesFollowTheirRequests tests that each reply is decoded as a reply to the oldest request without one, so that
// the same word, such as BURIED, gets the type that belongs to the request.
func TestRepliesFollowTheirRequests(t *testing.T) {
	s := Protocol.NewSession(codec.Options{})
	up := read(t, s, codec.Peer, "reserve\r\nput 1 0 60 8\r\nquit\r\n..\r\nlist-tubes\r\nnonsense\r\nkick 2\r\nkick-job 7\r\nbury 7 1\r\nstats\r\nquit\r\n")
	down := read(t, s, codec.Server, "RESERVED 1 9\r\nDELETED\r\n\r\nBURIED 2\r\nOK 14\r\n---\n- default\n\r\nUNKNOWN_COMMAND\r\nKICKED 2\r\nKICKED\r\nBURIED\r\nOK 9\r\n---\na: 1\n\r\nOK 0\r\n\r\n")
	if want := []string{"reserve", "put 1 0 60 quit\r\n..", "list-tubes", string(RuleCommandKnown), "kick 2", "kick-job 7", "bury 7 1", "stats", "quit"}; !slices.Equal(up, want) {
		t.Errorf("requests %q, want %q", up, want)
	}
	want := []string{"RESERVED 1 DELETED", "BURIED_JOB 2", "list-reply default", "UNKNOWN_COMMAND", "KICKED 2", "KICKED_JOB", "BURIED", "stats-reply a 1", string(RuleReplyAsked)}
	if !slices.Equal(down, want) {
		t.Errorf("replies %q, want %q", down, want)
	}
}

// TestExpectedReplies checks that the caller decides which replies a request of no known type permits, and that the
// names of types that share a word are not in messages.
func TestExpectedReplies(t *testing.T) {
	var f codec.Frame
	s := Protocol.NewSession(codec.Options{})
	ask := func(request string, expected ...string) {
		s.Decode(codec.Peer, []byte(request), &f)
		var types []*codec.Type
		for _, name := range expected {
			types = append(types, Protocol.TypeNamed(name))
		}
		s.(codec.Expecter).Expect(types...)
	}
	for _, tt := range []struct{ request, expected, reply, want, rule string }{
		{"stats-job\t1\r\n", "NOT_FOUND", "NOT_FOUND\r\n", "NOT_FOUND", ""},
		{" list-tubes\r\n", "stats-reply list-reply", "OK 8\r\n---\n- a\n\r\n", "list-reply", ""},
		{" list-tubes\r\n", "stats-reply list-reply", "UNKNOWN_COMMAND\r\n", "UNKNOWN_COMMAND", ""},
		{" list-tubes\r\n", "stats-reply list-reply", "USING a\r\n", "", string(RuleReplyForm)},
		{"kick-job 1\r\n", "USING", "USING a\r\n", "", string(RuleReplyForm)},
	} {
		ask(tt.request, strings.Fields(tt.expected)...)
		_, err := s.Decode(codec.Server, []byte(tt.reply), &f)
		var e *codec.Error
		switch errors.As(err, &e); {
		case tt.rule == "" && (err != nil || f.Type.Name != tt.want):
			t.Errorf("%q, %q: got %v, error %v", tt.request, tt.reply, f.Type, err)
		case tt.rule != "" && (e == nil || string(e.Rule) != tt.rule || strings.Contains(e.Detail, "_JOB")):
			t.Errorf("%q, %q: got error %v, want one about %s without names such as KICKED_JOB", tt.request, tt.reply, err, tt.rule)
		}
	}
}

// TestBodiesAreNotRunAsCommands tests that the body of a rejected put is discarded and not decoded as commands.
func TestBodiesAreNotRunAsCommands(t *testing.T) {
	tests := []struct {
		name, raw string
		want      []string
	}{
		{"too big", "put 1 0 60 65536\r\n" + repeat("quit\r\nuse a\r\nuse ", 4096)[:65536] + "\r\nuse b\r\n", []string{string(RulePutSize), "use b"}},
		{"priority in words", "put x 0 60 6\r\nquit\r\n\r\nuse b\r\n", []string{string(RulePriority), "use b"}},
		{"space after the size", "put 1 0 60 6 \r\nquit\r\n\r\nuse b\r\n", []string{string(RuleCommandSpacing), "use b"}},
		{"size missing", "put 1 0 60\r\nquit\r\nuse b\r\n", []string{string(RuleCommandArgs), "quit", "use b"}},
		{"body longer than its size", "put 1 0 60 3\r\nquit now\r\nuse b\r\n", []string{string(RulePutCRLF), "use b"}},
		{"line too long", "put " + repeat("0", 300) + " 0 60 4\r\nquit\r\nuse b\r\n", []string{string(RuleLineLength), "use b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(t, Protocol.NewSession(codec.Options{}), codec.Peer, tt.raw); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestFormsOfYAML tests that the statistics and lists that servers write in various forms of YAML are decoded to the
// same arguments, and that invalid YAML violates a rule.
func TestFormsOfYAML(t *testing.T) {
	tests := []struct{ request, body, want string }{
		{"stats", "---\npid: 42\nversion: \"1.12\"\nos: #1 SMP x\nhost: a b-c:d\nempty: \nneg: -1\n",
			`stats-reply pid 42 version 1.12 os #1 SMP x host a b-c:d empty  neg -1`},
		{"stats", "---\n", "stats-reply"},
		{"stats", "pid: 42\n", "stats-reply pid 42"},
		{"stats", "# numbers\n--- # of the server\n\n# more\n  pid: 42\n  # a comment\n  a: b\n...\n", "stats-reply pid 42 a b"},
		{"stats", "---\r\npid: 42\r\na: b\r\n", "stats-reply pid 42 a b"},
		{"stats", "%YAML 1.2\n---\npid: 42\n", "stats-reply pid 42"},
		{"stats", "%YAML 1.2\npid: 42\n", string(RuleReplyYAML)},
		{"stats", "---\npid: 42", "stats-reply pid 42"},
		{"stats", "---\npid:   42\n", "stats-reply pid 42"},
		{"stats", "---\n\"pid\": '42'   # of the server\n'a' : \"\\x62\\u00e9\\\"\" # c\n", "stats-reply pid 42 a b\u00e9\""},
		{"stats", "---\na: '\"b\"'\n", "OK ---\na: '\"b\"'"},
		{"stats", "---\na b: c\n\"d: e\": f\n", "stats-reply a b c d: e f"},
		{"stats", "--- {pid: 42, 'version': 1.0}", "stats-reply pid 42 version 1.0"},
		{"stats", "{}", "stats-reply"},
		{"stats", "{pid: 42, \"a\\x62\":\"c, d\",e, f: ,\n  'g' : 'it''s' , # end\n}\n", "stats-reply pid 42 ab c, d e  f  g it's"},
		{"stats", "{a b: c}", "stats-reply a b c"},
		{"stats", "---\na: 'it''s'\n", "stats-reply a it's"},
		{"stats-job 1", "---\na: b: c\n", string(RuleReplyYAML)},
		{"stats-tube t", "---\na: - b\n", string(RuleReplyYAML)},
		{"list-tubes", "---\n- default\n- a/b;c.$_()+-1\n- 12\n", "list-reply default a/b;c.$_()+-1 12"},
		{"list-tubes", "---\n- \"default\"\n-  'a'\n- \"\\x62\" # b\n", "list-reply default a b"},
		{"list-tubes-watched", "[a, b]", "list-reply a b"},
		{"list-tubes", "--- [\n \"a\", # the first\n 'b',\n c]\n", "list-reply a b c"},
		{"list-tubes", "[]", "list-reply"},
		{"list-tubes", "- a\n-   b\n", "list-reply a b"},
		{"list-tubes", "['a b']", "OK ['a b']"},
		{"list-tubes", "---\n- a\n---\n- b\n", string(RuleReplyYAML)},
		{"list-tubes", "---\n- - a\n", string(RuleReplyYAML)},
		{"list-tubes", "---\n- &x a\n- *x\n", string(RuleReplyYAML)},
		{"list-tubes", "\xff\xfe\x00", string(RuleReplyYAML)},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		read(t, s, codec.Peer, tt.request+"\r\n")
		got := read(t, s, codec.Server, fmt.Sprintf("OK %d\r\n%s\r\n", len(tt.body), tt.body))
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %q read as %q, want %q", tt.request, tt.body, got, tt.want)
		}
	}
}

// TestAppendQuotes checks that values that YAML would interpret differently are quoted, and that quoted
// values are sent unchanged.
func TestAppendQuotes(t *testing.T) {
	for value, want := range map[string]string{
		"a b": "a b", "b: c": `"b: c"`, "a #b": `"a #b"`, "#1 SMP": `"#1 SMP"`, "-": `"-"`, `it's "a"\`: `it's "a"\`, " a": `" a"`, "a\nb": `"a\x0ab"`,
		"[a]": `"[a]"`, "größe": "größe", "": "", `"1.12"`: `"1.12"`, "'x'": "'x'", `"`: `"\""`,
	} {
		s := newSession(codec.Options{})
		read(t, s, codec.Peer, "stats\r\n")
		out, err := s.Append(nil, codec.Server, message("stats-reply", "k", value))
		if body := "---\nk: " + want + "\n"; err != nil || string(out) != fmt.Sprintf("OK %d\r\n%s\r\n", len(body), body) {
			t.Errorf("%q: %q, %v; want %s", value, out, err, want)
			continue
		}
		read(t, s, codec.Peer, "stats\r\n")
		plain := strings.Trim(value, "'")
		if value == `"1.12"` {
			plain = "1.12"
		}
		if got := read(t, s, codec.Server, string(out)); len(got) != 1 || got[0] != strings.TrimRight("stats-reply k "+plain, " \n") && got[0] != "stats-reply k "+plain {
			t.Errorf("%q: read again as %q", value, got)
		}
	}
}

// TestAppendRejectsWhatDecodeRejects tests that a message that the decoder would reject is not encoded, unless all
// rules are waived, and that the buffer does not change.
func TestAppendRejectsWhatDecodeRejects(t *testing.T) {
	tests := []struct {
		asked string
		from  codec.Side
		m     *codec.Message
		rule  codec.RuleID
	}{
		{"", codec.Peer, message("DELETED"), RuleDirection},
		{"", codec.Server, message("reserve"), RuleDirection},
		{"", codec.Peer, message("put", "1", "0", "60"), RuleCommandArgs},
		{"", codec.Peer, message("put", "1", "0"), RuleCommandArgs},
		{"", codec.Peer, message("put", "1", "0", "60", "a", "b"), RuleCommandArgs},
		{"", codec.Peer, message("put", "1", "0", "60", repeat("a", 65536)), RulePutSize},
		{"", codec.Peer, message("put", "4294967296", "0", "60", ""), RulePriority},
		{"", codec.Peer, message("delete", "1\r\ndelete 2"), RuleCommandArgs},
		{"", codec.Peer, message("delete", "1", "2"), RuleCommandArgs},
		{"", codec.Peer, message("delete", repeat("0", 250)), RuleLineLength},
		{"", codec.Peer, message("use", "a b"), RuleCommandArgs},
		{"", codec.Peer, message("use", "-a"), RuleNameChars},
		{"", codec.Peer, message("use", ""), RuleNameEmpty},
		{"", codec.Peer, message("use", repeat("a", 201)), RuleNameLength},
		{"", codec.Server, message("DELETED"), RuleReplyAsked},
		{"delete 1", codec.Server, message("RELEASED"), RuleReplyAsked},
		{"stats", codec.Server, message("stats-reply", "a", "\xff"), RuleReplyYAML},
		{"stats", codec.Server, message("stats-reply", "a", "b", "a", "c"), RuleReplyYAML},
		{"stats", codec.Server, message("stats-reply", "a", "'\"b\"'"), RuleReplyYAML},
		{"stats", codec.Server, message("stats-reply", "", "c"), RuleReplyYAML},
		{"stats", codec.Server, message("stats-reply", "a"), RuleReplyForm},
		{"list-tubes", codec.Server, message("list-reply", "-"), RuleReplyYAML},
		{"stats", codec.Server, message("OK", "[a]"), RuleReplyYAML},
		{"stats", codec.Server, message("OK", "---\n'a': b\n"), RuleReplyYAML},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		if tt.asked != "" {
			read(t, s, codec.Peer, tt.asked+"\r\n")
		}
		out, err := s.Append([]byte("kept"), tt.from, tt.m)
		var e *codec.Error
		if !errors.As(err, &e) || e.Rule != tt.rule || string(out) != "kept" {
			t.Errorf("%s %.40q: %.40q, %v; want %s", tt.m.Type.Name, tt.m.Args, out, err, tt.rule)
		}
		if _, err := Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, tt.from, tt.m); err != nil {
			t.Errorf("%s %.40q with all rules waived: %v", tt.m.Type.Name, tt.m.Args, err)
		}
	}
}

// TestLimitsAreOptions tests that the options MaxData, MaxLine and MaxPending limit the size of a body, the length of a
// line and the number of requests without a reply.
func TestLimitsAreOptions(t *testing.T) {
	s := Protocol.NewSession(codec.Options{MaxData: 4, MaxLine: 20, MaxPending: 2})
	if got := read(t, s, codec.Peer, "put 1 0 60 4\r\nabcd\r\nput 1 0 60 5\r\n"); !slices.Equal(got, []string{"put 1 0 60 abcd", string(RulePutSize)}) {
		t.Error(got)
	}
	var f codec.Frame
	_, err := s.Decode(codec.Peer, []byte("stats\r\n"), &f)
	var e *codec.Error
	if !errors.As(err, &e) || e.Rule != RuleCommandPending || !e.Fatal {
		t.Errorf("third request: %v", err)
	}
	if got := read(t, s, codec.Server, "INSERTED 1\r\nJOB_TOO_BIG\r\n"); !slices.Equal(got, []string{"INSERTED 1", "JOB_TOO_BIG"}) {
		t.Error(got)
	}
	if got := read(t, s, codec.Peer, "use aaaaaaaaaaaaaaaa\r\n"); !slices.Equal(got, []string{string(RuleLineLength)}) {
		t.Error(got)
	}
}

// TestLargeBodyWithoutEnd tests that a server may refuse the size of a body that also lacks its CR LF, if the size is
// above the default limit.
func TestLargeBodyWithoutEnd(t *testing.T) {
	for size, unclear := range map[int]bool{DefaultMaxData: false, DefaultMaxData + 1: true} {
		raw := fmt.Appendf(nil, "put 0 0 60 %d\r\n%s\r\n", size, bytes.Repeat([]byte("b"), size+1))
		var f codec.Frame
		_, err := Protocol.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f)
		e, _ := err.(*codec.Error)
		if e == nil || f.Type == nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		r := reject(&f, &codec.Error{Rule: RulePutCRLF})
		if r.Unclear != unclear || r.Has(jobTooBig) != unclear || !r.Has(expectedCRLF) || (r.Resync == "") != unclear {
			t.Errorf("%d bytes: %+v", size, r)
		}
	}
}

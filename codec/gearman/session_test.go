package gearman

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/internal/codectest"
)

var typeTests = codectest.TypeTests{Protocol: Protocol}

func message(name string, args ...string) *codec.Message {
	return codectest.Message(Protocol, name, args...)
}

// TestDeclarationsAreConsistent tests that the declaration of the protocol has no contradictions, and that each packet
// type from 1 to 42 except the unused 5 is declared once.
func TestDeclarationsAreConsistent(t *testing.T) {
	if err := Protocol.Check(); err != nil {
		t.Fatal(err)
	}
	packets := map[uint32]int{}
	for _, msgType := range Protocol.Types {
		packets[msgType.Code]++
	}
	for code := uint32(1); code <= 42; code++ {
		if (packets[code] == 1) != (code != 5) {
			t.Errorf("packet type %d is declared %d times", code, packets[code])
		}
	}
}

// TestEveryTypeRoundTrips tests that a message of each type is the same after it has been encoded and decoded.
func TestEveryTypeRoundTrips(t *testing.T) { typeTests.RoundTrips(t) }

// TestEveryPrefixIsIncomplete tests that the decoder asks for more bytes, and not for more than the message has, while
// a message of any type is incomplete.
func TestEveryPrefixIsIncomplete(t *testing.T) { typeTests.Prefixes(t) }

// TestForward checks that Forward appends the same bytes as Append.
func TestForward(t *testing.T) {
	for _, m := range []*codec.Message{
		message("WORK_COMPLETE", "H:a:1", "a\x00b"), message("WORK_DATA", "H:a:1", ""), message("WORK_STATUS", "H:a:1", "1", "2"), message("WORK_FAIL", "H:a:1"),
		message("SUBMIT_JOB", "f", "", "x"), message("CAN_DO", "f"), message("status"),
	} {
		s := Protocol.NewSession(codec.Options{})
		raw, err := s.Append([]byte("before"), codec.Peer, m)
		if err != nil {
			t.Fatal(err)
		}
		var f codec.Frame
		if _, err := s.Decode(codec.Peer, raw[6:], &f); err != nil {
			t.Fatal(err)
		}
		got, ok := s.(codec.Forwarder).Forward([]byte("before"), codec.Server, &f)
		if ok != (m.Type.Res != 0 && m.Type.Code != 0) {
			t.Errorf("%s: passed on: %v", m.Type.Name, ok)
		}
		want := []byte("before")
		if ok {
			want, err = s.Append(want, codec.Server, m)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, expected %q (%v)", m.Type.Name, got, want, err)
		}
	}
}

// packet returns a packet with any header, for packets that the codec does not encode.
func packet(magic string, code, size uint32, data string) string {
	return magic + string([]byte{byte(code >> 24), byte(code >> 16), byte(code >> 8), byte(code),
		byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}) + data
}

func req(code uint32, data string) string { return packet("\x00REQ", code, uint32(len(data)), data) }
func res(code uint32, data string) string { return packet("\x00RES", code, uint32(len(data)), data) }

var rejects = []struct {
	name   string
	from   codec.Side
	asked  string // a text command that is sent before
	raw    string
	rule   codec.RuleID
	offset int
	field  string
	fatal  bool
}{
	{"magic", codec.Peer, "", "\x00ABC", RuleMagic, 1, "Magic", true},
	{"magic, late", codec.Peer, "", "\x00REX\x00\x00\x00\x01", RuleMagic, 3, "Magic", true},
	{"RES to the server", codec.Peer, "", res(16, "x"), RuleMagicDirection, 3, "Magic", false},
	{"REQ from the server", codec.Server, "", req(17, "x"), RuleMagicDirection, 3, "Magic", false},
	{"type 0", codec.Peer, "", req(0, ""), RuleTypeKnown, 4, "Packet type", false},
	{"type 5, unused", codec.Peer, "", req(5, ""), RuleTypeKnown, 4, "Packet type", false},
	{"type 43", codec.Peer, "", req(43, "xyz"), RuleTypeKnown, 4, "Packet type", false},
	{"type 2^32-1", codec.Peer, "", req(1<<32-1, ""), RuleTypeKnown, 4, "Packet type", false},
	{"NOOP to the server", codec.Peer, "", req(6, ""), RuleTypeDirection, 4, "Packet type", false},
	{"GRAB_JOB from the server", codec.Server, "", res(9, ""), RuleTypeDirection, 4, "Packet type", false},
	{"4 GiB", codec.Peer, "", packet("\x00REQ", 7, 1<<32-1, ""), RuleSizeCap, 8, "Packet length", true},
	{"one over the cap", codec.Peer, "", packet("\x00REQ", 7, codec.DefaultMaxData+1, ""), RuleSizeCap, 8, "Packet length", true},
	{"function not ended", codec.Peer, "", req(7, "reverse"), RuleArgsMissing, 19, "Unique ID", false},
	{"workload missing", codec.Peer, "", req(7, "reverse\x00u"), RuleArgsMissing, 21, "Workload", false},
	{"no data at all", codec.Peer, "", req(7, ""), RuleArgsMissing, 12, "Unique ID", false},
	{"GRAB_JOB with data", codec.Peer, "", req(9, "x"), RuleArgsExtra, 12, "GRAB_JOB", false},
	{"two functions in CAN_DO", codec.Peer, "", req(1, "a\x00b"), RuleArgsExtra, 14, "Function", false},
	{"NUL after the last argument", codec.Peer, "", req(15, "H:lap:1\x00"), RuleArgsTrailing, 19, "Job handle", false},
	{"handle of 64 bytes, not last", codec.Peer, "", req(13, strings.Repeat("h", 64)+"\x00x"), RuleHandleLength, 12 + 63, "Job handle", false},
	{"handle of 64 bytes, last", codec.Server, "", res(8, strings.Repeat("h", 64)), RuleHandleLength, 12 + 63, "Job handle", false},
	{"empty handle", codec.Server, "", res(8, ""), RuleHandleEmpty, 12, "Job handle", false},
	{"numerator in hex", codec.Peer, "", req(12, "H:lap:1\x001f\x00100"), RuleDecimal, 21, "Numerator", false},
	{"empty denominator", codec.Server, "", res(20, "H:lap:1\x001\x000\x001\x00"), RuleDecimal, 26, "Denominator", false},
	{"known is 2", codec.Server, "", res(20, "H:lap:1\x002\x000\x001\x001"), RuleBoolean, 20, "Known", false},
	{"minute 60", codec.Peer, "", req(35, "f\x00u\x0060\x001\x001\x001\x001\x00w"), RuleRange, 16, "Minute", false},
	{"day of month 0", codec.Peer, "", req(35, "f\x00u\x000\x001\x000\x001\x001\x00w"), RuleRange, 20, "Day of month", false},
	{"epoch beyond 64 bits", codec.Peer, "", req(36, "f\x00u\x0018446744073709551616\x00w"), RuleDecimal, 12 + 4 + 19, "Epoch time", false},
	{"unknown command", codec.Peer, "", "bogus\n", RuleAdminCommand, 0, "Command", false},
	{"empty line", codec.Peer, "", "\n", RuleAdminCommand, 0, "Command", false},
	{"command in capitals", codec.Peer, "", "STATUS\n", RuleAdminCommand, 0, "Command", false},
	{"argument to status", codec.Peer, "", "status now\n", RuleAdminArgs, 7, "Command", false},
	{"maxqueue of nothing", codec.Peer, "", "maxqueue\n", RuleAdminArgs, 8, "Function", false},
	{"maxqueue of four sizes", codec.Peer, "", "maxqueue f 1 2 3 4\n", RuleAdminArgs, 17, "Low size", false},
	{"maxqueue of words", codec.Peer, "", "maxqueue f many\n", RuleDecimal, 11, "Size", false},
	{"two spaces", codec.Peer, "", "cancel job  H:lap:1\n", RuleAdminSpacing, 11, "Job handle", false},
	{"space at the end", codec.Peer, "", "status \n", RuleAdminSpacing, 6, "Command", false},
	{"endless line", codec.Peer, "", strings.Repeat("a", codec.DefaultMaxLine), RuleAdminLine, codec.DefaultMaxLine - 1, "Command", true},
	{"text out of nowhere", codec.Server, "", "OK\n", RuleAdminAsked, 0, "Reply", false},
	{"OK to status", codec.Server, "status", "OK\n", RuleAdminReply, 0, "Reply", false},
	{"status without a count", codec.Server, "status", "f\t1\t2\t3\ng\t1\t2\n.\n", RuleAdminReply, 13, "Available workers", false},
	{"workers without a colon", codec.Server, "workers", "30 127.0.0.1 - : f\n31 127.0.0.1 -\n.\n", RuleAdminReply, 33, "Functions", false},
	{"list with mixed ends", codec.Server, "status", "f\t1\t2\t3\r\n.\n", RuleAdminReply, 7, "End of list", false},
}

// TestRejectsNameRuleOffsetAndField tests that the error about an illegal message names the violated rule, the offset
// and the field, whether the message arrives in one piece or byte by byte.
func TestRejectsNameRuleOffsetAndField(t *testing.T) {
	for _, tt := range rejects {
		t.Run(tt.name, func(t *testing.T) {
			start := func() codec.Session {
				s := Protocol.NewSession(codec.Options{})
				if tt.asked != "" {
					if _, err := s.Append(nil, codec.Peer, message(tt.asked)); err != nil {
						t.Fatal(err)
					}
				}
				return s
			}
			want := codec.Error{Rule: tt.rule, Offset: tt.offset, Field: tt.field, Fatal: tt.fatal}
			codectest.Refused(t, start, tt.from, []byte(tt.raw), want, len(tt.raw))
			if Protocol.Rule(tt.rule) == nil {
				t.Errorf("%s is not in rules.txt", tt.rule)
			}
		})
	}
}

// TestErrorLines tests that the text with which real servers refuse an administrative command is decoded as an error,
// and that an echo of the command, or a reply of another form, is not.
func TestErrorLines(t *testing.T) {
	tests := []struct{ command, reply, want string }{
		{"bogus", "ERR unknown_command Unknown+server+command", "ERR"},
		{"bogus", "ERROR Unknown command", "error-line"},
		{"bogus", "ERR: unknown command", "error-line"},
		{"bogus", "ERR", "error-line"},
		{"bogus", "Unknown command: bogus", "error-line"},
		{"status now", "usage: status", "error-line"},
		{"maxqueue f 1 2", "maxqueue takes a function and one or three sizes", "error-line"},
		{"show unique jobs", "ERROR Unknown command", "error-line"},
		{"bogus", "bogus", ""},
		{"bogus two ", "bogus two", ""},
		{"maxqueue f 1", "maxqueue f 1", ""},
		{"bogus", "OK", ""},
		{"bogus", "OK 1234", ""},
		{"bogus", "ok", ""},
		{"maxqueue f 1", "OK then", ""},
		{"bogus", "", ""},
		{"bogus", ".", ""},
		{"bogus", "1.1.20", ""},
		{"bogus", "f\t1\t2\t3", ""},
		{"bogus", "30 127.0.0.1 - : f", ""},
		{"status", "f\t1\t2", ""},
	}
	for _, tt := range tests {
		var f codec.Frame
		s := newSession(codec.Options{Waive: []codec.RuleID{RuleAdminSpacing}})
		s.Decode(codec.Peer, []byte(tt.command+"\n"), &f)
		_, err := s.Decode(codec.Server, []byte(tt.reply+"\n"), &f)
		got := ""
		if err == nil {
			got = f.Type.Name
		}
		if got != tt.want {
			t.Errorf("the reply %q to %q is read as %q, %v; want %q", tt.reply, tt.command, got, err, tt.want)
		}
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
		{RuleArgsTrailing, req(15, "H:lap:1\x00"), []string{"H:lap:1"}},
		{RuleArgsMissing, req(7, "reverse\x00u"), []string{"reverse", "u"}},
		{RuleArgsExtra, req(1, "a\x00b"), []string{"a\x00b"}},
		{RuleArgsExtra, req(9, "x"), nil},
		{RuleHandleEmpty, req(15, ""), []string{""}},
		{RuleHandleLength, req(15, strings.Repeat("h", 80)), []string{strings.Repeat("h", 80)}},
		{RuleDecimal, req(12, "h\x00\x00x"), []string{"h", "", "x"}},
		{RuleMagicDirection, res(15, "h"), []string{"h"}},
		{RuleTypeDirection, req(8, "h"), []string{"h"}},
		{RuleAdminSpacing, "maxqueue  f   1  \n", []string{"f", "1"}},
		{RuleAdminSpacing, "status  \r\n", nil},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %q", tt.waive, tt.raw), func(t *testing.T) {
			var f codec.Frame
			_, err := Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(tt.raw), &f)
			var e *codec.Error
			if !errors.As(err, &e) {
				t.Fatalf("strict: %v", err)
			}
			s := Protocol.NewSession(codec.Options{Waive: []codec.RuleID{tt.waive}})
			n, err := s.Decode(codec.Peer, []byte(tt.raw), &f)
			if err != nil || n != len(tt.raw) {
				t.Fatalf("waived: %d, %v", n, err)
			}
			var m codec.Message
			f.Message(&m)
			if want := message("NOOP", tt.args...).Args; !slices.EqualFunc(m.Args, want, bytes.Equal) {
				t.Errorf("arguments %q, want %q", m.Args, want)
			}
			if last := f.Spans[len(f.Spans)-1]; last.Next != n {
				t.Errorf("the spans end at %d of %d", last.Next, n)
			}
			if raw := req(9, ""); tt.waive == RuleArgsExtra { // the frame is used again
				if _, err := s.Decode(codec.Peer, []byte(raw), &f); err != nil || f.Spans[2].Next != len(raw) {
					t.Errorf("the next packet: spans %v, %v", f.Spans, err)
				}
			}
		})
	}
}

// TestTextAndPacketsShareAConnection tests that binary packets and administrative lines on one connection are
// distinguished, and that each reply is decoded for its request.
func TestTextAndPacketsShareAConnection(t *testing.T) {
	s := Protocol.NewSession(codec.Options{})
	up := []byte(req(16, "one") + "status\nversion\r\n" + req(9, "") + "nonsense\nmaxqueue f\n")
	down := []byte(res(17, "one") + "f\t1\t0\t2\n.\n" + res(10, "") + "OK 1.1.20\n" + "ERR UNKNOWN_COMMAND Unknown+server+command\r\n" + "OK\r\n")
	read := func(from codec.Side, b []byte) (names []string) {
		for len(b) > 0 {
			var f codec.Frame
			n, err := s.Decode(from, b, &f)
			var e *codec.Error
			switch {
			case errors.As(err, &e):
				names = append(names, string(e.Rule))
			case err != nil:
				t.Fatal(err)
			default:
				names = append(names, f.Type.Name)
			}
			b = b[n:]
		}
		return names
	}
	if got, want := read(codec.Peer, up), []string{"ECHO_REQ", "status", "version", "GRAB_JOB", string(RuleAdminCommand), "maxqueue"}; !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	if got, want := read(codec.Server, down), []string{"ECHO_RES", "status-reply", "NO_JOB", "version-reply", "ERR", "OK"}; !slices.Equal(got, want) {
		t.Errorf("replies %v, want %v", got, want)
	}
}

// TestPacketsDoNotAnswerText tests that a line that answers a command of unknown type is rejected even if a packet is
// expected, as a transcript may, and is not decoded as that packet.
func TestPacketsDoNotAnswerText(t *testing.T) {
	for _, name := range []string{"NOOP", "JOB_CREATED"} {
		var f codec.Frame
		s := Protocol.NewSession(codec.Options{})
		s.Decode(codec.Peer, []byte("no such command\n"), &f)
		s.(codec.Expecter).Expect(message(name).Type)
		var e *codec.Error
		if _, err := s.Decode(codec.Server, []byte("4711\n"), &f); !errors.As(err, &e) || e.Rule != RuleAdminReply {
			t.Errorf("%s expected, a line received: type %v, error %v", name, f.Type, err)
		}
	}
}

// TestRepliesOfRealServers tests that the replies of real servers to administrative commands, which differ in their
// form, are decoded to the type and arguments that they mean.
func TestRepliesOfRealServers(t *testing.T) {
	tests := []struct{ command, reply, want string }{
		{"version", "OK 1.1.20+ds\n", "version-reply [OK 1.1.20+ds]"},
		{"version", "v1.130.1\n", "version-reply [v1.130.1]"},
		{"workers", "20 127.0.0.1 - :\n19 127.0.0.1 my id : foo reverse\n.\n", "workers-reply [20 127.0.0.1 -  19 127.0.0.1 my id  foo reverse]"},
		{"workers", "20 ::1 - : \n.\n", "workers-reply [20 ::1 -  ]"},
		{"status", ".\n", "status-reply []"},
		{"prioritystatus", "rev2\t0\t1\t0\t0\n.\n", "prioritystatus-reply [rev2 0 1 0 0]"},
		{"prioritystatus", "ERR unknown_command \r\n", "ERR [unknown_command ]"},
		{"show-jobs", "H:vm:1\t0\t0\t1\n.\n", "show-jobs-reply [H:vm:1 0 0 1]"},
		{"show-unique-jobs", "u1\nu2\n.\n", "show-unique-jobs-reply [u1 u2]"},
		{"getpid", "OK 6947\n", "getpid-reply [6947]"},
		{"verbose", "OK ERROR\n", "verbose-reply [ERROR]"},
		{"shutdown", "OK\n", "OK []"},
		{"status", "ERR\tx\t1\t2\n", "short"},
		{"status", "ERR x\t1\t0\t2\n.\n", "status-reply [ERR x 1 0 2]"},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		if _, err := s.Append(nil, codec.Peer, message(tt.command)); err != nil {
			t.Fatal(err)
		}
		var f codec.Frame
		n, err := s.Decode(codec.Server, []byte(tt.reply), &f)
		got := "short"
		if err == nil {
			var m codec.Message
			f.Message(&m)
			got = fmt.Sprintf("%s %s", f.Type.Name, m.Args)
		}
		if got != tt.want {
			t.Errorf("%s: %q read as %s (%d, %v), want %s", tt.command, tt.reply, got, n, err, tt.want)
		}
	}
}

// TestAppendRejectsWhatDecodeRejects tests that a message that the decoder would reject is not encoded, unless all
// rules are waived, and that the buffer does not change.
func TestAppendRejectsWhatDecodeRejects(t *testing.T) {
	tests := []struct {
		from codec.Side
		m    *codec.Message
		rule codec.RuleID
	}{
		{codec.Peer, message("NOOP"), RuleTypeDirection},
		{codec.Server, message("GRAB_JOB"), RuleTypeDirection},
		{codec.Peer, message("SUBMIT_JOB", "reverse", ""), RuleArgsMissing},
		{codec.Peer, message("SUBMIT_JOB", "re\x00verse", "", ""), RuleArgsExtra},
		{codec.Peer, message("GRAB_JOB", "x"), RuleArgsExtra},
		{codec.Peer, message("CAN_DO", "a\x00b"), RuleArgsExtra},
		{codec.Server, message("JOB_CREATED", strings.Repeat("h", 64)), RuleHandleLength},
		{codec.Server, message("JOB_CREATED", ""), RuleHandleEmpty},
		{codec.Peer, message("WORK_STATUS", "h", "1", "half"), RuleDecimal},
		{codec.Peer, message("maxqueue", "a b"), RuleAdminArgs},
		{codec.Peer, message("maxqueue", "a\n"), RuleAdminArgs},
		{codec.Peer, message("maxqueue", "a\r"), RuleAdminArgs},
		{codec.Server, message("show-unique-jobs-reply", "."), RuleAdminReply},
		{codec.Server, message("show-unique-jobs-reply", "\x00REQ"), RuleAdminReply},
		{codec.Peer, message("maxqueue", strings.Repeat("a", codec.DefaultMaxLine-9)), RuleAdminLine},
		{codec.Server, message("OK"), RuleAdminAsked},
	}
	for _, tt := range tests {
		s := Protocol.NewSession(codec.Options{})
		if tt.m.Type.Stop != "" {
			s = typeTests.WithRequest(t, tt.m.Type, tt.from)
		}
		out, err := s.Append([]byte("kept"), tt.from, tt.m)
		var e *codec.Error
		if !errors.As(err, &e) || e.Rule != tt.rule || string(out) != "kept" {
			t.Errorf("%s %q: %q, %v; want %s", tt.m.Type.Name, tt.m.Args, out, err, tt.rule)
		}
		if e != nil && tt.rule != RuleAdminAsked {
			if _, err := Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, tt.from, tt.m); err != nil {
				t.Errorf("%s %q with all rules waived: %v", tt.m.Type.Name, tt.m.Args, err)
			}
		}
	}
}

// TestPendingCommandsAreLimited tests that one administrative command more than the option MaxPending allows without a
// reply is a fatal error.
func TestPendingCommandsAreLimited(t *testing.T) {
	s := Protocol.NewSession(codec.Options{MaxPending: 3})
	var f codec.Frame
	for range 3 {
		if _, err := s.Decode(codec.Peer, []byte("status\n"), &f); err != nil {
			t.Fatal(err)
		}
	}
	var e *codec.Error
	if _, err := s.Decode(codec.Peer, []byte("status\n"), &f); !errors.As(err, &e) || e.Rule != RuleAdminPending || !e.Fatal {
		t.Errorf("fourth command: %v", err)
	}
}

// TestHotPathAllocatesNothing tests that decoding and encoding each frequent message allocates no memory.
func TestHotPathAllocatesNothing(t *testing.T) {
	s := Protocol.NewSession(codec.Options{})
	var f codec.Frame
	buf := make([]byte, 0, 256)
	for _, bm := range benchMessages {
		m := message(bm.name, bm.args...)
		raw, err := s.Append(nil, bm.from, m)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			s.Decode(bm.from, raw, &f)
			s.Append(buf, bm.from, m)
		}); n != 0 {
			t.Errorf("%s: %v allocations for a Decode and an Append", bm.name, n)
		}
	}
}

// TestReplyLinesHaveTheLimitOfData checks that a line of a reply may be as long as other data, and not only as long as a
// line of a request: the line of a worker with many functions is long. The limit must not depend on the division into pieces.
func TestReplyLinesHaveTheLimitOfData(t *testing.T) {
	list := "1 ip - : " + strings.Repeat("f", codec.DefaultMaxLine) + "\n.\n"
	for _, tt := range []struct {
		max  int
		rule codec.RuleID
	}{{len(list), ""}, {len(list) - 1, RuleSizeCap}, {len(list) - 3, RuleAdminLine}} {
		s := newSession(codec.Options{MaxData: tt.max})
		var f codec.Frame
		if _, err := s.Decode(codec.Peer, []byte("workers\n"), &f); err != nil {
			t.Fatal(err)
		}
		_, err := s.Decode(codec.Server, []byte(list), &f)
		if e, _ := err.(*codec.Error); e == nil && tt.rule != "" || e != nil && e.Rule != tt.rule {
			t.Errorf("at most %d bytes: %v, want %q", tt.max, err, tt.rule)
		}
	}
}

// TestListsHaveALimit checks that a list has as many values as its spans may have memory for, also if it is incomplete,
// and that the memory is not kept for the next message.
func TestListsHaveALimit(t *testing.T) {
	for _, tt := range []struct{ command, row string }{{"status", "f\t0\t0\t0\n"}, {"show unique jobs", "u\n"}} {
		s, f := askedFor(t, tt.command), codec.Frame{}
		list := bytes.Repeat([]byte(tt.row), maxValues/(1+strings.Count(tt.row, "\t"))+1)
		_, err := s.Decode(codec.Server, list[len(tt.row):], &f)
		if err != codec.ErrShort {
			t.Errorf("%s, the most rows: %v", tt.command, err)
		}
		if n, err := s.Decode(codec.Server, append(list[len(tt.row):], ".\n"...), &f); err != nil || len(f.Spans) != maxValues+1 {
			t.Errorf("%s, the most rows: %d bytes, %d spans, %v", tt.command, n, len(f.Spans), err)
		}
		s = askedFor(t, tt.command)
		_, err = s.Decode(codec.Server, list, &f)
		if e, _ := err.(*codec.Error); e == nil || e.Rule != RuleSizeCap || e.Offset != len(list)-len(tt.row) || !e.Fatal {
			t.Errorf("%s, one row more: %v", tt.command, err)
		}
		if cap(f.Spans) > 64<<10 {
			t.Errorf("%s: the spans of a long list are kept: %d", tt.command, cap(f.Spans))
		}
	}
}

// statusList returns a reply to "status" of at least size bytes.
func statusList(size int) []byte {
	var b []byte
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, "function-%d\t%d\t1\t2\n", i, i)
	}
	return append(b, ".\n"...)
}

// inPieces decodes a reply of the server that arrives in pieces of the size of a TCP segment.
func inPieces(t testing.TB, s *session, b []byte, f *codec.Frame) {
	const segment = 1460
	for n := segment; n < len(b); n += segment {
		if need, err := s.Decode(codec.Server, b[:n], f); err != codec.ErrShort || need != n+1 {
			t.Fatalf("after %d bytes: %d, %v", n, need, err)
		}
	}
	if n, err := s.Decode(codec.Server, b, f); err != nil || n != len(b) {
		t.Fatalf("Decode = %d, %v; want %d", n, err, len(b))
	}
}

func askedFor(t testing.TB, command string) *session {
	s, f := newLines(codec.Options{}), codec.Frame{}
	if _, err := s.Decode(codec.Peer, []byte(command+"\n"), &f); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLongRepliesAreSearchedOnce tests that the bytes of a reply that arrives in pieces are searched for the end of a
// line at most three times each on average, if it has many lines, one long line, or one long line at the end of a list.
func TestLongRepliesAreSearchedOnce(t *testing.T) {
	for _, size := range []int{256 << 10, 4 << 20} {
		long := bytes.Repeat([]byte("f"), size)
		for _, tt := range []struct {
			command string
			raw     []byte
		}{
			{"status", statusList(size)},
			{"version", append(slices.Clone(long), '\n')},
			{"workers", append(append([]byte("7 127.0.0.1 - : "), long...), "\n.\n"...)},
			{"workers", append(append([]byte("7 127.0.0.1 - : a\n8 127.0.0.1 - : "), long...), "\n.\n"...)},
			{"show unique jobs", append(bytes.Repeat([]byte("a unique ID of some length\n"), size/27), ".\n"...)},
		} {
			s := askedFor(t, tt.command)
			var f codec.Frame
			s.reads = 0
			inPieces(t, s, tt.raw, &f)
			if most := 3 * len(tt.raw); s.reads > most {
				t.Errorf("%s: searched %d bytes for a reply of %d, want at most %d", tt.command, s.reads, len(tt.raw), most)
			}
			whole := askedFor(t, tt.command)
			var want codec.Frame
			if _, err := whole.Decode(codec.Server, tt.raw, &want); err != nil || f.Type != want.Type || !slices.Equal(f.Spans, want.Spans) || f.CRLF != want.CRLF {
				t.Errorf("%s: read in pieces, the reply is another one: %v", tt.command, err)
			}
		}
	}
}

// TestOtherBytesAfterAnIncompleteReply checks that decoding continues with other bytes after bytes of the
// connection were lost.
func TestOtherBytesAfterAnIncompleteReply(t *testing.T) {
	short, other := []byte("aaa\t1\t1\t1\nbbb\t2\t2"), []byte("ccc\t3\t3\t3\n.\nddd\t4\t4\t4\n.\n")
	s := askedFor(t, "status")
	var f codec.Frame
	if _, err := s.Decode(codec.Server, short, &f); err != codec.ErrShort {
		t.Fatal(err)
	}
	if n, err := s.Decode(codec.Server, other, &f); err != nil || string(other[:n]) != "ccc\t3\t3\t3\n.\n" {
		t.Errorf("other bytes: %q, %v", other[:n], err)
	}
	s = askedFor(t, "status")
	s.Decode(codec.Server, short, &f)
	if n, err := s.Decode(codec.Server, []byte(".\n"), &f); err != nil || n != 2 {
		t.Errorf("fewer bytes: %d, %v", n, err)
	}
}

func BenchmarkListInPieces(b *testing.B) {
	for _, size := range []int{1 << 20, 4 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			raw := statusList(size)
			b.SetBytes(int64(len(raw)))
			var f codec.Frame
			for b.Loop() {
				inPieces(b, askedFor(b, "status"), raw, &f)
			}
		})
	}
}

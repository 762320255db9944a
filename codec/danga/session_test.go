package danga

import (
	"bytes"
	"encoding/binary"
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

// packet returns a packet with any header, for packets that the codec does not encode.
func packet(magic string, code byte, data string) []byte {
	head := binary.BigEndian.AppendUint32(append([]byte(magic), code), uint32(len(data)))
	return append(head, data...)
}

// refusal checks that err is an error with the rule, and returns it.
func refusal(t *testing.T, what string, err error, rule codec.RuleID) *codec.Error {
	t.Helper()
	var e *codec.Error
	if !errors.As(err, &e) || e.Rule != rule {
		t.Fatalf("%s: %v, want %s", what, err, rule)
	}
	return e
}

// TestDeclarationsAreConsistent tests that the declaration of the protocol has the 14 message types of the draft, in
// the order of their numbers, and complete rules.
func TestDeclarationsAreConsistent(t *testing.T) {
	if err := Protocol.Check(); err != nil {
		t.Fatal(err)
	}
	if len(Protocol.Types) != 14 {
		t.Errorf("%d rows, the draft has 14 types", len(Protocol.Types))
	}
	for i, msgType := range Protocol.Types {
		if msgType.Code != uint32(i) {
			t.Errorf("%s stands at %d with number %d", msgType.Name, i, msgType.Code)
		}
	}
	for _, r := range Protocol.Rules {
		if !strings.HasPrefix(string(r.ID), "danga.") || r.Section == "" || r.Level == "" || r.Text == "" {
			t.Errorf("rule %+v is incomplete", r)
		}
	}
}

// TestEveryTypeRoundTrips tests that a message of each type is the same after it has been encoded and decoded.
func TestEveryTypeRoundTrips(t *testing.T) { typeTests.RoundTrips(t) }

// TestEveryPrefixIsIncomplete tests that the decoder asks for more bytes, and not for more than the message has, while
// a message of any type is incomplete.
func TestEveryPrefixIsIncomplete(t *testing.T) { typeTests.Prefixes(t) }

// TestFirstPacketFixesTheMagic tests that the first packet determines the magic of the connection: both sides must then
// use it, and a packet with another magic is a fatal error.
func TestFirstPacketFixesTheMagic(t *testing.T) {
	const magic = "\x00\xffA\x01"
	var f codec.Frame
	s := Protocol.NewSession(codec.Options{})
	if _, err := s.Decode(codec.Peer, packet(magic, 6, ""), &f); err != nil {
		t.Fatal(err)
	}
	if got := string(f.Value(0)); got != magic {
		t.Errorf("the magic is read as %q", got)
	}
	out, err := s.Append(nil, codec.Server, message("noop"))
	if want := packet(magic, 0, ""); err != nil || !bytes.Equal(out, want) {
		t.Errorf("the server writes %q, %v; want %q", out, err, want)
	}
	_, err = s.Decode(codec.Peer, packet(DefaultMagic, 6, ""), &f)
	if e := refusal(t, "another magic", err, RuleMagic); !e.Fatal {
		t.Error("a stream that is out of step is read on")
	}
	if n, err := s.Decode(codec.Peer, []byte(magic[:2]), &f); err != codec.ErrShort || n != 3 {
		t.Errorf("half of it: %d, %v; the next byte may be wrong already", n, err)
	}
	if _, err := s.Decode(codec.Server, packet(magic, 0, ""), &f); err != nil {
		t.Errorf("the same magic from the other side: %v", err)
	}
}

// TestRefusedPacketFixesTheMagic tests that a packet that is rejected for another reason also determines the magic of
// the connection.
func TestRefusedPacketFixesTheMagic(t *testing.T) {
	var f codec.Frame
	s := Protocol.NewSession(codec.Options{})
	n, err := s.Decode(codec.Peer, packet("abcd", 14, "x"), &f)
	refusal(t, "type 14", err, RuleTypeKnown)
	if n != 10 {
		t.Errorf("the refused packet has %d bytes, want 10", n)
	}
	_, err = s.Decode(codec.Peer, packet("abcD", 6, ""), &f)
	refusal(t, "another magic", err, RuleMagic)
}

// TestMagicIsNotFixedByHalfAPacket tests that an incomplete packet does not determine the magic of the connection.
func TestMagicIsNotFixedByHalfAPacket(t *testing.T) {
	var f codec.Frame
	s := Protocol.NewSession(codec.Options{})
	if _, err := s.Decode(codec.Peer, packet("abcd", 1, "resize")[:12], &f); err != codec.ErrShort {
		t.Fatal(err)
	}
	if out, err := s.Append(nil, codec.Server, message("noop")); err != nil || string(out[:4]) != DefaultMagic {
		t.Errorf("written: %q, %v", out, err)
	}
}

// TestSentPacketFixesTheMagic tests that a packet that this side sends determines the magic that the other side must
// use.
func TestSentPacketFixesTheMagic(t *testing.T) {
	var f codec.Frame
	s := Protocol.NewSession(codec.Options{})
	if _, err := s.Append(nil, codec.Peer, message("job_assign_req")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Decode(codec.Server, packet("abcd", 0, ""), &f)
	refusal(t, "a server with a magic of its own", err, RuleMagic)
}

// TestNumberOfNamesIsLimited tests that worker_connect with more names than the limit is neither decoded nor encoded.
func TestNumberOfNamesIsLimited(t *testing.T) {
	names := func(n int) string { return strings.TrimSuffix(strings.Repeat("n\x00", n), "\x00") }
	var f codec.Frame
	s := Protocol.NewSession(codec.Options{})
	if _, err := s.Decode(codec.Peer, packet(DefaultMagic, 1, names(maxNames)), &f); err != nil {
		t.Errorf("%d names: %v", maxNames, err)
	}
	raw := packet(DefaultMagic, 1, names(maxNames+1))
	want := codec.Error{Rule: RuleNamesCap, Offset: 9 + 2*maxNames - 1, Field: "Job name"}
	codectest.Refused(t, func() codec.Session { return Protocol.NewSession(codec.Options{}) }, codec.Peer, raw, want, len(raw))
	m := message("worker_connect", slices.Repeat([]string{"n"}, maxNames+1)...)
	_, err := s.Append(nil, codec.Peer, m)
	refusal(t, "writing one name too many", err, RuleNamesCap)
}

// TestWaivers tests that a packet that violates one rule is rejected, and is decoded with its arguments if this rule is
// waived.
func TestWaivers(t *testing.T) {
	tests := []struct {
		waive codec.RuleID
		code  byte
		data  string
		args  []string
	}{
		{RuleArgsTrailing, 1, "a\x00b\x00", []string{"a", "b"}},
		{RuleArgsTrailing, 9, "J:1:17\x00", []string{"J:1:17"}},
		{RuleNameEmpty, 1, "a\x00\x00b", []string{"a", "", "b"}},
		{RuleArgsExtra, 3, "zzz", nil},
		{RuleArgsExtra, 8, "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03more", []string{"\x00\x00\x00\x01", "\x00\x00\x00\x02", "\x00\x00\x00\x03"}},
		{RuleJobType, 4, "n\x00\x00\x00\x07", []string{"n", "", "\x00", "\x07", ""}},
		{RuleASCII, 9, "J\xff", []string{"J\xff"}},
		{RuleTextCap, 9, strings.Repeat("h", 5000), []string{strings.Repeat("h", 5000)}},
		{RuleHandleEmpty, 12, "", []string{""}},
		{RuleTypeDirection, 0, "", nil},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %d", tt.waive, tt.code), func(t *testing.T) {
			var f codec.Frame
			raw := packet(DefaultMagic, tt.code, tt.data)
			_, err := Protocol.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f)
			refusal(t, "strict", err, tt.waive)
			n, err := Protocol.NewSession(codec.Options{Waive: []codec.RuleID{tt.waive}}).Decode(codec.Peer, raw, &f)
			if err != nil || n != len(raw) {
				t.Fatalf("waived: %d, %v", n, err)
			}
			var m codec.Message
			f.Message(&m)
			if want := message("noop", tt.args...).Args; !slices.EqualFunc(m.Args, want, bytes.Equal) {
				t.Errorf("arguments %q, want %q", m.Args, want)
			}
			if last := f.Spans[len(f.Spans)-1]; last.Next != n {
				t.Errorf("the rows end at %d of %d", last.Next, n)
			}
		})
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
		{codec.Peer, message("noop"), RuleTypeDirection},
		{codec.Server, message("job_assign_req"), RuleTypeDirection},
		{codec.Peer, message("worker_connect", ""), RuleNameEmpty},
		{codec.Peer, message("worker_connect", "a", ""), RuleNameEmpty},
		{codec.Peer, message("worker_connect", "a\x00b"), RuleArgsExtra},
		{codec.Peer, message("job_create_req", "n", "", "\x00", "\x00"), RuleArgsMissing},
		{codec.Peer, message("job_create_req", "n", "", "\x00", "\x03", ""), RuleJobType},
		{codec.Peer, message("job_create_req", "n", "k\x00", "\x00", "\x00", ""), RuleArgsExtra},
		{codec.Peer, message("job_create_req", "n", "ключ", "\x00", "\x00", ""), RuleASCII},
		{codec.Peer, message("job_assign_req", "x"), RuleArgsExtra},
		{codec.Server, message("job_create_res", ""), RuleHandleEmpty},
		{codec.Server, message("job_create_res", strings.Repeat("h", maxText+1)), RuleTextCap},
		{codec.Peer, message("job_status_req", ""), RuleHandleEmpty},
	}
	for _, tt := range tests {
		what := fmt.Sprintf("%s %q", tt.m.Type.Name, tt.m.Args)
		out, err := Protocol.NewSession(codec.Options{}).Append([]byte("kept"), tt.from, tt.m)
		refusal(t, what, err, tt.rule)
		if string(out) != "kept" {
			t.Errorf("%s: the buffer became %q", what, out)
		}
		if _, err := Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, tt.from, tt.m); err != nil {
			t.Errorf("%s with all rules waived: %v", what, err)
		}
	}
	_, err := Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, message("job_status_announce", "\x00\x01", "\x00\x00\x00\x02", "\x00\x00\x00\x03"))
	refusal(t, "an integer of two bytes", err, RuleInteger)
	_, err = Protocol.NewSession(codec.Options{MaxData: 10}).Append(nil, codec.Server, message("job_assign_res", "resize", "4567"))
	refusal(t, "data over the cap", err, RuleSizeCap)
}

// TestHotPathAllocatesNothing tests that decoding and encoding a message in one session, as a server does, allocates no
// memory.
func TestHotPathAllocatesNothing(t *testing.T) {
	for _, bm := range benchMessages {
		s := Protocol.NewSession(codec.Options{})
		var f codec.Frame
		buf := make([]byte, 0, 256)
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

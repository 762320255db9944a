package resp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"jobwire/codec"
	"jobwire/codec/internal/codectest"
)

var typeTests = codectest.TypeTests{Protocol: Protocol, Samples: map[string][]string{
	"double":     {"-1.5e+30"},
	"big-number": {"-123456789012345678901234567890"},
	"aggregate":  {"*3", "$3", "a\r\n", "*-1", "~1", ":7"},
	"push":       {">2", "$10", "invalidate", "_"},
}}

func message(name string, args ...string) *codec.Message {
	return codectest.Message(Protocol, name, args...)
}

// TestDeclarationsAreConsistent tests that the declaration of the protocol has no contradictions, and that each rule
// has an ID with the prefix "resp." and a text that ends with a period.
func TestDeclarationsAreConsistent(t *testing.T) {
	if err := Protocol.Check(); err != nil {
		t.Fatal(err)
	}
	for _, r := range Protocol.Rules {
		if !strings.HasPrefix(string(r.ID), "resp.") || !strings.HasSuffix(r.Text, ".") {
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

const ping = "*1\r\n$4\r\nPING\r\n"

var rejects = []struct {
	name   string
	from   codec.Side
	raw    string // a reply is sent after a PING
	rule   codec.RuleID
	offset int
	field  string
	fatal  bool
}{
	{"count without a number", codec.Peer, "*\r\n", RuleCount, 1, "Count", true},
	{"count in words", codec.Peer, "*x\r\n", RuleCount, 1, "Count", true},
	{"count with a letter", codec.Peer, "*1a\r\n", RuleCount, 2, "Count", true},
	{"count with a plus", codec.Peer, "*+1\r\n$4\r\nPING\r\n", RuleCount, 1, "Count", true},
	{"count with a zero first", codec.Peer, "*01\r\n$4\r\nPING\r\n", RuleCount, 1, "Count", true},
	{"count of a sign", codec.Peer, "*-\r\n", RuleCount, 1, "Count", true},
	{"count of minus zero", codec.Peer, "*-0\r\n", RuleCount, 1, "Count", true},
	{"count of 2^31", codec.Peer, "*2147483648\r\n", RuleCount, 1, "Count", true},
	{"count beyond 64 bits", codec.Peer, "*" + repeat("9", 30) + "\r\n", RuleCount, 1, "Count", true},
	{"count with LF alone", codec.Peer, "*1\n$4\r\nPING\r\n", RuleCount, 2, "Count", true},
	{"count with CR alone", codec.Peer, "*1\r$4\r\nPING\r\n", RuleLineEnd, 2, "Count", true},
	{"more elements than fit", codec.Peer, "*2147483647\r\n", RuleCap, 1, "Count", true},
	{"size without a number", codec.Peer, "*1\r\n$\r\n", RuleSize, 5, "Size", true},
	{"size negative", codec.Peer, "*1\r\n$-1\r\n", RuleSize, 5, "Size", true},
	{"size with a zero first", codec.Peer, "*1\r\n$04\r\nPING\r\n", RuleSize, 5, "Size", true},
	{"size over 512 MiB", codec.Peer, "*1\r\n$536870913\r\n", RuleSize, 5, "Size", true},
	{"size over the cap", codec.Peer, "*2\r\n$4\r\nECHO\r\n$67108861\r\n", RuleCap, 15, "Size", true},
	{"size with CR alone", codec.Peer, "*1\r\n$4\rPING\r\n", RuleLineEnd, 6, "Size", true},
	{"bulk too long", codec.Peer, "*1\r\n$4\r\nPINGS\r\n", RuleBulkEnd, 12, "Data", true},
	{"bulk with CR alone", codec.Peer, "*1\r\n$4\r\nPING\rX", RuleBulkEnd, 13, "Data", true},
	{"bulk with LF alone", codec.Peer, "*1\r\n$4\r\nPING\n", RuleBulkEnd, 12, "Data", true},
	{"an integer for a word", codec.Peer, "*2\r\n$4\r\nECHO\r\n:1\r\n", RuleWord, 14, "Type", true},
	{"bare words", codec.Peer, "*1\r\nPING\r\n", RuleWord, 4, "Type", true},
	{"array of nothing", codec.Peer, "*0\r\n", RuleEmpty, 1, "Count", false},
	{"array of less", codec.Peer, "*-7\r\n", RuleEmpty, 1, "Count", false},
	{"empty line", codec.Peer, "\r\n", RuleEmpty, 0, "Line", false},
	{"blank line", codec.Peer, " \t \n", RuleEmpty, 0, "Line", false},
	{"endless line", codec.Peer, repeat("a", DefaultMaxLine), RuleInlineLength, DefaultMaxLine - 1, "Line", true},
	{"single quote", codec.Peer, "PING 'a\r\n", RuleInlineWords, 5, "Line", true},
	{"double quote", codec.Peer, "PING \"a\\\"\n", RuleInlineWords, 5, "Line", true},
	{"after a quote", codec.Peer, "PING \"a\"b\n", RuleInlineWords, 8, "Line", true},
	{"NUL", codec.Peer, "PING a\x00b\n", RuleInlineWords, 6, "Line", true},

	{"no type", codec.Server, "PONG\r\n", RuleReplyKind, 0, "Type", true},
	{"push inside", codec.Server, "*1\r\n>1\r\n:1\r\n", RuleReplyKind, 4, "Type", true},
	{"streamed", codec.Server, "$?\r\n;4\r\nPONG\r\n;0\r\n", RuleSize, 1, "Size", true},
	{"simple with LF alone", codec.Server, "+PONG\n", RuleLineEnd, 5, "Value", true},
	{"simple with CR alone", codec.Server, "+PO\rNG\r\n", RuleLineEnd, 3, "Value", true},
	{"simple without end", codec.Server, "+" + repeat("a", DefaultMaxLine), RuleLineLength, DefaultMaxLine - 1, "Value", true},
	{"integer in words", codec.Server, ":one\r\n", RuleInteger, 1, "Integer", false},
	{"integer of nothing", codec.Server, ":\r\n", RuleInteger, 1, "Integer", false},
	{"integer with a plus", codec.Server, ":+1\r\n", RuleInteger, 1, "Integer", false},
	{"integer with a zero first", codec.Server, ":007\r\n", RuleInteger, 1, "Integer", false},
	{"integer of 2^63", codec.Server, ":9223372036854775808\r\n", RuleInteger, 1, "Integer", false},
	{"integer inside", codec.Server, "*3\r\n:1\r\n:x\r\n:y\r\n", RuleInteger, 9, "Integer", false},
	{"null with something", codec.Server, "_x\r\n", RuleNull, 1, "Null", false},
	{"boolean", codec.Server, "#true\r\n", RuleBoolean, 1, "Boolean", false},
	{"double in words", codec.Server, ",one\r\n", RuleDouble, 1, "Double", false},
	{"double twice", codec.Server, ",1.5.5\r\n", RuleDouble, 1, "Double", false},
	{"double in hex", codec.Server, ",0x1p4\r\n", RuleDouble, 2, "Double", false},
	{"big number with a fraction", codec.Server, "(1.5\r\n", RuleBigNumber, 2, "Big number", false},
	{"big number of a sign", codec.Server, "(-\r\n", RuleBigNumber, 1, "Big number", false},
	{"verbatim without format", codec.Server, "=4\r\nPONG\r\n", RuleVerbatim, 7, "Text", false},
	{"verbatim too short", codec.Server, "=2\r\nab\r\n", RuleVerbatim, 6, "Text", false},
	{"null map", codec.Server, "%-1\r\n", RuleCount, 1, "Count", true},
	{"null of -2", codec.Server, "$-2\r\n", RuleSize, 1, "Size", true},
	{"deep", codec.Server, repeat("*1\r\n", maxDepth+1) + ":1\r\n", RuleDepth, 4 * maxDepth, "Type", true},
	{"many attributes", codec.Server, repeat("|0\r\n", maxDepth+1) + ":1\r\n", RuleDepth, 4 * maxDepth, "Type", true},
	{"many attributes with values", codec.Server, repeat("|1\r\n+\r\n+\r\n", maxDepth+1), RuleDepth, 10 * maxDepth, "Type", true},
	{"many attributes inside", codec.Server, "*2\r\n:1\r\n" + repeat("|0\r\n", maxDepth+1), RuleDepth, 8 + 4*maxDepth, "Type", true},
}

// pingSession returns a session in which a PING waits for its reply.
func pingSession(t *testing.T, o codec.Options) codec.Session {
	t.Helper()
	s := Protocol.NewSession(o)
	var f codec.Frame
	if _, err := s.Decode(codec.Peer, []byte(ping), &f); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRejects tests that the error about an illegal message names the violated rule, the offset and the field, whether
// the message arrives in one piece or byte by byte.
func TestRejects(t *testing.T) {
	for _, tt := range rejects {
		t.Run(tt.name, func(t *testing.T) {
			want := codec.Error{Rule: tt.rule, Offset: tt.offset, Field: tt.field, Fatal: tt.fatal}
			codectest.Refused(t, func() codec.Session { return pingSession(t, codec.Options{}) }, tt.from, []byte(tt.raw), want, len(tt.raw))
			if Protocol.Rule(tt.rule) == nil {
				t.Errorf("%s is not in rules.txt", tt.rule)
			}
		})
	}
}

// TestErrorsAreReportedWithoutMoreBytes decodes illegal messages with as many bytes as Decode asks for, and checks that
// the last bytes are not needed to reject them.
func TestErrorsAreReportedWithoutMoreBytes(t *testing.T) {
	for _, tt := range rejects {
		s := pingSession(t, codec.Options{})
		var f codec.Frame
		for have := 1; ; {
			n, err := s.Decode(tt.from, []byte(tt.raw[:have]), &f)
			if err != codec.ErrShort {
				break
			}
			if n > len(tt.raw) {
				t.Errorf("%s: of %d bytes, which are all, %d are wanted", tt.name, have, n)
				break
			}
			have = n
		}
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
			if e.Fatal {
				return all
			}
		default:
			var m codec.Message
			f.Message(&m)
			words := []string{f.Type.Name}
			for _, a := range m.Args {
				words = append(words, string(a))
			}
			all = append(all, strings.Join(words, " "))
		}
		b = b[min(n, len(b)):]
	}
	return all
}

// TestReplies tests that each type of RESP value that a server sends, also a nested one, is decoded as the message type
// and arguments that it stands for.
func TestReplies(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"+OK\r\n", "simple OK"},
		{"+\r\n", "simple "},
		{"-ERR no such key\r\n", "error ERR no such key"},
		{"-ERR\r\n", "error ERR"},
		{"-ERR \r\n", "error ERR "},
		{"-\r\n", "error "},
		{":-9223372036854775808\r\n", "integer -9223372036854775808"},
		{":9223372036854775807\r\n", "integer 9223372036854775807"},
		{":0\r\n", "integer 0"},
		{"$0\r\n\r\n", "bulk "},
		{"$4\r\n\r\n\x00\xff\r\n", "bulk \r\n\x00\xff"},
		{"$-1\r\n", "nil"},
		{"*-1\r\n", "nil-array"},
		{"*0\r\n", "list"},
		{"*2\r\n$1\r\na\r\n$0\r\n\r\n", "list a "},
		{"*2\r\n$1\r\na\r\n$-1\r\n", "aggregate *2 $1 a $-1"},
		{"*2\r\n$3\r\nfoo\r\n:1\r\n", "aggregate *2 $3 foo :1"},
		{"*2\r\n*1\r\n+a\r\n*0\r\n", "aggregate *2 *1 +a *0"},
		{"*1\r\n*-1\r\n", "aggregate *1 *-1"},
		{"_\r\n", "null"},
		{",1.5\r\n", "double 1.5"}, {",-inf\r\n", "double -inf"}, {",nan\r\n", "double nan"}, {",1e+30\r\n", "double 1e+30"}, {",10\r\n", "double 10"},
		{"#t\r\n", "boolean t"}, {"#f\r\n", "boolean f"},
		{"(12345678901234567890123\r\n", "big-number 12345678901234567890123"},
		{"!10\r\nERR a\r\nb c\r\n", "blob-error ERR a\r\nb c"}, {"!3\r\nERR\r\n", "blob-error ERR"},
		{"=16\r\ntxt:Some: string\r\n", "verbatim txt Some: string"},
		{"%0\r\n", "map"}, {"%1\r\n$1\r\na\r\n$1\r\nb\r\n", "map a b"},
		{"%1\r\n$1\r\na\r\n:1\r\n", "aggregate %1 $1 a :1"},
		{"~2\r\n$1\r\na\r\n#t\r\n", "aggregate ~2 $1 a #t"},
		{"|1\r\n$1\r\na\r\n*1\r\n,0.1\r\n$2\r\nhi\r\n", "aggregate |1 $1 a *1 ,0.1 $2 hi"},
		{"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", "aggregate *2 |1 +a +b :1 :2"},
		{"*1\r\n=5\r\ntxt:a\r\n", "aggregate *1 =5 txt:a"},
		{">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n", "push >2 $10 invalidate *1 $1 a"},
		{">0\r\n", "push >0"},
		{"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "list message a b"},
		{"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "aggregate *3 $9 subscribe $1 a :1"},
	}
	for _, tt := range tests {
		if got := read(t, pingSession(t, codec.Options{}), codec.Server, tt.raw); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%q read as %q, want %q", tt.raw, got, tt.want)
		}
	}
}

// TestRequests tests that requests are decoded as arrays of bulk strings or as inline commands, and that empty requests
// violate a rule.
func TestRequests(t *testing.T) {
	tests := []struct {
		raw  string
		want []string
	}{
		{"*1\r\n$4\r\npInG\r\n", []string{"command pInG"}},
		{"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\n\r\n\x00\r\n", []string{"command SET  \r\n\x00"}},
		{"PING\nPING\r\n  PING  a \r\n", []string{"inline PING", "inline PING", "inline   PING  a "}},
		{"SET a \"b c\\\" \\x41\" 'it\\'s'\n", []string{`inline SET a "b c\" \x41" 'it\'s'`}},
		{"PING a'b c'\n", []string{"inline PING a'b c'"}},
		{"\r\n*0\r\n*-1\r\n \n" + ping, []string{string(RuleEmpty), string(RuleEmpty), string(RuleEmpty), string(RuleEmpty), "command PING"}},
		{"+PING\r\n", []string{"inline +PING"}},
		{repeat("a", DefaultMaxLine-1) + "\n", []string{"inline " + repeat("a", DefaultMaxLine-1)}},
	}
	for _, tt := range tests {
		if got := read(t, Protocol.NewSession(codec.Options{}), codec.Peer, tt.raw); !slices.Equal(got, tt.want) {
			t.Errorf("%.60q read as %.60q, want %.60q", tt.raw, got, tt.want)
		}
	}
}

// TestLongArrayIsScannedFewTimes tests that an array of 100,000 elements that arrives in pieces, as from a socket, is
// decoded with few calls of Decode.
func TestLongArrayIsScannedFewTimes(t *testing.T) {
	const elements = 100_000
	raw := append([]byte("*100000\r\n"), bytes.Repeat([]byte("$1\r\nx\r\n"), elements)...)
	s := Protocol.NewSession(codec.Options{})
	var f codec.Frame
	calls, need := 0, 1
	for have := 0; have < len(raw); {
		have = min(have+1000, len(raw))
		if have < need && have < len(raw) {
			continue
		}
		calls++
		n, err := s.Decode(codec.Peer, raw[:have], &f)
		if err == nil && n == len(raw) {
			break
		}
		if err != codec.ErrShort || n > len(raw) {
			t.Fatalf("Decode of %d bytes: %d, %v", have, n, err)
		}
		need = n
	}
	if calls > 200 {
		t.Errorf("it was read %d times", calls)
	}
}

// TestElementsAreBounded tests that the limit of elements bounds the memory of a message, also for elements of minimum
// size, whose spans need more memory than the elements have bytes.
func TestElementsAreBounded(t *testing.T) {
	if n := 2 * unsafe.Sizeof(codec.Span{}); n > spansSize {
		t.Errorf("the spans of an element take %d bytes, more than %d", n, spansSize)
	}
	s := Protocol.NewSession(codec.Options{MaxData: 4096 * spansSize}).(*session)
	elements := s.maxElements()
	if elements*spansSize > s.opts.MaxData+1<<16 {
		t.Errorf("%d elements in a message of at most %d bytes", elements, s.opts.MaxData)
	}
	var f codec.Frame
	raw := fmt.Appendf(nil, "*%d\r\n%s", elements, repeat("$0\r\n\r\n", elements))
	read := func() {
		if n, err := s.Decode(codec.Peer, raw, &f); n != len(raw) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		s.answered()
	}
	read()
	read()
	if n := testing.AllocsPerRun(10, read); n > 0 {
		t.Errorf("a message of the same size allocates %v times again", n)
	}
	_, err := s.Decode(codec.Peer, fmt.Appendf(nil, "*%d\r\n", elements+1), &f)
	if e, _ := err.(*codec.Error); e == nil || e.Rule != RuleCap {
		t.Errorf("one element more: %v", err)
	}
}

package transcript_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
)

var now = time.Unix(1_700_000_000, 0)

// frame returns the frame of a step whose arguments are all literal.
func frame(t *testing.T, step string) *codec.Frame {
	t.Helper()
	st := &parse(t, gearman.Protocol, step).Steps[0]
	m := codec.Message{Type: st.Choices[0].Type, CRLF: st.Choices[0].CRLF}
	for _, a := range st.Choices[0].Args {
		m.Args = append(m.Args, a.Value)
	}
	all := codec.Options{WaiveAll: true}
	raw, err := gearman.Protocol.NewSession(all).Append(nil, st.From, &m)
	if err != nil {
		t.Fatal(err)
	}
	s := gearman.Protocol.NewSession(codec.Options{})
	if asks := requests(gearman.Protocol, m.Type); asks != nil && st.From == codec.Server {
		if _, err := s.Append(nil, codec.Peer, asking(asks[0])); err != nil {
			t.Fatal(err)
		}
	}
	var f codec.Frame
	if _, err := s.Decode(st.From, raw, &f); err != nil {
		t.Fatal(err)
	}
	return &f
}

// TestMatch tests that a received message matches an expected one with wildcards, names, rows and times, or that the
// mismatch names the byte, the field and both values. Each case is a list of pairs of an expected and a received
// message, and want is the mismatch of the last pair, if any.
func TestMatch(t *testing.T) {
	const toClient, toAdmin = "Job Server -> Client: ", "Job Server -> Admin: "
	tests := []struct {
		name      string
		exchanges []string // expected, received, expected, received...
		want      string   // mismatch of the last pair; the others match
	}{
		{"literal", []string{"ERROR code text", "ERROR code text"}, ""},
		{"other literal", []string{"ERROR code text", "ERROR code test"}, "byte 19, Error text: expected text, got test"},
		{"longer", []string{"ERROR code text", "ERROR code texts"}, "byte 21, Error text: expected text, got texts"},
		{"other type", []string{"ECHO_RES text", "ERROR code text"}, "byte 4, Packet type: expected ECHO_RES, got ERROR"},
		{"wildcards", []string{"ERROR * *", "ERROR code text"}, ""},
		{"rest", []string{"ERROR code ...", "ERROR code text"}, ""},
		{"rest of nothing", []string{"ERROR code text ...", "ERROR code text"}, ""},
		{"rest before a row", []string{"status-reply ... f 1 0 2", "status-reply a 0 0 0 f 1 0 2"}, ""},
		{"rest around a row", []string{"status-reply ... f * 0 2 ...", "status-reply a 0 0 0 f 1 0 2 z 0 0 0"}, ""},
		{"rest around nothing", []string{"status-reply ... f 1 0 2 ...", "status-reply f 1 0 2"}, ""},
		{"two rows between rests", []string{"status-reply ... a 0 0 0 ... z 0 0 0 ...", "status-reply a 0 0 0 f 1 0 2 z 0 0 0"}, ""},
		{"rest binds one row only", []string{"status-reply ... $f 1 0 0 ... $f 1 0 0", "status-reply a 1 0 0 b 1 0 0 a 1 0 0"}, ""},
		{"no such row", []string{"status-reply ... f 1 0 2 ...", "status-reply a 0 0 0 f 1 0 3 z 0 0 0"}, "byte 14, Available workers: expected 2, got 3"},
		{"a row too many", []string{"status-reply ... f 1 0 2", "status-reply f 1 0 2 z 0 0 0"}, "byte 8, Function: expected no further argument, got z"},
		{"wrong before rest", []string{"ERROR cod ...", "ERROR code text"}, "byte 15, Error code: expected cod, got code"},
		{"name", []string{"ERROR $a $a", "ERROR code code"}, ""},
		{"name at odds", []string{"ERROR $a $a", "ERROR code coda"}, "byte 20, Error text: expected code (in this run the value of $a), got coda"},
		{"name kept", []string{"JOB_CREATED $h", "JOB_CREATED H:1", "WORK_FAIL $h", "WORK_FAIL H:2"}, "byte 14, Job handle: expected H:1 (in this run the value of $h), got H:2"},
		{"handle written out", []string{"JOB_CREATED H:lap:1", "JOB_CREATED H:x:7", "WORK_COMPLETE H:lap:1 r", "WORK_COMPLETE H:x:7 r"}, ""},
		{"handle written out, wrong later", []string{"JOB_CREATED H:lap:1", "JOB_CREATED H:x:7", "WORK_COMPLETE H:lap:1 r", "WORK_COMPLETE H:lap:1 r"},
			"byte 14, Job handle: expected H:x:7 (in this run the value of H:lap:1), got H:lap:1"},
		{"two handles", []string{"JOB_CREATED H:lap:1", "JOB_CREATED H:x:7", "JOB_CREATED H:lap:2", "JOB_CREATED H:x:7"},
			"byte 12, Job handle: expected a new value for H:lap:2, got H:x:7 (in this run the value of H:lap:1)"},
		{"two names", []string{"JOB_CREATED $a", "JOB_CREATED H:1", "JOB_CREATED $b", "JOB_CREATED H:1"},
			"byte 12, Job handle: expected a new value for $b, got H:1 (in this run the value of $a)"},
		{"two names for data", []string{"ERROR $a $b", "ERROR same same"}, ""},
		{"exact handle", []string{"exact JOB_CREATED H:lap:1", "JOB_CREATED H:x:7"}, "byte 14, Job handle: expected H:lap:1, got H:x:7"},
		{"failure binds nothing", []string{"!WORK_COMPLETE $h right", "WORK_COMPLETE H:1 wrong", "WORK_COMPLETE $h right", "WORK_COMPLETE H:2 right"}, ""},
		{"now", []string{"ERROR $now $now+10", "ERROR 1700000001 1700000008"}, ""},
		{"not now", []string{"ERROR $now-10 *", "ERROR 1700000000 x"}, "byte 12, Error code: expected $now-10 (1699999990), got 1700000000"},
		{"no number", []string{"ERROR $now *", "ERROR soon x"}, "byte 12, Error code: expected $now (1700000000), got soon"},
		{"long value", []string{"ECHO_RES x", `ECHO_RES "` + strings.Repeat("a", 30) + strings.Repeat("b", 170) + `"`}, `byte 12, Data: expected x, got "` + strings.Repeat("a", 30) + strings.Repeat("b", 34) + `" ... 136 bytes more`},
		{"repeated text", []string{"ECHO_RES x", `ECHO_RES "ab"*100`}, `byte 12, Data: expected x, got "ab"*100`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b Bindings
			for i := 0; i < len(tt.exchanges); i += 2 {
				expect, exact := strings.CutPrefix(tt.exchanges[i], "exact ")
				expect, fails := strings.CutPrefix(expect, "!")
				to := toClient
				if strings.HasPrefix(expect, "status-reply") {
					to = toAdmin
				}
				bad := b.Match(choice(t, to+expect), frame(t, to+tt.exchanges[i+1]), now, exact)
				last := i+2 == len(tt.exchanges)
				switch {
				case last && tt.want != "" && bad == nil:
					t.Errorf("matches, want %s", tt.want)
				case last && tt.want != "":
					if bad.String() != tt.want {
						t.Errorf("got  %s\nwant %s", bad, tt.want)
					}
				case fails == (bad == nil):
					t.Errorf("%s: got %v", tt.exchanges[i], bad)
				}
			}
		})
	}

	var b Bindings
	list := frame(t, toAdmin+"status-reply a 1 2 3 b 1 2 3")
	for expect, want := range map[string]string{
		"status-reply ...":                     "",
		"status-reply a 1 2 3 ...":             "",
		"status-reply a 1 2 3":                 "byte 8, arguments: expected 4, got 8",
		"status-reply a 1 2 3 b 1 2 3 c * * *": "byte 18, arguments: expected 12, got 8",
		"status-reply a 1 2 3 b 1 2 3 c ...":   "byte 18, arguments: expected at least 9, got 8",
		"status-reply ... c * * * ...":         "byte 18, arguments: expected an entry with Function c, got none",
		"status-reply ... b 1 2 4 ...":         "byte 14, Available workers: expected 4, got 3",
		"status-reply ... * 7 * * ...":         "byte 18, arguments: expected an entry with Total 7, got none",
		"status-reply a 1 2 3 b 1 2 4":         "byte 14, Available workers: expected 4, got 3",
	} {
		got := ""
		if bad := b.Match(choice(t, toAdmin+expect), list, now, false); bad != nil {
			got = bad.String()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", expect, got, want)
		}
	}

	jobs := frame(t, toAdmin+"show-jobs-reply H:1 0 0 1 H:1 0 0 1")
	if bad := b.Match(choice(t, toAdmin+"show-jobs-reply $a 0 0 1 $b 0 0 1"), jobs, now, false); bad == nil || bad.Arg != 4 {
		t.Errorf("two names for one handle: got %v", bad)
	}
	if bad := b.Match(choice(t, toAdmin+"show-jobs-reply $a 0 0 1 $a 0 0 1"), jobs, now, false); bad != nil {
		t.Error(bad)
	}

	lf, crlf := choice(t, toAdmin+"ERR *"), frame(t, toAdmin+"ERR x crlf")
	if bad := b.Match(lf, crlf, now, false); bad != nil {
		t.Errorf("the end of the line counts: %s", bad)
	}
	if bad := b.Match(lf, crlf, now, true); bad == nil || bad.String() != `byte 5, end of line: expected "\n", got "\r\n"` {
		t.Errorf("got %v", bad)
	}
	recorded := *lf
	recorded.CRLF, recorded.Bytes = true, []byte("ERR y\r\n")
	if bad := b.Match(&recorded, crlf, now, true); bad == nil || bad.Offset != 4 || bad.Field != "bytes" {
		t.Errorf("got %v", bad)
	}
	if bad := b.Match(choice(t, toAdmin+"closes"), crlf, now, false); bad == nil || bad.Want != "closes" {
		t.Errorf("got %v", bad)
	}
}

// TestResolve tests that a message is sent with the values that names and literal handles have from earlier messages,
// and that a step without a definite value is an error.
func TestResolve(t *testing.T) {
	const from = "Client -> Job Server: "
	tests := []struct{ send, want string }{
		{"GET_STATUS H:lap:1", "GET_STATUS H:x:7"},
		{"exact GET_STATUS H:lap:1", "GET_STATUS H:lap:1"},
		{"GET_STATUS H:none", "GET_STATUS H:none"},
		{"GET_STATUS H:x:7", `expected different values for H:x:7 and H:lap:1, got "H:x:7" for both`},
		{"ECHO_REQ H:lap:1", "ECHO_REQ H:lap:1"},
		{"ECHO_REQ $key", `ECHO_REQ "some value"`},
		{"ECHO_REQ $other", "variable $other has no value: an earlier message in the transcript must contain $other"},
		{"ECHO_REQ *", "expected a value to send, got *, which matches any value"},
		{"SUBMIT_JOB a ...", "expected a value to send, got ..., which matches any value"},
		{"SUBMIT_JOB_EPOCH f u $now+2 w", "SUBMIT_JOB_EPOCH f u 1700000002 w"},
		{"unchecked ECHO_REQ a b", "ECHO_REQ a b"},
		{"closes", "expected a line that sends a message, got a line with another action"},
	}
	for _, tt := range tests {
		var b Bindings
		b.Set("key", []byte("some value"))
		if bad := b.Match(choice(t, "Job Server -> Client: JOB_CREATED H:lap:1"), frame(t, "Job Server -> Client: JOB_CREATED H:x:7"), now, false); bad != nil {
			t.Fatal(bad)
		}
		step, exact := strings.CutPrefix(tt.send, "exact ")
		m, err := b.Resolve(choice(t, from+step), now, exact)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			st := send(Actor{"Client", gearman.Client}, codec.Peer, &m)
			got = strings.TrimSpace(strings.TrimPrefix(lines(t, &Script{Protocol: gearman.Protocol, Steps: []Step{st}}), from))
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.send, got, tt.want)
		}
	}

	// A literal that is sent before it is bound keeps its own value.
	var b Bindings
	if _, err := b.Resolve(choice(t, from+"GET_STATUS H:none"), now, false); err != nil {
		t.Fatal(err)
	}
	answer := choice(t, "Job Server -> Client: STATUS_RES H:none 0 0 0 0")
	if bad := b.Match(answer, frame(t, "Job Server -> Client: STATUS_RES H:some 0 0 0 0"), now, false); bad == nil {
		t.Error("another handle matches")
	}
	if bad := b.Match(answer, frame(t, "Job Server -> Client: STATUS_RES H:none 0 0 0 0"), now, false); bad != nil {
		t.Error(bad)
	}
	if v, ok := b.Value("none"); ok {
		t.Errorf("a literal became the name %q", v)
	}
}

// TestBinaryNow tests that $now in a binary field is sent as the time at which the message is sent, and matches only
// about this time.
func TestBinaryNow(t *testing.T) {
	c := &parse(t, toy, "Client -> Server: count $now+1 1").Steps[0].Choices[0]
	var b Bindings
	m, err := b.Resolve(c, now, false)
	if err != nil || string(m.Args[0]) != string(be32(1_700_000_001)) {
		t.Errorf("got %v, %v", m.Args, err)
	}
	var f codec.Frame
	raw := append(append([]byte{1, 5}, m.Args[0]...), 1)
	if _, err := (toySession{}).Decode(codec.Peer, raw, &f); err != nil {
		t.Fatal(err)
	}
	if bad := b.Match(c, &f, now, false); bad != nil {
		t.Error(bad)
	}
	if bad := b.Match(c, &f, now.Add(time.Minute), false); bad == nil {
		t.Error("a minute later it matches too")
	}
}

// TestVersion tests that the pattern *version matches a reply that contains a version number, and neither error
// messages nor replies without a number.
func TestVersion(t *testing.T) {
	const toAdmin = "Job Server -> Admin: "
	for line, want := range map[string]bool{
		"OK 1.1.20": true, "OK 1.1.20+ds": true, "1.130": true, "v1.130.1": true, "OK gearmand/2.0-rc1": true, "version 0.9.0-dev": true,
		"version": false, "VERSION": false, "OK": false, "OK version": false, "OK jobwire": false, "1": true, "r7": true, "OK .": false,
		"unknown command": false, "Error: unknown command (gearmand 1.1.20)": false, "ERROR 1.2": false, "OK not supported in 1.0": false,
	} {
		var b Bindings
		c := choice(t, toAdmin+"version-reply *version")
		if bad := b.Match(c, frame(t, toAdmin+"version-reply "+Quote(line)), now, false); (bad == nil) != want {
			t.Errorf("%q: got %v, want a match: %t", line, bad, want)
		}
	}
}

// TestMatchOfLongEscapedValue tests that a YAML scalar matches although its value is longer than the text of its escape
// sequences: each \L has two bytes and represents three.
func TestMatchOfLongEscapedValue(t *testing.T) {
	value := strings.Repeat("\u2028", 12)
	body := "---\nk: \"" + strings.Repeat(`\L`, 12) + "y\"\n"
	s := beanstalk.Protocol.NewSession(codec.Options{})
	var f codec.Frame
	if _, err := s.Decode(codec.Peer, []byte("stats\r\n"), &f); err != nil {
		t.Fatal(err)
	}
	reply := fmt.Appendf(nil, "OK %d\r\n%s\r\n", len(body), body)
	if _, err := s.Decode(codec.Server, reply, &f); err != nil {
		t.Fatal(err)
	}
	want := Choice{Type: beanstalk.Protocol.TypeNamed("stats-reply"), Args: []Arg{{Value: []byte("k")}, {Value: []byte(value + "x")}}}
	bad := new(Bindings).Match(&want, &f, now, false)
	if last := bytes.LastIndexByte(reply, '"'); bad == nil || bad.Offset != last {
		t.Errorf("expected a mismatch at byte %d, got %+v", last, bad)
	}
}

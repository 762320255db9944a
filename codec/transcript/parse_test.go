package transcript_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
	"jobwire/fuzz/laws"
)

// TestParseErrors checks the errors of the parser and their positions.
func TestParseErrors(t *testing.T) {
	const job = "Client -> Job Server\n00 52 45 51  \\0REQ  (Magic)\n00 00 00 07  7  (Packet type: SUBMIT_JOB)\n00 00 00 06  6  (Packet length)\n"
	tests := []struct{ name, src, want string }{
		{"nothing", "", "1:1: expected at least one message or action in the transcript, got none"},
		{"prose only", "A text.\n", "1:1: expected at least one message or action in the transcript, got none"},
		{"empty case", "@case a\n@case b\nClient -> Job Server: opens", "1:1: expected at least one message or action in the transcript, got none"},
		{"case without a name", "@case", "1:2: expected a name after @case, got none"},
		{"case twice", "@case a\nClient -> Job Server: opens\n@case a\n", "3:2: expected a different name for each @case, got a twice"},
		{"steps before a case", "Client -> Job Server: opens\n@case a\n", "2:2: expected @case before the first message, got a message before @case"},
		{"late meta", "Client -> Job Server: opens\n  @rule x", "2:4: expected @rule before the first message, got @rule after it"},
		{"tests nothing", "Client -> Job Server: opens\n  @tests", "2:4: expected the ID of a rule after @tests, got none"},
		{"bad key", "@Rule x", "1:2: expected a key of letters, digits and hyphens after @"},
		{"prose beside lines", "Client -> Job Server: opens\nand so on", `2:1: expected a message or action, such as "Client -> Job Server: ..."`},

		{"unknown actor", "Clint -> Job Server: NOOP", `1:1: expected a client, worker or server name, got "Clint": did you mean Client?`},
		{"unknown actor, nothing near", "Postman -> Job Server: NOOP", `there are Job Server, Client, Worker, Admin`},
		{"named badly", "Client a-b -> Job Server: NOOP", `1:1: expected a client, worker or server name, got "Client a-b": there are Job Server, Client, Worker, Admin`},
		{"server named", "Client -> Job Server 2: GRAB_JOB", `1:11: expected a client, worker or server name, got "Job Server 2": did you mean Job Server?`},
		{"no server", "Client -> Worker: NOOP", "1:1: expected the Job Server as the sender or the receiver"},
		{"two servers", "Job Server -> Job Server: NOOP", "1:14: expected a client or worker at one end and the server at the other, got the Job Server at both ends"},

		{"nothing said", "Client -> Job Server:  # hm", "1:1: expected a message or an action after the colon, got none"},
		{"direction alone", "Client -> Job Server", "1:1: expected a colon, a space and a step after the direction, or lines of bytes below it"},
		{"unknown type", "Client -> Job Server: SUBMIT_JOBS a b c", `1:23: expected a message type or an action, got "SUBMIT_JOBS": did you mean SUBMIT_JOB?`},
		{"unknown word", "Client -> Job Server: close", `did you mean closes?`},
		{"quoted type", `Client -> Job Server: "NOOP"`, "1:23: expected a message type or a word such as closes, got quoted text"},
		{"unchecked nothing", "Client -> Job Server: unchecked", "1:1: expected a message type after \"unchecked\", got none"},
		{"wrong role", "Client -> Job Server: CAN_DO f", "1:23: CAN_DO is sent by Worker, not by Client"},
		{"wrong role to", "Job Server -> Client: NOOP", "1:23: NOOP is sent to Worker, not to Client"},
		{"wrong way", "Client -> Job Server: NO_JOB", "1:23: NO_JOB is sent by the Job Server, to Worker"},
		{"wrong way to", "Job Server -> Client: SUBMIT_JOB a b c", "1:23: SUBMIT_JOB is sent to the Job Server, by Client"},
		{"too few", "Client -> Job Server: SUBMIT_JOB a b", "1:23: expected SUBMIT_JOB function unique-id workload, got 2 arguments"},
		{"too many", "Client -> Job Server: SUBMIT_JOB a b c d", "expected SUBMIT_JOB function unique-id workload, got 4 arguments"},
		{"too many before rest", "Client -> Job Server: SUBMIT_JOB a b c d ...", "expected SUBMIT_JOB function unique-id workload, got 5 arguments"},
		{"silence with a deadline", "Job Server -> Client: nothing for 5s within 1s", `1:38: "within" is not allowed after "nothing for TIME", which already has a time`},
		{"half a repetition", "Job Server -> Admin: status-reply a 1 1", "expected status-reply {function total running available-workers}..., got 3 arguments"},
		{"after the rest", "Client -> Job Server: SUBMIT_JOB ... c", "1:34: expected \"...\" as the last argument or after a complete group of repeated arguments"},
		{"rest within a repetition", "Job Server -> Admin: status-reply f ... 1 0 0", "1:37: expected \"...\" as the last argument or after a complete group of repeated arguments"},

		{"illegal value", "Client -> Job Server: SUBMIT_JOB_EPOCH $f * soon ...", `1:45: SUBMIT_JOB_EPOCH, Epoch time: expected a decimal number of at most 64 bits, got "soon" [gearman.number.decimal]`},
		{"illegal beside a wildcard", "Worker -> Job Server: WORK_FAIL " + strings.Repeat("h", 64), "1:33: WORK_FAIL, Job handle: expected at most 63 bytes, got 64 [gearman.handle.length]"},
		{"separator", `Client -> Job Server: SUBMIT_JOB "a\0b" u *`, `1:34: SUBMIT_JOB, Function: expected a value without the separator "\x00", got a value that contains it [gearman.args.surplus]`},
		{"illegal in a reply", "Job Server -> Admin: status-reply f 1 x *", "1:39: status-reply, Running:"},

		{"open quote", `Client -> Job Server: ECHO_REQ "a\"`, "1:32: expected a closing quote, got the end of the line"},
		{"glued quote", `Client -> Job Server: ECHO_REQ "a"b`, "1:35: expected a space after the closing quote, got 'b'"},
		{"quote in a word", `Client -> Job Server: ECHO_REQ a"b"`, `1:33: expected a word, got a word that contains '"': write the value in double quotes`},
		{"parenthesis", `Client -> Job Server: ECHO_REQ (a)`, "1:32: expected a word, got a word that contains '(': write the value in double quotes"},
		{"escape in a word", `Client -> Job Server: ECHO_REQ a\n`, `1:33: expected a word, got a word that contains '\\': write the value in double quotes`},
		{"unknown escape", `Client -> Job Server: ECHO_REQ "ab\q"`, `1:35: expected one of the escapes \0 \t \n \r \\ \" and \xNN, got \q`},
		{"half an escape", `Client -> Job Server: ECHO_REQ "\x1"`, `1:33: expected two hexadecimal digits`},
		{"signed escape", `Client -> Job Server: ECHO_REQ "\x+1"`, `expected two hexadecimal digits`},
		{"repeated how often", `Client -> Job Server: ECHO_REQ "a"*`, `1:36: expected a number after *, as in "x"*1000`},
		{"repeated too often", `Client -> Job Server: ECHO_REQ "ab"*999999999999`, "1:32: expected at most 268435456 bytes of quoted text in the file, got more"},
		{"glued star", "Client -> Job Server: ECHO_REQ *a", "1:32: expected * alone: put a value that begins with * in double quotes"},
		{"no name", "Client -> Job Server: ECHO_REQ $", "1:32: expected a name of letters, digits, _ and - after $"},
		{"bad name", "Client -> Job Server: ECHO_REQ $a.b", "1:32: expected a name of letters, digits, _ and - after $"},
		{"bad time", "Client -> Job Server: ECHO_REQ $now+x", "1:32: expected a number of seconds after $now+"},

		{"no duration", "Job Server -> Worker: NOOP within", "1:28: expected a value after within, got none"},
		{"bad duration", "Job Server -> Worker: NOOP within 2", `1:35: expected a time such as 100ms or 2s, got "2"`},
		{"negative duration", "Job Server -> Worker: NOOP after -2s", `1:34: expected a time such as 100ms or 2s, got "-2s"`},
		{"within twice", "Job Server -> Worker: NOOP within 2s within 2s", `1:38: expected within once, got it twice`},
		{"until what", "Job Server -> Worker: NOOP until 1s", `1:28: expected a message type after "until" and its time, as in "until 2s of put", got none`},
		{"of twice", "Job Server -> Worker: NOOP after 1s of SUBMIT_JOB until 2s of SUBMIT_JOB", `1:51: expected "of" once, got it twice`},
		{"time of nothing", "Job Server -> Worker: NOOP after 1s of", `1:37: expected a message type after "of", got none`},
		{"time of an unknown message", "Job Server -> Worker: NOOP after 1s of PRE_SLEP", `1:40: expected a message type, got "PRE_SLEP": did you mean PRE_SLEEP?`},
		{"time of a reply", "Job Server -> Worker: NOOP after 1s of JOB_CREATED", `1:40: expected a message of the Job Server, and a time from the sending of a message to it, got JOB_CREATED`},
		{"nothing for ever", "Job Server -> Worker: nothing", `1:23: expected a time after nothing, as in "nothing for 100ms"`},
		{"unknown modifier", "Job Server -> Worker: NOOP within 2s pst NOOP", `1:38: expected a modifier, such as "within 2s", after the message, got "pst": did you mean past?`},
		{"argument of closes", "Job Server -> Worker: closes now", `1:30: expected a modifier, such as "within 2s", after the message, got "now"`},
		{"past what", "Job Server -> Worker: NO_JOB past within 1s", `1:35: expected a message type, got "within"`},
		{"past the wrong way", "Job Server -> Worker: NO_JOB past GRAB_JOB", `1:35: GRAB_JOB is sent to the Job Server, by Worker`},
		{"crlf of a packet", "Job Server -> Worker: NOOP crlf", "1:28: expected \"crlf\" at most once, and only after a message whose lines may end with LF or CR LF"},
		{"raw what", "Client -> Job Server: raw", "1:23: expected at least one byte after \"raw\", got none"},
		{"raw word", "Client -> Job Server: raw 00 5", `1:30: expected two hexadecimal digits or quoted text, got "5"`},
		{"server opens", "Job Server -> Client: opens", `1:23: expected a client or worker before "opens", because servers do not connect, and no alternative ("or")`},
		{"opens again", "Client -> Job Server: closes\nClient -> Job Server: opens", "2:1: expected one connection for each name, got a second connection for Client: use another name"},

		{"or first", "@case a\n  or closes", `2:3: expected a message or action in the line above "or", got none`},
		{"or of the case before", "@case a\nClient -> Job Server: closes\n@case b\n  or closes", `4:3: expected a message or action in the line above "or", got none`},
		{"or opens", "Client -> Job Server: closes\n or opens", `2:5: expected a client or worker before "opens", because servers do not connect, and no alternative ("or")`},
		{"opens or", "Client -> Job Server: opens\n or closes", `2:2: "or" is not allowed after "opens"`},
		{"or nothing", "Client -> Job Server: closes\n or non-strict", "2:2: expected a message or an action after the colon, got none"},
		{"or within", "Client -> Job Server: closes\n or resets within 2s", "2:12: expected within in the line of the first alternative, got within after a later one"},

		{"text lies", strings.Replace(job, `\0REQ`, `\0RES`, 1) + "66 00 75 00 77 77", `2:14: expected the text "\\0REQ" for these bytes, got "\\0RES"`},
		{"number lies", strings.Replace(job, "06  6", "06  7", 1) + "66 00  f\\0  (Function)\n75 00  u\\0  (Unique ID)\n77 77  ww  (Workload)", `4:14: expected the number 6 for these bytes, got "7"`},
		{"type lies", strings.Replace(job, "SUBMIT_JOB", "CAN_DO", 1) + "66 00 75 00 77 77", "3:17: expected the label (Packet type: SUBMIT_JOB) for these bytes, got (Packet type: CAN_DO)"},
		{"label lies", job + "66 00  f\\0  (Unique ID)\n75 00 77 77  u", "5:13: expected the label (Function) for these bytes, got (Unique ID)"},
		{"no label", job + "66 00  f\\0\n75 00 77 77  u", "5:11: expected the label (Function), got none"},
		{"no text", job + "66 00  (Function)\n75 00 77 77  u", `5:8: expected the text "f\\0" for these bytes, got ""`},
		{"row over two fields", job + "66 00 75  f\\0u (Function)\n00 77 77  u", "5:7: expected the line to end at the end of the field (Function), got more bytes: write the next field on a new line"},
		{"label twice", job + "66     f (Function)\n00   \\0 (Function)\n75 00 77 77  u", `6:6: expected the text "\\0" for these bytes, got "\\0 (Function)"`},
		{"bad escape in a row", job + "66 00  f\\q  (Function)\n75 00 77 77  u", `5:9: expected one of the escapes \0 \t \n \r \\ \" and \xNN, got \q`},
		{"short message", job + "66 00  f\\0  (Function)", "1:1: expected a complete message of at least 18 bytes, got 14"},
		{"long message", job + "66 00  f\\0  (Function)\n75 00  u\\0  (Unique ID)\n77 77 77  www  (Workload)", "7:7: expected the message to end before this byte, got more bytes: list the next message in a block of its own"},
		{"bad magic", strings.Replace(job, "45", "46", 1), "2:7: Magic: expected 'E' in the magic, got 0x46 [gearman.packet.magic]"},
		{"role in a block", strings.Replace(job, "Client", "Worker", 1) + "66 00  f\\0  (Function)\n75 00  u\\0  (Unique ID)\n77 77  ww  (Workload)", "1:1: SUBMIT_JOB is sent by Client, not by Worker"},
		{"no row", job + "60 0g  x\n", "5:1: expected bytes in hex, at least two spaces, the bytes as text and the (Label), or the bytes as quoted text and the (Label)"},
		{"no second blank", job + "66 00 f\\0  (Function)\n", "5:1: expected bytes in hex, at least two spaces, the bytes as text and the (Label), or the bytes as quoted text and the (Label)"},
		{"nine bytes", job + "01 02 03 04 05 06 07 08 09  x (Function)\n", "5:25: expected at most 8 bytes in a line, got more"},
		{"folded", job + "...  6 bytes more  (Function)\n", "5:1: expected all bytes of the message, got a listing that omits some bytes"},
		{"row without a direction", "Some prose.\n\n66 00  f\\0 (Function)\n", "3:1: expected a line that names the direction above the bytes, got none"},
		{"raw lies", "Client -> Job Server\n00 52  \\0S (Raw)", `2:8: expected the text "\\0R" for these bytes, got "\\0S"`},
		{"reply without its command", "Job Server -> Admin\n4f 4b 0a  OK\\n  (Reply: OK)", `2:1: Reply: expected no reply, because no command waits for one, got "OK" [gearman.admin.reply-asked-for]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(gearman.Protocol, "test.wire", []byte(tt.src))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if got := e.Error(); !strings.Contains(got, tt.want) || tt.want[0] <= '9' && !strings.HasPrefix(got, "test.wire:"+tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestStepsPrintAsWritten checks the printed form of steps. src is another way to write the step, if it differs.
func TestStepsPrintAsWritten(t *testing.T) {
	tests := []struct{ src, want string }{
		{"Client->Job Server:NOOPE", ""},
		{" Client  bob\t->  Job   Server :  ECHO_REQ\tx", "Client bob -> Job Server: ECHO_REQ x"},
		{`Client -> Job Server: ECHO_REQ "x"`, "Client -> Job Server: ECHO_REQ x"},
		{`Client -> Job Server: ECHO_REQ "...."`, "Client -> Job Server: ECHO_REQ ...."},
		{`Client -> Job Server: ECHO_REQ "\x41\x00\x0a"`, `Client -> Job Server: ECHO_REQ "A\0\n"`},
		{`Client -> Job Server: ECHO_REQ "é"`, `Client -> Job Server: ECHO_REQ "\xc3\xa9"`},
		{`Client -> Job Server: ECHO_REQ "ab"*3`, "Client -> Job Server: ECHO_REQ ababab"},
		{`Client -> Job Server: ECHO_REQ "ab"*0`, `Client -> Job Server: ECHO_REQ ""`},
		{"Client -> Job Server: ECHO_REQ " + strings.Repeat("y", 32), `Client -> Job Server: ECHO_REQ "y"*32`},
		{`Client -> Job Server: ECHO_REQ "->: #"`, `Client -> Job Server: ECHO_REQ "->: #"`},
		{"Client -> Job Server: ECHO_REQ a#b # c", "Client -> Job Server: ECHO_REQ a#b"},
		{"Job Server -> Client: ECHO_RES * past ECHO_RES ERROR past OPTION_RES within 60s after 1000us", "Job Server -> Client: ECHO_RES * within 1m0s after 1ms past ECHO_RES ERROR OPTION_RES"},
		{"Admin -> Job Server: maxqueue f crlf within 2s", "Admin -> Job Server: maxqueue f crlf within 2s"},
		{"Client -> Job Server: raw 00 52 45 51", `Client -> Job Server: raw 00 "REQ"`},
		{`Client -> Job Server: raw "abc" "y"*40 78 79 within 1s`, `Client -> Job Server: raw "abc" "y"*40 78 79 within 1s`},
		{`Client -> Job Server: raw "\0\0"*20 61`, `Client -> Job Server: raw "\0"*40 61`},
		{"Job Server -> Client: JOB_CREATED $now-3 within 1s", ""},
		{"Client -> Job Server: SUBMIT_JOB_EPOCH f u $now-3 w\r", "Client -> Job Server: SUBMIT_JOB_EPOCH f u $now-3 w"},
		{"Client -> Job Server: SUBMIT_JOB_EPOCH f u $now+0 w", "Client -> Job Server: SUBMIT_JOB_EPOCH f u $now w"},
		{"Client -> Job Server: SUBMIT_JOB_EPOCH f u $nowhere w", "Client -> Job Server: SUBMIT_JOB_EPOCH f u $nowhere w"},
		{"Job Server -> Admin: status-reply", "Job Server -> Admin: status-reply"},
		{"Job Server -> Admin: status-reply f 1 2 3 ...", "Job Server -> Admin: status-reply f 1 2 3 ..."},
	}
	for _, tt := range tests {
		scripts, err := Parse(gearman.Protocol, "", []byte(tt.src))
		if tt.want == "" {
			if err == nil && !strings.Contains(tt.src, "$now-3") {
				t.Errorf("%s: accepted", tt.src)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := lines(t, scripts[0]); got != tt.want+"\n" {
			t.Errorf("%s\ngot  %swant %s", tt.src, got, tt.want)
		}
	}
}

// TestSuite tests that a file of cases that contains every part of the notation is parsed with the keys, steps,
// modifiers and positions that it has.
func TestSuite(t *testing.T) {
	src, err := os.ReadFile("testdata/suite.wire")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := Parse(gearman.Protocol, "suite.wire", src)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, s := range scripts {
		out.WriteString("---- " + s.Value("case") + "\n")
		if err := Lines(&out, s); err != nil {
			t.Fatal(err)
		}
		if back := parse(t, gearman.Protocol, lines(t, s)); !laws.Same(s, back, false) {
			t.Errorf("%s: the lines mean something else:\n%s", s.Value("case"), lines(t, s))
		}
	}
	golden(t, "suite.lines", out.Bytes())

	words := scripts[0]
	if got := words.Value("section"); got != "Binary Packet" {
		t.Errorf("the file's section is %q in the case", got)
	}
	if words.Line != 5 || words.Steps[0].Line != 7 || words.Steps[0].Choices[0].Args[2].Col != 45 {
		t.Errorf("case at line %d, step at line %d, argument at column %d", words.Line, words.Steps[0].Line, words.Steps[0].Choices[0].Args[2].Col)
	}
	if st := words.Steps[3]; st.Within != 2*time.Second || st.After != 5*time.Millisecond || len(st.Ignored) != 1 || st.Ignored[0].Name != "ECHO_RES" || st.From != codec.Server {
		t.Errorf("modifiers were read as %+v", st)
	}
	rules := scripts[1]
	if n := len(rules.Steps[3].Choices); n != 4 || rules.Steps[3].Choices[3].Grade != NonStrict || rules.Steps[3].Choices[1].Grade != Strict {
		t.Errorf("%d choices: %+v", n, rules.Steps[3].Choices)
	}
	if p := rules.Steps[0].Peer; p.Name != "Worker 2" || p.Role != gearman.Worker {
		t.Errorf("actor %+v", p)
	}
	forms := scripts[2]
	if c := forms.Steps[1].Choices[0]; c.Verb != Send || string(c.Bytes) != "OK 11\n" || string(c.Args[0].Value) != "11" || c.Args[0].Line != 32 {
		t.Errorf("block read as %+v", c)
	}
	if c := forms.Steps[4].Choices[0]; c.Verb != Raw || string(c.Bytes) != "\x00\xffA" {
		t.Errorf("raw block read as %+v", c)
	}
	if want := "Admin -> Job Server\n00 ff         \\0\\xff     (Raw)\n41            A"; forms.Steps[4].Source != want {
		t.Errorf("source is %q", forms.Steps[4].Source)
	}
}

// TestExample tests that prose with blocks is parsed as a script, and that both printed forms of the script have the
// same meaning and are as in the golden files.
func TestExample(t *testing.T) {
	src, err := os.ReadFile("testdata/example.wire")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, gearman.Protocol, string(src))
	golden(t, "example.lines", []byte(lines(t, s)))
	var b bytes.Buffer
	if err := Bytes(&b, s); err != nil {
		t.Fatal(err)
	}
	golden(t, "example.bytes", b.Bytes())
	if !laws.Same(s, parse(t, gearman.Protocol, b.String()), true) {
		t.Error("the bytes mean something else")
	}
	if !laws.Same(s, parse(t, gearman.Protocol, lines(t, s)), false) {
		t.Error("the lines mean something else")
	}
	// Every block of the source is printed exactly as in the source.
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if !strings.Contains(string(src), strings.TrimSpace(block)) {
			t.Errorf("not in the source:\n%s", block)
		}
	}
}

// TestByteLines tests that lines of bytes that are divided and formatted in other ways than the printer's are parsed as
// the same message.
func TestByteLines(t *testing.T) {
	s := parse(t, gearman.Protocol, strings.Join([]string{
		"Client -> Job Server",
		"00       \\x00 (Magic)",
		"52 45 51\tREQ",
		"00 00  \\0\\0     (Packet type: SUBMIT_JOB)",
		"00 07  \\0\\x07",
		"00 00 00 0D   13    (Packet length)",
		"66 20 28 78 29 00   f (x)\\0   (Function)",
		"00  \\0(Unique ID)",
		"20 20      (Workload)",
		"20 3a 2d 3e  :->",
	}, "\n"))
	want := "Client -> Job Server: SUBMIT_JOB \"f (x)\" \"\" \"   :->\"\n"
	if got := lines(t, s); got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// TestBinaryNumbers tests that a number in a transcript is encoded in the width of its binary field, and decoded to a
// number again, and that values of another width are errors.
func TestBinaryNumbers(t *testing.T) {
	s := parse(t, toy, "Client -> Server: count 16909060 255\nServer -> Client: count \"\\0\\0\\0\\x07\" $n\nServer -> Client: unchecked count x \"5\"\n")
	if got := s.Steps[0].Choices[0].Args; !bytes.Equal(got[0].Value, be32(0x01020304)) || !bytes.Equal(got[1].Value, []byte{255}) {
		t.Errorf("got %v", got)
	}
	want := "Client -> Server: count 16909060 255\nServer -> Client: count 7 $n\nServer -> Client: unchecked count \"x\" 53\n"
	if got := lines(t, s); got != want {
		t.Errorf("got %s", got)
	}
	if !laws.Same(s, parse(t, toy, want), false) {
		t.Error("the lines mean something else")
	}
	var b bytes.Buffer
	if err := Bytes(&b, parse(t, toy, "Client -> Server: count 258 9")); err != nil {
		t.Fatal(err)
	}
	golden(t, "numbers.bytes", b.Bytes())
	parse(t, toy, b.String())
	// An error that a sample value may have caused is not reported.
	parse(t, toy, "Client -> Server: differ * 0")
	for src, want := range map[string]string{
		"Client -> Server: count 1 256":     `:27: Flags: expected a decimal number of 1 bytes, got "256"`,
		"Client -> Server: count many 1":    `:25: Total: expected a decimal number of 4 bytes, got "many"`,
		`Client -> Server: count "12" 1`:    ":25: count, Total: 2 bytes [toy.width]",
		"Client -> Server: count $n \"ab\"": ":28: count, Flags: 2 bytes [toy.width]",
		"Client -> Server: differ 7 7":      ":19: differ, Other: both are the same [toy.differ]",
	} {
		if _, err := Parse(toy, "", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", src, err)
		}
	}
}

// TestStepsWithoutByteForm checks the errors for steps that have no byte form.
func TestStepsWithoutByteForm(t *testing.T) {
	for src, want := range map[string]string{
		"Client -> Job Server: closes\nClient -> Job Server: ECHO_REQ $x":              "test.wire:2: message 2: a block of bytes cannot express $x: use the one-line notation",
		"Client -> Job Server: SUBMIT_JOB f ...":                                       "a block of bytes cannot express ...: use the one-line notation",
		"Client -> Job Server: unchecked ECHO_REQ x":                                   "a block of bytes cannot express unchecked ECHO_REQ: use the one-line notation",
		"Client -> Job Server: ECHO_REQ x within 1s":                                   "a block of bytes cannot contain the modifiers within, after, until and past: use the one-line notation",
		"Job Server -> Admin: OK":                                                      "expected a text command that waits for the reply OK, got none",
		"Admin -> Job Server: version\nJob Server -> Admin: version-reply \"ERR x y\"": "expected the encoded bytes to decode to the same version-reply, got another message",
	} {
		var b bytes.Buffer
		if err := Bytes(&b, parse(t, gearman.Protocol, src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
}

// TestScriptsThatCannotBePrinted checks the errors for scripts that no source can contain.
func TestScriptsThatCannotBePrinted(t *testing.T) {
	for want, s := range map[string]*Script{
		"expected a value of one line for @note, got several lines":               {Meta: []Meta{{Key: "note", Value: "a\nb"}}},
		"message 1: expected a message or action, got a step with neither":        {Steps: []Step{{}}},
		"message 1: expected a message with a type, got a message without a type": {Steps: []Step{{Choices: []Choice{{}}}}},
		"message 1: expected bytes after \"raw\", got none":                       {Steps: []Step{{Choices: []Choice{{Verb: Raw}}}}},
		"message 1: expected a time for \"nothing\", got none":                    {Steps: []Step{{Choices: []Choice{{Verb: Closes}, {Verb: Nothing}}}}},
	} {
		s.Protocol = gearman.Protocol
		for _, print := range []func(io.Writer, *Script) error{Lines, Bytes} {
			var b bytes.Buffer
			if err := print(&b, s); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
				t.Errorf("got %v and %q, want %s", err, b.String(), want)
			}
		}
	}
}

package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/fuzz/laws"
)

// exchange is one message of a Beanstalk conversation.
type exchange struct {
	from codec.Side
	raw  string
}

var exchanges = []exchange{
	{codec.Peer, "put 0 1 60 5\r\nhello\r\n"},
	{codec.Server, "INSERTED 12\r\n"},
	{codec.Peer, "put 0 0 1 4\r\n\x00\r\n\xff\r\n"},
	{codec.Server, "EXPECTED_CRLF\r\n"},
	{codec.Peer, "put 0 0 1 240\r\n" + strings.Repeat("0123456789", 24) + "\r\n"},
	{codec.Server, "BURIED 13\r\n"},
	{codec.Peer, "use " + strings.Repeat("t", 100) + "\r\n"},
	{codec.Server, "USING " + strings.Repeat("t", 100) + "\r\n"},
	{codec.Peer, "reserve\r\n"},
	{codec.Server, "RESERVED 12 24\r\nsay \"a -> b: c\\d\"\r\n# x\r\n\r\n"},
	{codec.Peer, "stats-job 12\r\n"},
	{codec.Server, "OK 15\r\n---\nid: 1\na: b\n\r\n"},
	{codec.Peer, "list-tubes\r\n"},
	{codec.Server, "OK 10\r\n--- [a,b]\n\r\n"},
}

// TestTextListings prints messages of text in all listing formats, and parses them again.
func TestTextListings(t *testing.T) {
	p := beanstalk.Protocol
	var out []byte
	for _, pr := range []Printer{{}, {Hex: true}, {Fold: 2}, {Color: true}} {
		pr.Protocol = p
		out = fmt.Appendf(out, "# hex %v, folded to %d, in colour %v\n\n", pr.Hex, pr.Fold, pr.Color)
		s := p.NewSession(codec.Options{})
		var text, wire []byte
		for _, m := range exchanges {
			var f codec.Frame
			if _, err := s.Decode(m.from, []byte(m.raw), &f); err != nil {
				t.Fatal(err)
			}
			text = append(pr.AppendFrame(text, "Client", &f), '\n')
			wire = append(wire, m.raw...)
		}
		out = append(out, text...)
		if pr.Fold > 0 || pr.Color {
			continue
		}
		var read []byte
		for _, st := range parse(t, p, string(text)).Steps {
			read = append(read, st.Choices[0].Bytes...)
		}
		if !bytes.Equal(read, wire) {
			t.Errorf("read back as\n%q, want\n%q", read, wire)
		}
	}
	golden(t, "text", out)
	for _, name := range []string{"accept.wire", "reject.wire"} {
		corpusInText(t, p, name)
		corpusInText(t, gearman.Protocol, name)
	}
}

// corpusInText prints the scripts of a file of the corpus in byte form, where they have one, and parses them
// again.
func corpusInText(t *testing.T, p *codec.Protocol, name string) {
	src, err := corpus.FS.ReadFile(p.Name + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := Parse(p, name, src)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		var b bytes.Buffer
		if err := Bytes(&b, s); err != nil {
			t.Errorf("%s: %v", s.Value("case"), err)
		} else if back := parse(t, p, b.String()); !laws.Same(s, back, true) {
			t.Errorf("the bytes mean something else:\n%s", b.String())
		}
	}
}

// TestBrokenText tests that the listing of an illegal line shows each byte once and one mark below the byte that
// violates the rule, as text and in hexadecimal.
func TestBrokenText(t *testing.T) {
	tests := []struct {
		name string
		p    *codec.Protocol
		raw  string
	}{
		{"a field", beanstalk.Protocol, "put 0 x1 60 5\r\nhello\r\n"},
		{"a byte of a field", beanstalk.Protocol, "kick 12x\r\n"},
		{"after an escape", beanstalk.Protocol, "use a\tb\r\n"},
		{"after quotes", beanstalk.Protocol, "use \"q\"\r\n"},
		{"after the text", beanstalk.Protocol, "release 1 2\r\n"},
		{"after a body", beanstalk.Protocol, "put 0 0 1 2\r\nabc\r\n"},
		{"unknown command", beanstalk.Protocol, "putt 1\r\n"},
		{"not a line", beanstalk.Protocol, "delete 1\n\r\n"},
		{"a command in binary", beanstalk.Protocol, "delete \x01\r\n"},
		{"a Gearman line", gearman.Protocol, "maxqueue f x\n"},
	}
	var out []byte
	for _, tt := range tests {
		var f codec.Frame
		n, err := tt.p.NewSession(codec.Options{}).Decode(codec.Peer, []byte(tt.raw), &f)
		var e *codec.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %d, %v", tt.name, n, err)
		}
		for _, pr := range []Printer{{Protocol: tt.p}, {Protocol: tt.p, Hex: true}} {
			text := pr.AppendBroken(nil, tt.p.Roles[0], &f, []byte(tt.raw), e)
			out = append(fmt.Appendf(out, "# %s\n", tt.name), text...)
			out = append(out, '\n')

			// Every byte occurs exactly once in the listing, and the mark is below the offending byte.
			var shown []byte
			for _, l := range strings.Split(string(text), "\n")[1:] {
				k := strings.Index(l, "^^ ")
				switch {
				case l == "" || k >= 0:
				case l[0] == '"':
					shown = append(shown, choice(t, "Client -> Job Server: raw "+l[:strings.LastIndexByte(l, '"')+1]).Bytes...)
				default:
					shown = append(shown, choice(t, "Client -> Job Server: raw "+strings.TrimSpace(l[:min(23, len(l))])).Bytes...)
				}
			}
			if string(shown) != tt.raw || bytes.Count(text, []byte("^^ ")) != 1 {
				t.Errorf("%s: shown are %q, want %q and one mark:\n%s", tt.name, shown, tt.raw, text)
			}
		}
	}
	golden(t, "broken.text", out)
}

// TestTextLines tests that lines of text that are divided and formatted in other ways than the printer's are parsed as
// the same messages.
func TestTextLines(t *testing.T) {
	s := parse(t, beanstalk.Protocol, strings.Join([]string{
		"Producer -> Server",
		`"put 0 "`,
		"\t\"1 6\"   (Delay, TTR)",
		`"0 6\x0d\n\x61"(Bytes, Body)`,
		"00  \\0",
		`"c"*3`,
		"64 0d  d\\r",
		`"\n"`,
		"  or closes",
		"",
		"Server -> Producer",
		`"INSERTED " (INSERTED)`,
		`"7"*3  (Job ID)`,
		`"\r\n"`,
		"",
		"Producer -> Server",
		`"a -> b: \"c\" "  (Raw)`,
		"00  \\0",
		`"# #"`,
	}, "\n"))
	want := "Producer -> Server: put 0 1 60 \"a\\0cccd\"\n  or closes\nServer -> Producer: INSERTED 777\nProducer -> Server: raw \"a -> b: \\\"c\\\" \" 00 \"# #\"\n"
	if got := lines(t, s); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if a := s.Steps[0].Choices[0].Args[3]; a.Line != 4 || a.Col != 11 {
		t.Errorf("the body begins at %d:%d", a.Line, a.Col)
	}
}

// TestTextLinesRefused checks the errors of the parser for invalid lines of text, and their positions.
func TestTextLinesRefused(t *testing.T) {
	const put = "Producer -> Server\n\"put 0 1 60 5\\r\\n\"  (put: Priority, Delay, TTR, Bytes)\n"
	tests := []struct{ name, src, want string }{
		{"type lies", "Producer -> Server\n\"use t\\r\\n\" (watch: Tube)", "2:13: expected the label (use: Tube) for these bytes, got (watch: Tube)"},
		{"field lies", put + `"hello\r\n" (Workload)`, "3:13: expected the label (Body) for these bytes, got (Workload)"},
		{"too few fields", "Producer -> Server\n\"put 0 1 60 5\\r\\nhello\\r\\n\" (put: Priority, Delay, TTR, Bytes)", "2:29: expected the label (put: Priority, Delay, TTR, Bytes, Body) for these bytes, got (put: Priority, Delay, TTR, Bytes)"},
		{"nothing begins", put + "\"he\" (Body)\n\"llo\\r\\n\" (Body)", "4:11: expected no label, because no field begins in this line, got (Body)"},
		{"raw lies", "Producer -> Server\n\"pu\" (Raw)\n\"t\" (put)", "3:5: expected the label (Raw) for these bytes, got (put)"},
		{"raw later", put + `"hello\r\n" (Raw)`, "3:13: expected the label (Body) for these bytes, got (Raw)"},
		{"row of hex lies", put + "68 65 6c 6c 6f 0d 0a  help\\r\\n (Body)", `3:23: expected the text "hello\\r\\n" for these bytes, got "help\\r\\n"`},
		{"no end", put + `"hello\r\n\"`, "3:1: expected a closing quote, got the end of the line"},
		{"glued", put + `"hello\r\n"Body`, "3:12: expected the (Label) or nothing after the text, got something else"},
		{"no label", put + `"hello\r\n" Body`, "3:13: expected the (Label) or nothing after the text, got something else"},
		{"bad escape", put + `"hello\q\n" (Body)`, `3:7: expected one of the escapes \0 \t \n \r \\ \" and \xNN, got \q`},
		{"empty", put + `""`, "3:1: expected at least one byte in the line, got none"},
		{"repeated too often", put + `"ab"*999999999999`, "3:1: expected at most 268435456 bytes of quoted text in the file, got more"},
		{"short", put + `"hello\n"`, "1:1: expected a complete message of at least 21 bytes, got 20"},
		{"long", put + `"hello\r\nx\x00\n"`, "3:11: expected the message to end before this byte, got more bytes: list the next message in a block of its own"},
		{"illegal value", "Producer -> Server\n\"kick \\x31\"\n\"\\x32\\t\\x33\\r\\n\"", `3:6: kick, Bound: expected a decimal number of at most 64 bits, got "12\t3" [beanstalk.number.decimal]; to keep the invalid message, label its first line (Raw)`},
		{"illegal in a repetition", "Producer -> Server\n\"kick \"\n\"1\\t\"*3\n\"\\r\\n\"", "3:3: kick, Bound:"},
		{"without a direction", "Some prose.\n\n\"use t\\r\\n\" (use: Tube)\n", "3:1: expected a line that names the direction above the bytes, got none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(beanstalk.Protocol, "test.wire", []byte(tt.src))
			if err == nil || !strings.HasPrefix(err.Error(), "test.wire:"+tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestReplyOfAnyRequest tests that a literal reply is parsed with the form of the last request that it may answer, not
// of the first.
func TestReplyOfAnyRequest(t *testing.T) {
	parse(t, beanstalk.Protocol, "Client -> Server: list-tubes\nServer -> Client: OK \"--- [a b]\\n\"")
	parse(t, beanstalk.Protocol, "Client -> Server: stats\nServer -> Client: OK \"--- {a: '\\\"b\\\"'}\\n\"")
	if _, err := Parse(beanstalk.Protocol, "", []byte("Client -> Server: stats\nServer -> Client: OK \"---\\na: [\\n\"")); err == nil {
		t.Error("a reply that no request can have is accepted")
	}
}

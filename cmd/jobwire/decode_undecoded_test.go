package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/pcap"
)

// captureOf writes a capture of packets.
func captureOf(t *testing.T, packets ...pcap.Packet) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pcap.NewPacketWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range packets {
		packets[i].Length = len(packets[i].Data)
		if err := w.Write(&packets[i]); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDecodeOfNothing runs each form of decode on captures of which jobwire can decode nothing. Each says why, and
// an audit does not pass.
func TestDecodeOfNothing(t *testing.T) {
	secured := pcap.Packet{Link: 1, Data: []byte(strings.Repeat("\x02", 12) + "\x88\xe5" + strings.Repeat("x", 40))}
	broken := pcap.Packet{Link: 1, Data: []byte(strings.Repeat("\x02", 12) + "\x08\x00" + "\x45")}
	radio := pcap.Packet{Link: 127, Data: make([]byte, 40)}
	arp := pcap.Packet{Link: 1, Data: []byte(strings.Repeat("\x02", 12) + "\x08\x06" + strings.Repeat("x", 28))}
	const noEther = "1 packet not decoded: jobwire does not read EtherType 0x88e5 (MACsec)\n"
	const noLink = "2 packets not decoded: jobwire does not read link type 127 (IEEE802_11_RADIOTAP)\n"
	captures := map[string]string{
		captureOf(t, secured, radio, radio):  noEther + noLink,
		captureOf(t, broken, broken, broken): "3 packets not decoded: damaged headers\n",
		captureOf(t, arp):                    "",
		captureOf(t):                         "",
	}
	for file, want := range captures {
		want = strings.ReplaceAll("\n"+want, "\n", "\njobwire: "+file+": ")
		want = strings.TrimSuffix(strings.TrimPrefix(want, "\n"), "jobwire: "+file+": ")
		for _, c := range []struct {
			args   string
			status int
		}{
			{"decode", cli.StatusOK}, {"decode --format json", cli.StatusOK}, {"decode --annotate", cli.StatusOK}, {"decode --job H:lap:1",
				cli.StatusFailed}, {"decode --audit", cli.StatusUsage},
			{"decode --audit --format json", cli.StatusUsage}, {"decode summary", cli.StatusOK}, {"decode summary --format json",
				cli.StatusOK}, {"decode jobs", cli.StatusOK},
			{"decode jobs --format json", cli.StatusOK}, {"decode packets -o " + filepath.Join(t.TempDir(), "x"), cli.StatusOK},
			{"decode packets --audit -o " + filepath.Join(t.TempDir(), "x"), cli.StatusUsage},
			{"decode transcripts -o " + t.TempDir(), cli.StatusFailed},
		} {
			var out, stderr bytes.Buffer
			status := run(t.Context(), append(strings.Fields(c.args), file), nil, &out, &stderr)
			if status != c.status || !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("%s: status %d, want %d; standard error\n%swant\n%s", c.args, status, c.status, stderr.String(), want)
			}
			json := strings.Contains(out.String(), `"not_understood"`) && strings.Contains(out.String(),
				"EtherType 0x88e5 (MACsec)")
			if json != (strings.Contains(c.args, "json") && strings.Contains(want, "MACsec")) {
				t.Errorf("%s: %s", c.args, out.String())
			}
		}
	}
}

// TestDecodeAuditNeedsMessages runs decode --audit on captures with and without messages that it can check.
func TestDecodeAuditNeedsMessages(t *testing.T) {
	for _, c := range []struct {
		name, sent, args string
		status           int
	}{
		{"a message", "use a\r\n", "", cli.StatusOK},
		{"a message that is not selected", "use a\r\n", "--filter type=put", cli.StatusOK},
		{"a violation", "use \r\n", "", cli.StatusFailed},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n", "", cli.StatusUsage},
		{"TLS", "\x16\x03\x01\x00\xfa\x01\x00\x00\xf6", "", cli.StatusUsage},
		{"other ports", "use a\r\n", "--port 1", cli.StatusUsage},
	} {
		var b bytes.Buffer
		w, err := pcap.NewWriter(&b, 11300)
		if err == nil {
			err = errors.Join(w.Write(pcap.Event{From: codec.Peer, Data: []byte(c.sent)}), w.Close())
		}
		name := filepath.Join(t.TempDir(), "x.pcapng")
		if err != nil || os.WriteFile(name, b.Bytes(), 0o600) != nil {
			t.Fatal(err)
		}
		var out, stderr bytes.Buffer
		if status := run(t.Context(), append([]string{"decode", "--audit", name}, strings.Fields(c.args)...), nil, &out,
			&stderr); status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, status, c.status, stderr.String())
		}
	}
}

// conversationOf writes a capture of one connection. A line that begins with "<" is sent by the server.
func conversationOf(t *testing.T, port int, messages ...string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pcap.NewWriter(&b, port)
	for _, m := range messages {
		from := codec.Peer
		if strings.HasPrefix(m, "<") {
			from, m = codec.Server, m[1:]
		}
		err = errors.Join(err, w.Write(pcap.Event{From: from, Data: []byte(m)}))
	}
	name := filepath.Join(t.TempDir(), "x.pcapng")
	if err = errors.Join(err, w.Close()); err != nil || os.WriteFile(name, b.Bytes(), 0o600) != nil {
		t.Fatal(err)
	}
	return name
}

// wrongConversations have violations of the format of messages and violations that only earlier messages show.
var wrongConversations = []struct {
	port       int
	violations int
	messages   []string
}{
	{4730, 0, []string{"\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x", "<\x00RES\x00\x00\x00\x11\x00\x00\x00\x01x"}},
	{4730, 1, []string{"\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x", "<\x00RES\x00\x00\x00\x11\x00\x00\x00\x01y"}},
	{4730, 2, []string{"\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x", "<\x00RES\x00\x00\x00\x11\x00\x00\x00\x01y",
		"\x00REQ\x00\x00\x03\xe7\x00\x00\x00\x00"}},
	{11300, 1, []string{"use a\r\n", "<USING b\r\n"}},
	{11300, 2, []string{"use a\r\n", "<USING b\r\n", "put 1 0 x 1\r\n"}},
	{11300, 1, []string{"put 1 0 60 1\r\na\r\n", "<INSERTED 7\r\n", "reserve\r\n", "<RESERVED 7 1\r\nb\r\n"}},
}

// TestDecodeCountsViolationsAlike compares the violations that summary counts with those that --audit lists.
func TestDecodeCountsViolationsAlike(t *testing.T) {
	for _, c := range wrongConversations {
		file := conversationOf(t, c.port, c.messages...)
		r := summaryOf(t, file)
		var out, stderr bytes.Buffer
		run(t.Context(), []string{"decode", "--audit", "--format", "json", file}, nil, &out, &stderr)
		listed := strings.Count(out.String(), `"kind":"violation"`)
		counted, messages := 0, 0
		for rule, n := range r.Rules {
			counted += n
			if strings.Count(out.String(), string(rule)) != n {
				t.Errorf("%q: rule %s is counted %d times, in\n%s", c.messages, rule, n, out.String())
			}
		}
		for _, d := range r.Messages {
			for _, counts := range []map[string]int{d.ToServer, d.ToClient} {
				for _, n := range counts {
					messages += n
				}
			}
		}
		if listed != c.violations || r.Violations != c.violations || counted != c.violations ||
			messages != len(c.messages) {
			t.Errorf("%q: --audit lists %d violations, summary counts %d of %d messages, want %d", c.messages, listed,
				r.Violations, messages, c.violations)
		}
	}
}

// TestDecodeJobShowsInvalidMessages checks that --job shows messages about the job that are malformed.
func TestDecodeJobShowsInvalidMessages(t *testing.T) {
	packet := func(magic string, code byte, data string) string {
		return "\x00" + magic + "\x00\x00\x00" + string(code) + "\x00\x00\x00" + string(rune(len(data))) + data
	}
	submit := []string{packet("REQ", 7, "f\x00\x00x"), "<" + packet("RES", 8, "H:a:1")}
	for _, c := range []struct {
		port int
		job  string
		bad  string
		show bool
	}{
		{4730, "H:a:1", "<" + packet("RES", 12, "H:a:1\x005"), true},
		// a WORK_STATUS without its last argument
		{4730, "H:a:1", "<" + packet("RES", 12, "H:a:1\x00x\x002"), true}, // the argument is not a number
		{4730, "H:a:1", "<" + packet("REQ", 13, "H:a:1\x00y"), true},      // the magic of the other direction
		{4730, "H:a:1", "<" + packet("RES", 99, "H:a:1\x00y"), true},      // an unknown type
		{4730, "H:a:1", "<" + packet("RES", 12, "H:a:12\x005"), false},    // another job
		{4730, "H:a:1", packet("REQ", 15, "H:a:1\x00more"), true},
		// GET_STATUS with one argument too many
		{11300, "7", "delete 7 7\r\n", true},                                          // one argument too many
		{11300, "7", "delete 07x\r\n", false},                                         // no job ID
		{11300, "7", "release 7 x 0\r\n", true},                                       // the priority is not a number
		{11300, "7", "put 7 7 x 7\r\n", false},                                        // about no job
		{11300, "7", "<RESERVED 7 x\r\n", true},                                       // no size
		{6379, "f:7", "*3\r\n$4\r\nHGET\r\n$7\r\njob:f:7\r\n$6\r\noutputx\r\n", true}, // a wrong end
	} {
		before := map[int][]string{4730: submit, 11300: {"put 1 0 60 1\r\na\r\n", "<INSERTED 7\r\n", "reserve\r\n"},
			6379: {"*2\r\n$4\r\nINCR\r\n$5\r\nuid:f\r\n", "<:7\r\n"}}[c.port]
		file := conversationOf(t, c.port, append(before, c.bad)...)
		var out, stderr bytes.Buffer
		run(t.Context(), []string{"decode", "--job", c.job, "--format", "json", file}, nil, &out, &stderr)
		if got := strings.Contains(out.String(), `"kind":"violation"`); got != c.show {
			t.Errorf("%q is shown: %v, want %v; %s%s", c.bad, got, c.show, out.String(), stderr.String())
		}
	}
}

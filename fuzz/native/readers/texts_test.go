package readers

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"jobwire/catalog"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/fuzz/native"
	"jobwire/internal/textfile"
	"jobwire/internal/transport"
	"jobwire/pcap/decrypt"
	"jobwire/refserver/inject"
)

// FuzzText checks that a text is the same, whether it is read as a whole or piece by piece, and that a login that is
// accepted is the same after it has been written again.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "secret\n", "user\r\nsecret\r\n", "\xef\xbb\xbfuser\nsecret", "\xff\xfes\x00", "\x00\x01", "\xe4\xb8",
		"a\nb\nc\n", "\x1b[1mbold\n",
	} {
		f.Add([]byte(s))
	}
	f.Add(bytes.Repeat([]byte("0123456789abcde\n"), 40))
	f.Fuzz(func(t *testing.T, src []byte) {
		var whole, parts []byte
		var err, stepErr error
		read := func() {
			whole, err = textfile.Text(src, "a text")
			parts, stepErr = io.ReadAll(textfile.NewReader(iotest.OneByteReader(bytes.NewReader(src)), "a text"))
		}
		if over := native.Bounded(len(src), 1<<20, 64, read); over != nil {
			t.Fatal(over)
		}
		if (err == nil) != (stepErr == nil) || err == nil && !bytes.Equal(whole, parts) {
			t.Fatalf("as a whole: %q, %v; piece by piece: %q, %v", whole, err, parts, stepErr)
		}
		c, err := transport.ParseCredentials(whole)
		if err != nil {
			return
		}
		again, err := transport.ParseCredentials([]byte(c.User + "\n" + c.Password + "\n"))
		if err != nil || again != c {
			t.Fatalf("login %q of %q, read again as %q of %q: %v", c.Password, c.User, again.Password, again.User, err)
		}
	})
}

// FuzzKeys checks that a key log contains secrets exactly if the lines about the sessions in it do, and that a log that
// grows is read as the whole log is.
func FuzzKeys(f *testing.F) {
	random, secret := strings.Repeat("0f", 32), strings.Repeat("a5", 48)
	for _, s := range []string{
		"# a comment\nCLIENT_RANDOM " + random + " " + secret + "\n",
		"CLIENT_HANDSHAKE_TRAFFIC_SECRET " + random + " " + secret + "\r\nSERVER_TRAFFIC_SECRET_0 " + random + " " + secret,
		"CLIENT_RANDOM " + random + "zz " + secret + "\n",
		"CLIENT_RANDOM " + random[:8] + " " + secret + "\nRSA 00 11\n\n",
		"\xef\xbb\xbfEXPORTER_SECRET\t" + random + "  " + secret + " \n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		var k *decrypt.Keys
		var err error
		read := func() { k, err = decrypt.NewKeys(bytes.NewReader(log)) }
		if over := native.Bounded(len(log), 1<<20, 1<<10, read); over != nil {
			t.Fatal(over)
		}
		if k == nil {
			t.Fatal("no keys")
		}
		text, textErr := textfile.Text(log, "a TLS key log")
		randoms := map[string]bool{}
		for line := range bytes.Lines(text) {
			if words := strings.Fields(string(line)); len(words) == 3 {
				if b, err := hex.DecodeString(words[1]); err == nil {
					randoms[string(b)] = true
				}
			}
		}
		selected := decrypt.Select(text, randoms)
		var whole, lines, added decrypt.Keys
		ignored := whole.Add(text)
		for line := range bytes.Lines(text) {
			ignored -= lines.Add(line)
		}
		added.Add(selected)
		switch {
		case textErr == nil && ignored != 0:
			t.Fatal("another number of lines is ignored if the log is read line by line")
		case textErr == nil && !whole.Empty() && err != nil:
			t.Fatalf("a log with secrets is refused: %v", err)
		case whole.Empty() != added.Empty():
			t.Fatalf("the selected lines are %q", selected)
		}
	})
}

// FuzzFaults checks that an error about a fault script quotes a line of the script, and that each line of an accepted
// script that does not refer to the line before it is accepted alone.
func FuzzFaults(f *testing.F) {
	for i, e := range catalog.All() {
		added := 0
		for _, src := range sources(f, "refserver/"+e.Protocol.Name+"/mutants/*.yaml") {
			for line := range strings.Lines(src) {
				if fault, ok := strings.CutPrefix(line, "  fault: "); ok && len(fault) > 2 && added < 60 {
					f.Add(byte(i), strings.Trim(fault, "'\n"))
					added++
				}
			}
		}
	}
	f.Add(byte(0), "note (closed) hung=yes when peer.heard == 1\ndrop ECHO_REQ\n"+
		"then give NOOP after 40ms if notes.hung == nil")
	f.Fuzz(func(t *testing.T, protocol byte, script string) {
		p := entryOf(protocol).Injector()
		var edit inject.Edit
		var err error
		if over := native.Bounded(len(script), 32<<20, 64<<10, func() { edit, err = p.ParseFaults(script) }); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fault \"") {
				t.Fatalf("%v: expected an error with the fault", err)
			}
			return
		}
		if edit == nil {
			t.Fatal("no edit")
		}
		for line := range strings.Lines(script) {
			if words := strings.Fields(line); len(words) > 0 && words[0] != "then" {
				if _, err := p.ParseFaults(line); err != nil {
					t.Fatalf("the script is accepted, but not its line %q: %v", line, err)
				}
			}
		}
	})
}

// FuzzLog checks that a log of the fuzzer that is accepted is the same after it has been written again.
func FuzzLog(f *testing.F) {
	for i, e := range catalog.All() {
		added := 0
		for _, src := range sources(f, "corpus/"+e.Protocol.Name+"/accept.wire") {
			scripts, err := transcript.Parse(e.Protocol, "accept.wire", []byte(src))
			if err != nil {
				f.Fatal(err)
			}
			log := &input.Log{Protocol: e.Protocol, Server: "a server", Seed: 7, Clock: 2}
			for _, s := range scripts {
				if in := input.FromScript(s); in != nil && added < 40 {
					log.Entries = append(log.Entries, input.Entry{Input: in, Events: "X closes"})
					if added++; added%4 == 0 {
						var b bytes.Buffer
						if err := log.Write(&b); err != nil {
							f.Fatal(err)
						}
						f.Add(byte(i), b.Bytes())
						log.Entries = nil
					}
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, protocol byte, src []byte) {
		p := entryOf(protocol).Protocol
		var log *input.Log
		var err error
		read := func() { log, err = input.ReadLog(p, bytes.NewReader(src)) }
		if over := native.Bounded(len(src), 1<<20, 1<<10, read); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := log.Write(&first); err != nil {
			t.Fatal(err)
		}
		again, err := input.ReadLog(p, bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v: %s", err, first.Bytes())
		}
		if err := again.Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%v, the log\n%sis read as\n%s", err, first.Bytes(), second.Bytes())
		}
	})
}

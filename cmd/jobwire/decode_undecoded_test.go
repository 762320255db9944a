package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestDecodeOfNothing runs each form of decode on captures of which jobwire can decode nothing. Each says why, and an audit
// does not pass.
func TestDecodeOfNothing(t *testing.T) {
	secured := pcap.Packet{Link: 1, Data: []byte(strings.Repeat("\x02", 12) + "\x88\xe5" + strings.Repeat("x", 40))}
	broken := pcap.Packet{Link: 1, Data: []byte(strings.Repeat("\x02", 12) + "\x08\x00" + "\x45")}
	radio := pcap.Packet{Link: 127, Data: make([]byte, 40)}
	arp := pcap.Packet{Link: 1, Data: []byte(strings.Repeat("\x02", 12) + "\x08\x06" + strings.Repeat("x", 28))}
	captures := map[string]string{
		captureOf(t, secured, radio, radio):  "1 packet not decoded: jobwire does not read EtherType 0x88e5 (MACsec)\n" + "2 packets not decoded: jobwire does not read link type 127 (IEEE802_11_RADIOTAP)\n",
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
			{"decode", exitOK}, {"decode --format json", exitOK}, {"decode --annotate", exitOK}, {"decode --job H:lap:1", exitFailed}, {"decode --audit", exitUsage},
			{"decode --audit --format json", exitUsage}, {"decode summary", exitOK}, {"decode summary --format json", exitOK}, {"decode jobs", exitOK},
			{"decode jobs --format json", exitOK}, {"decode packets -o " + filepath.Join(t.TempDir(), "x"), exitOK},
			{"decode packets --audit -o " + filepath.Join(t.TempDir(), "x"), exitUsage}, {"decode transcripts -o " + t.TempDir(), exitFailed},
		} {
			var out, stderr bytes.Buffer
			status := run(t.Context(), append(strings.Fields(c.args), file), nil, &out, &stderr)
			if status != c.status || !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("%s: status %d, want %d; standard error\n%swant\n%s", c.args, status, c.status, stderr.String(), want)
			}
			json := strings.Contains(out.String(), `"not_understood"`) && strings.Contains(out.String(), "EtherType 0x88e5 (MACsec)")
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
		{"a message", "use a\r\n", "", exitOK},
		{"a message that is not selected", "use a\r\n", "--filter type=put", exitOK},
		{"a violation", "use \r\n", "", exitFailed},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n", "", exitUsage},
		{"TLS", "\x16\x03\x01\x00\xfa\x01\x00\x00\xf6", "", exitUsage},
		{"other ports", "use a\r\n", "--port 1", exitUsage},
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
		if status := run(t.Context(), append([]string{"decode", "--audit", name}, strings.Fields(c.args)...), nil, &out, &stderr); status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, status, c.status, stderr.String())
		}
	}
}

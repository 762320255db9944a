package gearmonkey_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/internal/peers"
	"jobwire/pcap"
)

// TestTsharkReadsTheVectors compares a capture of the accepted example messages with the output of
// tshark, whose decoder of Redis messages shares no code with jobwire: bulk strings, integers,
// lines. It omits messages of RESP3 and inline commands, which tshark 4.0 does not support.
func TestTsharkReadsTheVectors(t *testing.T) {
	tshark := peers.Need(t, "tshark")
	src, err := corpus.FS.ReadFile("gearmonkey/accept.wire")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(gearmonkey.Protocol, "accept.wire", src)
	if err != nil {
		t.Fatal(err)
	}
	unknown := []string{"inline", "null", "double", "boolean", "big-number", "blob-error", "verbatim", "map", "push", "aggregate"}
	var file bytes.Buffer
	w, err := pcap.NewWriter(&file, gearmonkey.Protocol.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, s := range scripts {
		if slices.Contains(unknown, s.Value("case")) {
			continue
		}
		sess := gearmonkey.Protocol.NewSession(codec.Options{})
		for _, st := range s.Steps {
			raw := st.Choices[0].Bytes
			var f codec.Frame
			if _, err := sess.Decode(st.From, raw, &f); err != nil {
				t.Fatal(err)
			}
			if err := w.Write(pcap.Event{Conn: i, From: st.From, Kind: pcap.Data, Data: raw}); err != nil {
				t.Fatal(err)
			}
			want = append(want, parts(&f))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	capture := filepath.Join(t.TempDir(), "accept.pcap")
	if err := os.WriteFile(capture, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tshark, "-r", capture, "-d", "tcp.port==6379,resp", "-Y", "resp", "-T", "fields",
		"-e", "resp.bulk_string.value", "-e", "resp.integer", "-e", "resp.string", "-e", "resp.error").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("message %d: tshark reads %q, want %q", i, got[i], want[i])
			}
		}
		t.Errorf("tshark reads %d messages, want %d", len(got), len(want))
	}
}

// parts formats the values of a frame as tshark does.
func parts(f *codec.Frame) string {
	var bulks, integers, lines, errors []string
	for i, s := range f.Spans {
		row := f.SpanBytes(i)
		switch {
		case s.Field.Name == "Size":
			if n, _ := codec.ParseNumber(f.Value(i)); n > 0 { // tshark prints nothing for an empty one
				bulks = append(bulks, hex.EncodeToString(f.Raw[s.Next:s.Next+int(n)]))
			}
		case row[0] == ':' && s.Field.Prefix == ":", f.Type.Word == ":" && i == 1:
			integers = append(integers, string(f.Value(i)))
		case f.Type.Word == "+" && i == 1:
			lines = append(lines, string(f.Value(i)))
		case f.Type.Word == "-" && i == 1:
			errors = append(errors, strings.TrimSuffix(string(f.Raw[1:]), "\r\n"))
		}
	}
	return strings.Join([]string{strings.Join(bulks, ","), strings.Join(integers, ","), strings.Join(lines, ","), strings.Join(errors, ",")}, "\t")
}

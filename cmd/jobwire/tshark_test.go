package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/internal/peers"
)

// TestTsharkReadsWhatEncodeWrites decodes a capture of the accept vectors with
// tshark, which shares no code with jobwire, and compares types, magic, functions
// and handles.
func TestTsharkReadsWhatEncodeWrites(t *testing.T) {
	t.Parallel()
	tshark := peers.Need(t, "tshark")
	vectors := filepath.Join(corpusDir(t), "gearman", "accept.wire")
	capture := filepath.Join(t.TempDir(), "accept.pcap")
	var complaints bytes.Buffer
	if status := run(t.Context(), []string{"encode", vectors, "--pcap", capture}, nil, io.Discard, &complaints); status != cli.StatusOK {
		t.Fatalf("exit status %d: %s", status, complaints.String())
	}

	out, err := exec.CommandContext(t.Context(), tshark, "-r", capture, "-d", "tcp.port==4730,gearman", "-Y", "gearman.pkt_type", "-T", "fields",
		"-e", "gearman.magic_code", "-e", "gearman.pkt_type", "-e", "gearman.func.name", "-e", "gearman.job.handle").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimRight(string(out), "\n"), "\n")

	src, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(gearman.Protocol, vectors, src)
	if err != nil {
		t.Fatal(err)
	}
	// tshark 4.0 decodes these types differently: it reads no arguments of a
	// GET_STATUS, and shows the unique ID of a STATUS_RES_UNIQUE as a handle.
	handles := map[uint32]func(handle, unique string) string{
		15: func(string, string) string { return "" },
		42: func(_, unique string) string { return unique },
	}
	var want []string
	for _, s := range scripts {
		for _, st := range s.Steps {
			c := st.Choices[0]
			if c.Type.Code == 0 {
				continue // a text command
			}
			arg := func(label string) string {
				for i := range c.Args {
					if c.Type.FieldAt(i).Name == label {
						return string(c.Args[i].Value)
					}
				}
				return ""
			}
			handle := arg("Job handle")
			if known := handles[c.Type.Code]; known != nil {
				handle = known(handle, arg("Unique ID"))
			}
			magic := [2]string{"REQ", "RES"}[st.From]
			want = append(want, fmt.Sprintf("%s\t%d\t%s\t%s", magic, c.Type.Code, arg("Function"), handle))
		}
	}
	if len(want) != len(got) {
		t.Fatalf("tshark sees %d packets, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("packet %d: tshark reads %q, want %q", i, got[i], want[i])
		}
	}
}

// TestTsharkShowsWhatEncodeComments checks that the first packet of each message names the line and the message.
func TestTsharkShowsWhatEncodeComments(t *testing.T) {
	t.Parallel()
	tshark := peers.Need(t, "tshark")
	dir := t.TempDir()
	wire, capture := filepath.Join(dir, "talk.wire"), filepath.Join(dir, "talk.pcapng")
	text := "@protocol gearman\n\nClient -> Job Server: ECHO_REQ hi\nJob Server -> Client: ECHO_RES hi\n"
	if err := os.WriteFile(wire, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	if status := run(t.Context(), []string{"encode", wire, "--pcap", capture}, nil, io.Discard, &complaints); status != cli.StatusOK {
		t.Fatalf("exit status %d: %s", status, complaints.String())
	}
	out, err := exec.CommandContext(t.Context(), tshark, "-r", capture, "-Y", "frame.comment", "-T", "fields", "-e", "frame.number", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("4\t%[1]s:3: Client -> Job Server: ECHO_REQ\n6\t%[1]s:4: Job Server -> Client: ECHO_RES\n", wire)
	if string(out) != want {
		t.Errorf("tshark shows\n%swant\n%s", out, want)
	}
}

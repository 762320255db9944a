package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"jobwire/internal/schemacheck"
)

// TestJSONMatchesSchemas checks the JSON output of commands against the schemas in docs/schema.
// TestConformJSONMatchesSchema and the tests of loadgen do this for conform and bench.
func TestJSONMatchesSchemas(t *testing.T) {
	t.Parallel()
	example := filepath.Join(corpusDir(t), "gearman", "example.wire")
	dir := t.TempDir()
	capture, wrong := filepath.Join(dir, "example.pcapng"), filepath.Join(dir, "wrong.pcapng")
	encode := func(capture, script string) {
		cmd := exec.CommandContext(t.Context(), "jobwire", "encode", "-", "--pcap", capture)
		cmd.Stdin = bytes.NewBufferString(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), "jobwire", "corpus", "gearman", "example").Output()
	if err != nil {
		t.Fatal(err)
	}
	encode(capture, string(out))
	middle, gap := filepath.Join(dir, "middle.pcapng"), filepath.Join(dir, "gap.pcapng")
	withoutPackets(t, capture, middle, 0, 5)
	withoutPackets(t, capture, gap, 9, 10)
	encode(wrong, `Client -> Job Server: ECHO_REQ a
Job Server -> Client: ECHO_RES a
Client -> Job Server: raw 00 "REQ" 00 00 00 6f 00 00 00 00
Client -> Job Server: raw 00 "REQ" 00 00 00
Client -> Job Server: closes
`)

	for _, run := range []struct {
		name, schema string
		lines        bool // one object per line
		status       int
		args         []string
	}{
		{"messages", "decode", true, 0, []string{"decode", capture, "--format", "json"}},
		{"violations", "decode", true, 0, []string{"decode", wrong, "--format", "json"}},
		{"middle of a connection", "decode", true, 0, []string{"decode", middle, "--format", "json"}},
		{"gap", "decode", true, 0, []string{"decode", gap, "--format", "json"}},
		{"summary", "decode", false, 0, []string{"decode", "summary", wrong, "--format", "json"}},
		{"jobs", "decode", false, 0, []string{"decode", "jobs", capture, "--format", "json"}},
		{"audit", "audit", false, 0, []string{"audit", "gearman", "--format", "json", "--program", "jobwire play " + example + " --quiet --addr {addr}"}},
		{"audit violation", "audit", false, 1, []string{"audit", "gearman", "--format", "json", "--program", "jobwire play " + example + " --quiet --addr {addr}",
			"--exec", "jobwire serve gearman --listen 127.0.0.1:{port} --fault 'alter WORK_COMPLETE job_handle=other'"}},
		{"stress", "audit", false, 0, []string{"audit", "stress", "gearman", "plain", "--format", "json"}},
		{"stress failure", "audit", false, 1, []string{"audit", "stress", "gearman", "plain", "--format", "json", "--program", "Worker=sh -c 'read task; echo wrong' {addr}"}},
		{"finding", "fuzz", true, 1, []string{"fuzz", "gearman", "--format", "json", "--findings", dir, "--stop-on-failure", "--parallel", "1", "--minimize", "5s",
			"--exec", "jobwire serve gearman --listen 127.0.0.1:{port} --fault 'alter JOB_CREATED job_handle='"}},
		{"fuzz self-test", "fuzz", true, 0, []string{"fuzz", "self-test", "beanstalk", "--run", "default-not-ignored", "--format", "json"}},
		{"rules", "rules", false, 0, []string{"rules", "gearman", "--format", "json"}},
		{"cases", "rules", false, 0, []string{"conform", "cases", "gearman", "--format", "json", "--run", "case:gearman.[a-g]*", "--run", "case:gearman.resource.background-jobs"}},
		{"cases with programs", "rules", false, 0, []string{"conform", "cases", "gearmonkey", "--role", "Worker", "--format", "json"}},
		{"version", "rules", false, 0, []string{"version", "--format", "json"}},
	} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			var text, log bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "jobwire", run.args...)
			cmd.Stdout, cmd.Stderr = &text, &log
			err := cmd.Run()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if status := cmd.ProcessState.ExitCode(); status != run.status || text.Len() == 0 {
				t.Fatalf("exit status %d, want %d; %d bytes of output\n%s", status, run.status, text.Len(), log.Bytes())
			}
			file := "../../docs/schema/" + run.schema + ".json"
			if !run.lines {
				schemacheck.Check(t, file, text.Bytes())
				return
			}
			for line := range bytes.Lines(text.Bytes()) {
				schemacheck.Check(t, file, line)
			}
		})
	}
}

// withoutPackets copies a pcapng file without the packets from number i up to, and without, number j.
func withoutPackets(t *testing.T, from, to string, i, j int) {
	t.Helper()
	in, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	const enhancedPacket = 6
	var out []byte
	for n := 0; len(in) > 0; {
		size := binary.LittleEndian.Uint32(in[4:])
		packet := binary.LittleEndian.Uint32(in) == enhancedPacket
		if !packet || n < i || n >= j {
			out = append(out, in[:size]...)
		}
		if packet {
			n++
		}
		in = in[size:]
	}
	if err := os.WriteFile(to, out, 0o666); err != nil {
		t.Fatal(err)
	}
}

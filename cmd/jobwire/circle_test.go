package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
)

// TestCaptureConvertsToEveryFormatAndBack converts a capture to a transcript, a case, a vector of the corpus, a seed of the fuzzer, a finding, and to
// a case again. Each step is a command.
func TestCaptureConvertsToEveryFormatAndBack(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	jobwire, dir := jobwireItself(t), t.TempDir()
	step := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), jobwire, args...)
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var ended *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Fatalf("jobwire %q: exit status %d, want %d\n%s%s", args, got, want, stdout.String(), stderr.String())
		}
		return stdout.String()
	}
	shows := func(output, part string) {
		t.Helper()
		if !strings.Contains(output, part) {
			t.Errorf("%q is not in\n%s", part, output)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(filepath.Join(dir, "corpus"), os.DirFS(corpusDir(t))))
	must(os.Mkdir(filepath.Join(dir, "cases"), 0o777))
	faulty := jobwire + " serve gearman --listen 127.0.0.1:{port} --fault 'drop NOOP'"

	step(cli.StatusOK, "encode", "corpus/gearman/example.wire", "--pcap", "capture.pcap")

	// Capture to transcript.
	shows(step(cli.StatusOK, "decode", "transcripts", "capture.pcap", "-o", "talks"), "talks/gearman-1.wire: 2 connections")

	// Transcript to case: the case passes, and fails with a server that does not wake a worker.
	woken := step(cli.StatusOK, "play", "case", "woken", "talks/gearman-1.wire")
	shows(woken, "gearman.grab.no-job")
	must(os.WriteFile(filepath.Join(dir, "cases/woken.wire"), []byte(woken), 0o666))
	shows(step(cli.StatusOK, "conform", "gearman", "--cases", "cases"), "1 passed")
	shows(step(cli.StatusFailed, "conform", "gearman", "--cases", "cases", "--timeout", "1s", "--exec", faulty), "Job Server -> Worker: NOOP\n")
	shows(step(cli.StatusFailed, "play", "case", "woken", "talks/gearman-1.wire", "--timeout", "1s", "--exec", faulty), "NOOP")

	// Case to corpus.
	shows(step(cli.StatusOK, "corpus", "add", "cases/woken.wire", "--conversation", "woken"), "accept.wire")

	// Corpus to seed to finding.
	shows(step(cli.StatusFailed, "fuzz", "gearman", "--exec", faulty, "--seed-file", "corpus/gearman/woken.wire",
		"--seed", "1", "--stop-on-failure", "--timeout", "1s", "--minimize", "5s"), "expected NOOP, got no message")
	found, err := filepath.Glob(filepath.Join(dir, "findings/gearman-*.wire"))
	must(err)
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}

	// Finding to case, with every command that plays a transcript.
	for _, again := range [][]string{
		{"conform", "gearman", "--cases", "findings", "--segments", "plain", "--timeout", "1s"},
		{"play", found[0], "--timeout", "1s"},
	} {
		step(cli.StatusOK, again...)
		step(cli.StatusFailed, append(again, "--exec", faulty)...)
	}
	step(cli.StatusOK, "encode", found[0], "--pcap", "again.pcap")
	step(cli.StatusOK, "decode", "summary", "again.pcap")
	step(cli.StatusOK, "corpus", "add", found[0])
	capture := strings.TrimSuffix(found[0], ".wire") + ".pcapng"
	step(cli.StatusOK, "decode", "summary", capture)
	if b, err := os.ReadFile(capture); err != nil || !bytes.Contains(b, []byte("Finding: ")) {
		t.Errorf("the capture has no comment about the finding: %v", err)
	}
}

// TestPlayCaseRefuses checks that play case writes no case if the command line is invalid, if the replies differ from
// the transcript, or if no rule applies to the replies.
func TestPlayCaseRefuses(t *testing.T) {
	tests := []struct {
		name, wire, says string
		status           int
		args             []string
	}{
		{"no name", "Client -> Job Server: ECHO_REQ a\nJob Server -> Client: ECHO_RES a\n", "case", cli.StatusUsage, []string{"a b", "-"}},
		{"several", "@case a\nClient -> Job Server: ECHO_REQ a\n@case b\nClient -> Job Server: ECHO_REQ a\n", "one transcript", cli.StatusUsage, []string{"a", "-"}},
		{"silence", "Client -> Job Server: closes\n", "no", cli.StatusFailed, []string{"a", "-"}},
		{"another answer", "Client -> Job Server: ECHO_REQ a\nJob Server -> Client: ECHO_RES b\n", "ECHO_RES", cli.StatusFailed, []string{"a", "-"}},
		{"with --annotate", "Client -> Job Server: ECHO_REQ a\n", "annotate", cli.StatusUsage, []string{"a", "-", "--annotate"}},
		{"no transcript", "", "one transcript", cli.StatusUsage, []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), append([]string{"play", "case"}, tt.args...), strings.NewReader(tt.wire), &stdout, &stderr)
			if status != tt.status || !strings.Contains(stdout.String()+stderr.String(), tt.says) {
				t.Errorf("exit status %d, want %d with %q\n%s%s", status, tt.status, tt.says, stdout.String(), stderr.String())
			}
			if strings.Contains(stdout.String(), "@case") {
				t.Errorf("a case was written: %s", stdout.String())
			}
		})
	}
}

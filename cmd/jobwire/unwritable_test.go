package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/transport"
)

// refusing refuses all writes.
type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

// inputs are files that commands read, by the word that stands for their name in a command line.
func inputs(t *testing.T) *strings.Replacer {
	t.Helper()
	dir := t.TempDir()
	capture, result := filepath.Join(dir, "a.pcapng"), filepath.Join(dir, "a.json")
	for _, args := range [][]string{
		{"encode", "../../corpus/gearman/example.wire", "--pcap", capture},
		{"conform", "gearman", "--run", "gearman.echo.order", "--format", "json"},
	} {
		var out, complaints bytes.Buffer
		if status := run(t.Context(), args, nil, &out, &complaints); status != cli.StatusOK {
			t.Fatalf("%q: status %d: %s", args, status, &complaints)
		}
		if args[0] == "conform" {
			if err := os.WriteFile(result, out.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.NewReplacer("TRANSCRIPT", "../../corpus/gearman/example.wire", "CAPTURE", capture, "CASES", result,
		"RESULT", "../../loadgen/format/testdata/passed.json", "SHARE", "../../fuzz/native/readers/testdata/share.json", "DIR", dir)
}

// TestClosedOutput runs each command that prints with a standard output that takes nothing: a pipe whose reader has
// closed it, or a file on a full disk. Each has status 1 and ends with one line about it.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	names := inputs(t)
	check := func(t *testing.T, args []string, err error) {
		var complaints bytes.Buffer
		status := run(t.Context(), args, strings.NewReader(""), refusing{err}, &complaints)
		want := fmt.Sprintf("jobwire: cannot write: %v\n", err)
		text := complaints.String()
		if status != cli.StatusFailed || !strings.HasSuffix(text, want) || strings.Count(text, err.Error()) != 1 {
			t.Errorf("expected status 1 and one line %q, got %d: %s", want, status, &complaints)
		}
	}
	for name, err := range map[string]error{"closed": syscall.EPIPE, "full": syscall.ENOSPC} {
		for _, command := range []string{
			"--help", "--version", "help conform", "version", "completion bash",
			"export wireshark gearman", "rules gearman", "corpus gearman",
			"audit gearman --listen 127.0.0.1:0 --duration 1ms",
			"bench report RESULT", "bench report RESULT --format html", "bench compare RESULT RESULT", "bench merge SHARE",
			"bench scenarios gearman",
			"conform cases gearman --run gearman.echo.*", "conform matrix CASES",
			"decode CAPTURE", "decode CAPTURE --format json", "decode summary CAPTURE", "decode jobs CAPTURE",
			"decode packets CAPTURE",
			"encode TRANSCRIPT", "encode TRANSCRIPT --pcap -", "play case a TRANSCRIPT",
		} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				check(t, strings.Fields(names.Replace(command)), err)
			})
		}
		for _, command := range []string{
			"audit stress gearman plain",
			"bench run gearman --count 20 -q", "bench search gearman --slo p99<1s --duration 10ms --max-in-flight 16 -q",
			"conform gearman --run gearman.echo.order", "conform gearman --run gearman.echo.order --format json",
			"fuzz gearman --count 20 --parallel 1 --findings DIR/findings",
			"play TRANSCRIPT",
		} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && strings.HasPrefix(command, "bench search") {
					t.Skip("takes seconds of processor time")
				}
				gearmanInMemory(t, func(t *testing.T, addr string) {
					check(t, append(strings.Fields(names.Replace(command)), "--addr", addr), err)
				})
			})
		}
	}
}

// TestFullDisk runs each command that writes a file on a full disk: each has status 1, names the file and the reason in
// one line, and does not say that it has saved the file.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	names := inputs(t)
	check := func(t *testing.T, args []string) {
		var out, complaints bytes.Buffer
		status := run(t.Context(), args, nil, &out, &complaints)
		why := 0
		for line := range strings.Lines(complaints.String()) {
			if strings.HasPrefix(line, "jobwire: ") && strings.Contains(line, full+": no space left on device") {
				why++
			}
		}
		if status != cli.StatusFailed || why != 1 || strings.Contains(out.String()+complaints.String(), "saved in "+full) {
			t.Errorf("expected status 1 and one line about %s, got %d: %s%s", full, status, &out, &complaints)
		}
	}
	for _, command := range []string{
		"audit gearman --listen 127.0.0.1:0 --duration 1ms --pcap",
		"bench report RESULT --html", "bench compare RESULT RESULT --output", "bench compare RESULT RESULT --html",
		"bench merge SHARE --output", "bench merge SHARE --hlog", "bench merge SHARE --html",
		"conform matrix CASES --output",
		"decode summary CAPTURE --html", "decode packets CAPTURE --output",
		"encode TRANSCRIPT --output", "encode TRANSCRIPT --pcap",
		"export wireshark gearman --output",

		"conform gearman --addr 127.0.0.1:1 --tls --tls-keylog", "play TRANSCRIPT --addr 127.0.0.1:1 --tls --tls-keylog",
		"bench run gearman --addr 127.0.0.1:1 --tls --tls-keylog", "fuzz gearman --addr 127.0.0.1:1 --tls --tls-keylog",
		"bench search gearman --slo p99<1s --addr 127.0.0.1:1 --tls --tls-keylog",
		"audit stress gearman plain --addr 127.0.0.1:1 --tls --tls-keylog",
		"audit gearman --listen 127.0.0.1:0 --addr 127.0.0.1:1 --tls --tls-keylog",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			check(t, append(strings.Fields(names.Replace(command)), full))
		})
	}
	for _, command := range []string{
		"bench run gearman --count 20 -q --output", "bench run gearman --count 20 -q --html",
		"bench run gearman --count 20 -q --hlog",
		"conform gearman --run gearman.echo.order --html",
		"fuzz gearman --count 20 --parallel 1 --findings DIR/findings --html",
		"play TRANSCRIPT --pcap",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			gearmanInMemory(t, func(t *testing.T, addr string) {
				check(t, append(strings.Fields(names.Replace(command)), full, "--addr", addr))
			})
		})
	}
}

// gearmanInMemory calls test in virtual time with the address of a Gearman server in memory.
func gearmanInMemory(t *testing.T, test func(t *testing.T, addr string)) {
	synctest.Test(t, func(t *testing.T) {
		ln, err := transport.Listen(transport.Memory, nil)
		if err != nil {
			t.Fatal(err)
		}
		gearman, err := catalog.Named("gearman")
		if err != nil {
			t.Fatal(err)
		}
		serveOn(t, gearman, ln, "")
		test(t, transport.Name(ln))
	})
}

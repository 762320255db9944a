package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/schemacheck"
	"jobwire/internal/target"
	"jobwire/refserver"
	gearmanserver "jobwire/refserver/gearman"
)

// TestConformJSONMatchesSchema checks the JSON of real runs against the published schema.
func TestConformJSONMatchesSchema(t *testing.T) {
	t.Parallel()
	suite := func(flags ...string) []string { return append([]string{"gearman", "--segments", "plain"}, flags...) }
	for name, run := range map[string]struct {
		status int
		args   []string
	}{
		"passing":     {0, suite("--run", "gearman.echo.*")},
		"failing":     {1, suite("--run", "gearman.echo.*", "--exec", `jobwire serve gearman --listen 127.0.0.1:{port} --fault "alter ECHO_RES data=x"`)},
		"crashing":    {3, suite("--run", "gearman.echo.client", "--exec", `sh -c 'timeout -s ABRT 0.2 jobwire serve gearman --listen 127.0.0.1:{port} --fault "drop ECHO_RES"'`)},
		"unreachable": {3, suite("--run", "gearman.echo.client", "--addr", "127.0.0.1:1")},
		"profiles":    {0, suite("--run", "gearman.echo.client", "--profile", "embedded", "--profile", "embedded")},
		"self-test":   {0, []string{"self-test", "gearman", "--run", "gearman.echo.bodies"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "jobwire", append([]string{"conform", "--format", "json"}, run.args...)...)
			out, err := cmd.Output()
			var e *exec.ExitError
			if err != nil && !errors.As(err, &e) {
				t.Fatal(err)
			}
			if status := cmd.ProcessState.ExitCode(); status != run.status {
				t.Errorf("exit status %d, want %d", status, run.status)
			}
			schemacheck.Check(t, "../../docs/schema/conform.json", out)
		})
	}
}

// TestInterruptedConform interrupts runs: each format of the report must say that the run was interrupted and how many
// cases did not run, and the exit status must be 1.
func TestInterruptedConform(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"text":  `the run was interrupted after \d+ of \d+ cases: [1-9]\d* did not run\n`,
		"json":  `(?s)"interrupted": true,.*"not run": [1-9]`,
		"junit": `<error type="interrupted" message="the run was interrupted after \d+ of \d+ cases: [1-9]\d* did not run">`,
		"tap":   `Bail out! the run was interrupted after \d+ of \d+ cases: [1-9]\d* did not run\n`,
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			page := t.TempDir() + "/page.html"
			sent := make(chan struct{}) // closed at the 30th message
			var n atomic.Int32
			server, err := target.Func(t.Context(), "server", func(ctx context.Context, ln net.Listener) error {
				return refserver.New(gearmanserver.New(gearmanserver.Options{}), refserver.Options{Protocol: gearman.Protocol,
					Intercept: func(*refserver.Conn, codec.Side, *codec.Frame) refserver.Verdict {
						if n.Add(1) == 30 {
							close(sent)
						}
						return refserver.Verdict{}
					}}).Serve(ctx, ln)
			})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Stop()
			cmd := exec.CommandContext(t.Context(), "jobwire", "conform", "gearman", "--addr", server.Addr(), "--parallel", "1", "--format", format, "--html", page)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-sent
			cmd.Process.Signal(os.Interrupt)
			cmd.Process.Signal(syscall.SIGTERM) // a second signal does not lose the report
			cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			if !regexp.MustCompile(want).Match(out.Bytes()) {
				t.Errorf("no %s in:\n%.2000s", want, &out)
			}
			html, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`the run was interrupted after \d+ of \d+ cases: [1-9]\d* did not run`).Match(html) {
				t.Error("the page does not say that the run was interrupted")
			}
			if format == "json" {
				schemacheck.Check(t, "../../docs/schema/conform.json", out.Bytes())
			}
		})
	}
}

// TestInterruptedReport interrupts conform twice while it writes its reports after the last case: they are complete,
// and do not say that the run was interrupted.
func TestInterruptedReport(t *testing.T) {
	t.Parallel()
	page := t.TempDir() + "/page.html"
	cmd := exec.CommandContext(t.Context(), "jobwire", "conform", "gearman",
		"--run", "gearman.echo.*", "--run", "gearman.args.*", "--segments", "plain", "--format", "json", "--html", page)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		part := make([]byte, 20_000) // the rest does not fit into the pipe
		if _, err := io.ReadFull(stdout, part); err != nil {
			t.Fatal(err)
		}
		out = append(out, part...)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, rest...)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 110_000 || bytes.Contains(out, []byte("was interrupted")) ||
		!bytes.Contains(out, []byte(`"interrupted": false`)) {
		t.Errorf("%d bytes that end with %.100q", len(out), out[max(0, len(out)-100):])
	}
	if !bytes.HasSuffix(bytes.TrimSpace(html), []byte("</html>")) || bytes.Contains(html, []byte("was interrupted")) {
		t.Errorf("the page ends with %.100q", html[max(0, len(html)-100):])
	}
	schemacheck.Check(t, "../../docs/schema/conform.json", out)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"sync/atomic"
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

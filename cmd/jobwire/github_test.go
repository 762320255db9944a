package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestGitHubAnnotations tests that commands write failures as annotations for GitHub Actions, and end with a summary.
func TestGitHubAnnotations(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`^::(error|warning|notice) title=[^:,\n]+::\S[^\n]*$`)
	dir := t.TempDir()
	for _, run := range []struct {
		name  string
		args  []string
		error string // part of the first annotation; "": there is only the summary
		last  string // part of the summary
	}{
		{"passed", []string{"conform", "gearman", "--run", "case:gearman.echo.client"}, "",
			"title=jobwire conform::the built-in gearman server: 1 case, 1 passed"},
		{"conform", []string{"conform", "gearman", "--run", "case:gearman.echo.client",
			"--exec", "jobwire serve gearman --listen 127.0.0.1:{port} --fault 'alter ECHO_RES data=x'"},
			"gearman.echo.client: byte 12, Data: expected test, got x", "1 case, 1 failed"},
		{"audit stress", []string{"audit", "stress", "gearman", "plain", "--program", "Worker=sh -c 'read task; echo wrong' {addr}"},
			"Worker%2C fault profile plain%3A", "1 of 1 fault profiles and roles failed"},
		{"audit", []string{"audit", "gearman", "--program", "jobwire play " + corpusDir(t) + "/gearman/example.wire --quiet --addr {addr}",
			"--exec", "jobwire serve gearman --listen 127.0.0.1:{port} --fault 'alter WORK_COMPLETE job_handle=other'"},
			"gearman.submit.created-first (DE-FACTO)", "violations: 1; connections: 2"},
		{"fuzz", []string{"fuzz", "gearman", "--findings", dir, "--stop-on-failure", "--parallel", "1", "--minimize", "1s",
			"--exec", "jobwire serve gearman --listen 127.0.0.1:{port} --fault 'alter JOB_CREATED job_handle='"},
			"gearman.handle.not-empty", "findings: "},
	} {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "jobwire", append(run.args, "--format", "github")...).Output()
			if failed := run.error != ""; (err != nil) != failed {
				t.Errorf("exit status: %v", err)
			}
			lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			for _, line := range lines {
				if !command.MatchString(line) {
					t.Errorf("not a workflow command: %q", line)
				}
			}
			if run.error == "" && len(lines) > 1 || !strings.Contains(lines[0], run.error) ||
				run.error != "" && !strings.HasPrefix(lines[0], "::error ") {
				t.Errorf("expected an error with %q, got\n%s", run.error, out)
			}
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "::notice ") || !strings.Contains(last, run.last) {
				t.Errorf("expected a summary with %q, got\n%s", run.last, last)
			}
		})
	}
}

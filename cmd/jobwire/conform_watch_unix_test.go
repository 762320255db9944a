//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch tests that conform --watch runs again when the server's file has changed, and ends at an interrupt with
// the status of the last run.
func TestWatch(t *testing.T) {
	t.Parallel()
	server := filepath.Join(t.TempDir(), "server.sh")
	write := func(fault string) {
		t.Helper()
		text := "exec jobwire serve gearman --listen 127.0.0.1:$1" + fault + "\n"
		if err := os.WriteFile(server, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(" --fault 'alter ECHO_RES data=x'")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "jobwire", "conform", "gearman", "--run", "gearman.echo.client", "--quick", "--watch", server,
		"--exec", "sh "+server+" {port}")
	var out strings.Builder
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	stderr := startWithErrors(t, cmd)
	var said []string
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := lines.Text()
		said = append(said, line)
		switch {
		case strings.Contains(line, "jobwire: run 1 ended") && strings.Contains(line, "exit status 1; waiting for a change of "+server):
			write("")
		case strings.Contains(line, "jobwire: run 2 ended"):
			if !strings.Contains(line, "all passed") {
				t.Errorf("the second run: %s", line)
			}
			cmd.Process.Signal(syscall.SIGINT)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, expected the status of the second run, which passed", err)
	}
	if n := strings.Count(out.String(), "tested against Gearman"); n != 2 || !strings.Contains(strings.Join(said, "\n"), server+" has changed: run 2") {
		t.Errorf("%d reports\n%s\n%s", n, strings.Join(said, "\n"), out.String())
	}
}

// TestWatched tests which changes of files and folders lead to another run.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lib", "a.py")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, path string
		change     func()
		want       string
	}{
		{"nothing", dir, func() {}, ""},
		{"a file in a folder", dir, func() { write("lib/a.py", "longer") }, file},
		{"a new file", dir, func() { write("b.py", "") }, filepath.Join(dir, "b.py")},
		{"a hidden file", dir, func() { write(".b.py.swp", "") }, ""},
		{"a deleted file", dir, func() { os.Remove(file) }, file},
		{"a file that is missing", file, func() { os.Remove(file) }, ""},
	} {
		write("lib/a.py", "a")
		os.Remove(filepath.Join(dir, "b.py"))
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			paths := []string{tt.path}
			before := readWatched(paths)
			tt.change()
			if got := before.wait(ctx, paths); got != tt.want {
				t.Errorf("%s: %q, expected %q", tt.name, got, tt.want)
			}
		})
	}
}

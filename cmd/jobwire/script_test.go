package main

import (
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func corpusDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../corpus")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// statusOf returns the script command "status N[,N] ARG...", which runs a program with the arguments and checks
// that its exit status is one of the numbers.
func statusOf(program string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 1 {
			ts.Fatalf("usage: status N ARG...")
		}
		err := ts.Exec(program, args[1:]...)
		got := 0
		var e *exec.ExitError
		if errors.As(err, &e) {
			got = e.ExitCode()
		} else if err != nil {
			ts.Fatalf("%v", err)
		}
		if !slices.Contains(strings.Split(args[0], ","), strconv.Itoa(got)) {
			ts.Fatalf("%s %v: exit status %d, want %s", program, args[1:], got, args[0])
		}
	}
}

// startWithErrors starts a program and returns what it writes to standard error.
func startWithErrors(t *testing.T, cmd *exec.Cmd) io.ReadCloser {
	t.Helper()
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return errs
}

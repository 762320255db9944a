package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
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

// status N ARG... runs jobwire and checks its exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: status N ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("jobwire", args[1:]...)
	got := 0
	var e *exec.ExitError
	if errors.As(err, &e) {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("jobwire %v: exit status %d, want %d", args[1:], got, want)
	}
}

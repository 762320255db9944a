package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"jobwire/cmd/internal/cli"
	"jobwire/internal/peers"
)

// TestManPagesAreValid checks the pages with the linter of mandoc.
func TestManPagesAreValid(t *testing.T) {
	t.Parallel()
	mandoc := peers.Need(t, "mandoc")
	dir := t.TempDir()
	root := newRoot()
	root.InitDefaultCompletionCmd()
	if err := cli.WriteManPages(root, dir, "2026-01-02"); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	if out, err := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput(); err != nil {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

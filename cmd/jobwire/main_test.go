package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "6") // tests mostly wait; the command line can override this
	testscript.Main(m, map[string]func(){"jobwire": main, "jobwire-tiny": jobwireWithTiny, "write-capture": captureWriter})
}

// TestScripts runs the scripts in testdata/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CORPUS", corpusDir(t))
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": statusOf("jobwire")},
	})
}

// skipIfShort skips a test that takes more than 10 s of processor time if -short is set.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than 10 s: run without -short")
	}
}

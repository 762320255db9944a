package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// cacheDir is the environment variable with the user's cache directory on Linux, in which conform keeps the last runs.
const cacheDir = "XDG_CACHE_HOME"

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "6") // tests mostly wait; the command line can override this
	testscript.Main(withCache{m}, map[string]func(){
		"jobwire": main, "jobwire-tiny": jobwireWithTiny, "write-capture": captureWriter,
	})
}

// withCache runs tests with a cache directory of their own.
type withCache struct{ *testing.M }

func (m withCache) Run() int {
	dir, err := os.MkdirTemp("", "jobwire-cache")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv(cacheDir, dir)
	return m.M.Run()
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

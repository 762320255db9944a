package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// cacheDir is the environment variable with the user's cache directory on Linux, in which conform keeps the last runs.
const cacheDir = "XDG_CACHE_HOME"

// TestMain runs the tests, or one of the commands that the tests start: jobwire, jobwire with a tiny protocol, and the
// writer of captures.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "6") // tests mostly wait; the command line can override this
	testscript.Main(withProgram{m}, map[string]func(){"jobwire-tiny": jobwireWithTiny, "write-capture": captureWriter})
}

// withProgram runs tests with jobwire in the PATH and with a cache directory of their own. It compiles the
// program, which starts in half the time of the test binary: the tests start it hundreds of times.
type withProgram struct{ *testing.M }

func (w withProgram) Run() int {
	dir, err := os.MkdirTemp("", "jobwire-cache")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "bin")
	args := []string{"build", "-buildvcs=false", "-o", bin + string(filepath.Separator)}
	race := debug.BuildSetting{Key: "-race", Value: "true"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, race) {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	os.Setenv(cacheDir, dir) // go build needs the user's
	os.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return w.M.Run()
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

package machine

import (
	"runtime"
	"strings"
	"testing"
)

// TestEnvironment tests that the environment in a report describes the processors, the memory and the system of the
// machine, and the command.
func TestEnvironment(t *testing.T) {
	e := ReadEnvironment([]string{"jobwire", "bench"})
	if e.Processors < 1 || !strings.HasPrefix(e.System, runtime.GOOS) || len(e.Command) != 2 {
		t.Errorf("%+v", e)
	}
	if runtime.GOOS == "linux" && (e.Memory < 1<<20 || e.System == "linux" || e.OpenFiles < 0) {
		t.Errorf("%+v", e)
	}
	e = &Environment{System: "linux 6.1.0", CPU: "A CPU", Processors: 2, Memory: 24 << 30}
	if got, want := e.String(), "2 processors (A CPU), 24 GiB of memory, linux 6.1.0"; got != want {
		t.Errorf("expected %q, got %q", want, got)
	}
}

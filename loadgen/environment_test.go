package loadgen

import (
	"runtime"
	"strings"
	"testing"
)

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

// TestReportWithEnvironment tests that reports name the machine, and that reading a saved report restores the
// environment.
func TestReportWithEnvironment(t *testing.T) {
	r := sampleReport(sampleResult())
	r.Environment = &Environment{Command: []string{"jobwire", "bench", "gearman"}, System: "linux 6.1.0", Processors: 2}
	var text, saved strings.Builder
	if err := WriteText(&text, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "machine    2 processors, linux 6.1.0\n") {
		t.Errorf("the machine is not in the text:\n%s", text.String())
	}
	if err := WriteJSON(&saved, r); err != nil {
		t.Fatal(err)
	}
	back, err := ReadReports(strings.NewReader(saved.String()))
	if err != nil || len(back) != 1 || back[0].Environment.String() != r.Environment.String() {
		t.Errorf("%v: %+v", err, back)
	}
}

package fuzzcmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/fuzz/report"
)

// TestFuzzReport tests that 'fuzz report' writes the report of an earlier run in each format, the same as the run itself,
// and says what is missing if there is none.
func TestFuzzReport(t *testing.T) {
	out, printed := outputOf(t, "text", quotedExec)
	write := func(args ...string) (string, error) {
		cmd := newFuzzReport()
		var b bytes.Buffer
		cmd.SetOut(&b)
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		return b.String(), err
	}
	if got, err := write(out.o.findings); err != nil || got != printed {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, printed)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	for format := range report.Formats {
		got, err := write(out.o.findings, "--format", format, "--html", page)
		if err != nil || !strings.Contains(got, "SIGSEGV") {
			t.Errorf("%s: %v, %s", format, err, got)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("SIGSEGV")) {
		t.Errorf("%s, %v", text, err)
	}
	for _, args := range [][]string{{}, {t.TempDir()}, {out.o.findings, "b"}} {
		if _, err := write(args...); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if err := os.WriteFile(filepath.Join(out.o.findings, report.File), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := write(out.o.findings); err == nil || !strings.Contains(err.Error(), report.File) {
		t.Errorf("got %v", err)
	}
}

package crash

import (
	"os"
	"strings"
	"testing"
)

// TestUnfinished tests that the report of a sanitizer is unfinished until its summary.
func TestUnfinished(t *testing.T) {
	data, err := os.ReadFile("testdata/asan-use-after-free.txt")
	if err != nil {
		t.Fatal(err)
	}
	report := string(data)
	first, last := strings.Index(report, "ERROR: "), strings.Index(report, "SUMMARY: ")
	end := strings.Index(report[first:], "\n") + first
	for _, tt := range []struct {
		output string
		want   bool
	}{
		{"", false}, {"ready\n", false}, {report, false}, {report[:first], false}, {report[:end], true}, {report[:last], true},
		{report + report[:last], true}, {"t.c:25:32: runtime error: signed integer overflow\n", false},
		{"==7==WARNING: AddressSanitizer failed to allocate 0x1 bytes\n", false},
	} {
		if got := Unfinished(tt.output); got != tt.want {
			t.Errorf("%q: got %v", tt.output, got)
		}
	}
}

package audit

import (
	"strings"
	"testing"
)

// TestDifference: two long answers that differ late do not look alike in a report.
func TestDifference(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, tt := range []struct{ expected, got, want string }{
		{"ok a", "ok b", "expected the answer ok a, got ok b"},
		{long + "a", long + "b", "expected the answer ..." + long[:60] + "a, got ..." + long[:60] +
			"b: the first 1000 of 1001 and 1001 bytes are the same"},
		{long, long[:500], "expected the answer ..." + long[:120] + "..., got ..." + long[:60] +
			": the first 500 of 1000 and 500 bytes are the same"},
	} {
		if s := difference(tt.expected, tt.got); s != tt.want {
			t.Errorf("got %q", s)
		}
	}
}

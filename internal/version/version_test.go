package version

import "testing"

// TestString tests that the version is printed with the commit, whether the source was modified, and the Go version and
// platform.
func TestString(t *testing.T) {
	for want, i := range map[string]Info{
		"1.2.0 (commit unknown, go1.26, linux/amd64)":                {Version: "1.2.0", Go: "go1.26", Platform: "linux/amd64"},
		"1.2.0 (commit 0123456789ab, modified, go1.26, linux/amd64)": {Version: "1.2.0", Commit: "0123456789ab", Modified: true, Go: "go1.26", Platform: "linux/amd64"},
	} {
		if got := i.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

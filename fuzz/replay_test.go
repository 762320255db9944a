package fuzz

import "testing"

// TestCrashesAreToldApart holds crashes apart by where they happen, though the server exits in the
// same way, and the same crash together, though its addresses differ.
func TestCrashesAreToldApart(t *testing.T) {
	const (
		one = "?2  0x7f4f5625a050 in libc.so.6(+0x3c050) [0x7f4f5625a050]\n?3  0x5643b46b4e79 in gearmand(+0x1de79) [0x5643b46b4e79]\nlast"
		two = "?2  0x7fe8fa25a050 in libc.so.6(+0x3c050) [0x7fe8fa25a050]\n?3  0x563b230b5e79 in gearmand(+0x1de79) [0x563b230b5e79]\nlast"
		off = "?2  0x7f2287e5a050 in libc.so.6(+0x3c050) [0x7f2287e5a050]\n?3  0x5635d5fd37f8 in gearmand(+0x377f8) [0x5635d5fd37f8]\nlast"
	)
	if trace(one) != trace(two) {
		t.Errorf("the same crash is told twice: %q, %q", trace(one), trace(two))
	}
	if trace(one) == trace(off) {
		t.Errorf("two crashes are one: %q", trace(one))
	}
	if trace("out of memory") != "" {
		t.Errorf("a place is made up: %q", trace("out of memory"))
	}
}

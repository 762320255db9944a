package audit

import "testing"

// TestExpectedAnswers tests that an answer of a driver matches one of the alternatives of the expected answer, with its
// wildcards (*), fractions of the same value (1/2 and 50/100), names ($H), payloads ({A}) and omitted words (...), and
// that other answers do not match.
func TestExpectedAnswers(t *testing.T) {
	for _, tt := range []struct {
		expected, answer string
		fits             bool
	}{
		{"ok 3", "ok 3", true},
		{"ok 3", "ok 4", false},
		{"ok 3", "ok 3 more", false},
		{"ok 3 ...", "ok 3 more", true},
		{"ok 3 ...", "ok 3", true},
		{"ok {A}", `ok "a b"`, true},
		{"ok {}", `ok ""`, true},
		{"ok * 1/2", "ok x 50/100", true},
		{"ok * 1/2", "ok x 2/3", false},
		{"ok ... status 1/2 ...", "ok x status 0/2 status 1/2 status 2/2", true},
		{"ok ... status 1/2 ...", "ok status 1/2", true},
		{"ok ... status 1/2 ...", "ok x status 0/2", false},
		{"ok ... status 1/2", "ok status 1/2 more", false},
		{"ok 1 | error failed ...", "error failed now", true},
		{"ok 1 | error failed ...", "ok 1", true},
		{"ok 1 | error failed ...", "ok 2", false},
		{"ok $H $H", "ok 7 7", true},
		{"ok $I $I", "ok 7 8", false},
		{"ok 1", `ok "unclosed`, false},
	} {
		n := names{"{A}": "a b", "{}": ""}
		if got := n.fits(tt.expected, tt.answer); got != tt.fits {
			t.Errorf("expected answer %s, answer %s: %t, want %t", tt.expected, tt.answer, got, tt.fits)
		}
	}
}

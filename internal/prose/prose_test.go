package prose

import "testing"

func TestWrap(t *testing.T) {
	for _, tt := range []struct{ first, rest, s, want string }{
		{"", "", "", ""},
		{"", "", "one two  three\nfour", "one two\nthree four"},
		{"a: ", "   ", "one two three", "a: one two\n   three"},
		{"  ", "  ", "much-too-long-for-it b", "  much-too-long-for-it\n  b"},
		{"", "", "éé éé éé éé", "éé éé éé\néé"},
		{"head   ", "       ", "", "head"},
	} {
		if got := Wrap(tt.first, tt.rest, tt.s, 10); got != tt.want {
			t.Errorf("%q: got %q, expected %q", tt.s, got, tt.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: got %s, expected %s", n, got, want)
		}
	}
}

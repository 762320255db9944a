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

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ s, want string }{
		{"", ""},
		{"plain text, é, 任务\n\tindented", "plain text, é, 任务\n\tindented"},
		{"\x1b[31mred\a\x7f", "?[31mred??"},
		{"C1 \u009b31m, NEL \u0085", "C1 ?31m, NEL ?"},
		{"lines\r\nover\rwritten", "lines\nover?written"},
		{"\u202edlrow\u202c \u2066x\u2069 \u200f", "?dlrow? ?x? ?"},
		{"\xff\xfe\x00", "??"},
	} {
		if got := Printable(tt.s); got != tt.want {
			t.Errorf("%q: expected %q, got %q", tt.s, tt.want, got)
		}
	}
}

package prose

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestWrap tests that Wrap divides a text into lines of the given width with their prefixes, counts characters and not
// bytes, and does not divide words.
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

// TestGrouped tests that Grouped writes a number with a comma between groups of three digits.
func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: got %s, expected %s", n, got, want)
		}
	}
}

// TestWriter tests that a Writer escapes control characters, directional characters and invalid bytes and keeps all
// other text, also if a character is divided between two writes.
func TestWriter(t *testing.T) {
	for _, tt := range []struct{ s, want string }{
		{"", ""},
		{"plain text, é, 任务\n\tindented", "plain text, é, 任务\n\tindented"},
		{"\x1b[31mred\a\x7f", `\x1b[31mred\x07\u007f`},
		{"C1 \u009b31m, NEL \u0085", `C1 \u009b31m, NEL \u0085`},
		{"lines\r\nover\rwritten\r", "lines\nover\\x0dwritten\\x0d"},
		{"\u202edlrow\u202c \u2066x\u2069 \u200f", `\u202edlrow\u202c \u2066x\u2069 \u200f`},
		{"tag \U000e0041, replacement \ufffd", `tag \udb40\udc41, replacement ` + "\ufffd"},
		{"\xff\xfe\x00 \xe4\xbb", `\xff\xfe\x00 \xe4\xbb`},
	} {
		for _, step := range []int{1, 2, 3, 4, 100} {
			var b strings.Builder
			w := Writer{W: &b}
			for part := range slices.Chunk([]byte(tt.s), step) {
				if n, err := w.Write(part); n != len(part) || err != nil {
					t.Fatalf("%q: %d bytes written, %v", part, n, err)
				}
			}
			if w.Close(); b.String() != tt.want {
				t.Errorf("%q: expected %q with writes of %d bytes, got %q", tt.s, tt.want, step, b.String())
			}
		}
	}
}

// TestWriterColors tests that a writer with colors writes the escape sequences of Color, and no other ones: a peer may send
// those of colors.
func TestWriterColors(t *testing.T) {
	text := Color("1;31") + "red" + Color("0") + " \x1b[31mof a peer\x1b[0m \x1b[2J " + mark + "[31"
	want := "\x1b[1;31mred\x1b[0m \\x1b[31mof a peer\\x1b[0m \\x1b[2J \\x1b" + mark[1:] + "[31"
	for step := 1; step < len(text); step++ {
		var b strings.Builder
		w := Writer{W: &b, Colors: true}
		for part := range slices.Chunk([]byte(text), step) {
			w.Write(part)
		}
		if w.Close() != nil || b.String() != want {
			t.Errorf("writes of %d bytes: expected %q, got %q", step, want, b.String())
		}
	}
}

// TestWriterKeepsJSON tests that JSON with any characters has the same value after it was written.
func TestWriterKeepsJSON(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r == 0x3000 {
			r = 0xf000 // there are only letters between them
		} else if r == 0x10000 {
			r = 0xe0000
		} else if r == 0xe0200 {
			r = unicode.MaxRune
		}
		before, _ := json.Marshal(string(r))
		var after string
		if err := json.Unmarshal(appendPrintable(nil, before), &after); err != nil || after != string(r) {
			t.Fatalf("%q: got %q, %v", r, after, err)
		}
	}
}

// TestWriterAllocates tests that plain text and text that a writer changes need no memory.
func TestWriterAllocates(t *testing.T) {
	w := Writer{W: io.Discard}
	text := []byte("text é \x1b \u202e\n")
	if n := testing.AllocsPerRun(100, func() { w.Write(text) }); n > 0 {
		t.Errorf("expected no allocation, got %v", n)
	}
}

// TestDistance tests that Distance returns the number of edits between two words, also for very long ones.
func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"gearman", "german", 1},
		{"kitten", "sitting", 3},
		{strings.Repeat("x", 200), "gearman", 200},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

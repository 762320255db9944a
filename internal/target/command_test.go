package target

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestSplit tests that a command line is divided into words like in a shell, and that Join is the inverse.
func TestSplit(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{`gearmand -p {port}`, []string{"gearmand", "-p", "{port}"}},
		{"  a\t b\n", []string{"a", "b"}},
		{`a 'b c' d`, []string{"a", "b c", "d"}},
		{`a "b 'c' d"`, []string{"a", "b 'c' d"}},
		{`a '' ""`, []string{"a", "", ""}},
		{`--x='a b'c"d e"`, []string{"--x=a bcd e"}},
		{`a\ b \\ \'`, []string{"a b", `\`, "'"}},
		{`"a\"b\\c\d"`, []string{`a"b\c\d`}},
		{`sh -c 'exec a | b > $C'`, []string{"sh", "-c", "exec a | b > $C"}},
	}
	for _, tt := range tests {
		got, err := Split(tt.line)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("Split(%s) = %q, %v; want %q", tt.line, got, err, tt.want)
		}
		again, err := Split(Join(got))
		if err != nil || !slices.Equal(again, tt.want) {
			t.Errorf("Split(Join(%q)) = %q, %v", got, again, err)
		}
	}
}

// TestSplitRefuses tests that an empty command line, an open quote and characters that are special only in a shell are
// errors.
func TestSplitRefuses(t *testing.T) {
	tests := []struct{ line, why string }{
		{"", "empty"},
		{"  ", "empty"},
		{"a 'b", "single quote"},
		{`a "b`, "double quote"},
		{`a \`, "backslash"},
		{"a | b", `'|' is special only in a shell`},
		{"a > log", `'>' is special only in a shell`},
		{"a $HOME", `'$' is special only in a shell`},
		{`a "$HOME"`, `'$' is special only in a shell`},
		{"a &", `'&' is special only in a shell`},
	}
	for _, tt := range tests {
		words, err := Split(tt.line)
		if !errors.Is(err, errCommand) || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("Split(%q) = %q, %v; want an error about %q", tt.line, words, err, tt.why)
		}
	}
}

// TestExpand tests that {port}, {host} and {addr} in the words of a command are replaced by the parts of the address.
func TestExpand(t *testing.T) {
	got, err := Expand([]string{"-p{port}", "{host}", "http://{addr}/{port}"}, "127.0.0.1:99")
	want := []string{"-p99", "127.0.0.1", "http://127.0.0.1:99/99"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

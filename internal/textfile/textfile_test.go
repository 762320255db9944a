package textfile_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"jobwire/internal/textfile"
)

// TestText tests that Text and Reader give the same text or error.
func TestText(t *testing.T) {
	for _, tt := range []struct{ in, want, err string }{
		{"", "", ""},
		{"a\r\n\tb\x1b[0m\n", "a\r\n\tb\x1b[0m\n", ""},
		{"\xef\xbb\xbfa", "a", ""},
		{"\xef\xbb\xbf", "", ""},
		{"Überschrift\n", "Überschrift\n", ""},
		{"a caf\xe9 in Latin-1", "a caf\xe9 in Latin-1", ""},
		{"\xff\xfea\x00", "", "the text is in UTF-16: save it as UTF-8"},
		{"\xfe\xff\x00a", "", "the text is in UTF-16: save it as UTF-8"},
		{"\x89PNG", "", `expected a list, got a file that begins with 89 50 4e 47 ("` + "\ufffd" + `PNG")`},
		{"PK\x03\x04", "", `expected a list, got a file that begins with 50 4b 03 04 ("PK\x03\x04")`},
		{strings.Repeat("x", 600) + "\x00", strings.Repeat("x", 600) + "\x00", ""},
	} {
		text, err := textfile.Text([]byte(tt.in), "a list")
		read, readErr := io.ReadAll(textfile.NewReader(iotest.OneByteReader(strings.NewReader(tt.in)), "a list"))
		if err == nil && (string(text) != tt.want || tt.err != "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: %q, %v", tt.in, text, err)
		}
		if readErr == nil && (string(read) != tt.want || tt.err != "") || readErr != nil && readErr.Error() != tt.err {
			t.Errorf("reader of %q: %q, %v", tt.in, read, readErr)
		}
	}
}

// TestReaderOfGrowingFile tests that a reader reads what is appended after the end of the file was reached.
func TestReaderOfGrowingFile(t *testing.T) {
	var file bytes.Buffer
	r := textfile.NewReader(&file, "a list")
	for _, part := range []string{"", "\xef\xbb\xbfa\n", "b\n", ""} {
		file.WriteString(part)
		if got, err := io.ReadAll(r); err != nil || string(got) != strings.TrimPrefix(part, "\xef\xbb\xbf") {
			t.Errorf("%q: %q, %v", part, got, err)
		}
	}
}

package transcript_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	. "jobwire/codec/transcript"
)

// TestReadLine tests that ReadLine returns lines that are shorter and longer than the buffer of the reader, and an
// error for a line above the limit.
func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 50)
	r := bufio.NewReaderSize(strings.NewReader("a b\r\n\n"+long+"\nlast"), 16)
	for _, want := range []string{"a b", "", long, "last"} {
		if got, err := ReadLine(r, 60); got != want || err != nil {
			t.Errorf("expected %q, got %q, %v", want, got, err)
		}
	}
	if got, err := ReadLine(r, 60); err != io.EOF {
		t.Errorf("expected the end, got %q, %v", got, err)
	}
	if got, err := ReadLine(bufio.NewReaderSize(strings.NewReader(long+"\n"), 16), 40); err != bufio.ErrTooLong {
		t.Errorf("expected an error for a line that is too long, got %q, %v", got, err)
	}
}

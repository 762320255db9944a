// Package textfile reads text files that users write: it skips a byte order mark, and refuses what is not UTF-8 text
// before a parser reports something else about it.
package textfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// headSize is the number of bytes at the beginning of a file that are checked.
const headSize = 512

// waiting counts the calls that open or read a file and have not returned.
var waiting atomic.Int32

// Waiting reports whether a call of the operating system opens or reads a file of a user. Such a call can last without
// a limit, because the file may be a FIFO or a terminal.
func Waiting() bool { return waiting.Load() > 0 }

func wait[T any](call func() (T, error)) (T, error) {
	waiting.Add(1)
	defer waiting.Add(-1)
	return call()
}

// Read returns the text in a file. kind is what the file should contain, for error messages: "a transcript".
func Read(name, kind string) ([]byte, error) {
	b, err := wait(func() ([]byte, error) { return os.ReadFile(name) })
	if err != nil {
		if st, no := os.Stat(name); no == nil && st.IsDir() {
			err = fmt.Errorf("%s: expected %s, got a folder", name, kind)
		}
		return nil, err
	}
	if b, err = Text(b, kind); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// Text returns a text without a byte order mark.
func Text(b []byte, kind string) ([]byte, error) {
	skip, err := check(b[:min(len(b), headSize)], kind)
	return b[skip:], err
}

// Reader reads a text from in. Its first Read that returns bytes does what Text does.
type Reader struct {
	file    io.Closer // nil if it was not opened by Open
	in      *bufio.Reader
	kind    string
	checked bool
	err     error
}

// NewReader returns a reader of a text.
func NewReader(in io.Reader, kind string) *Reader {
	return &Reader{in: bufio.NewReaderSize(counted{in}, headSize), kind: kind}
}

// Open returns a reader of the text in a file.
func Open(name, kind string) (*Reader, error) {
	f, err := wait(func() (*os.File, error) { return os.Open(name) })
	if err != nil {
		return nil, err
	}
	r := NewReader(f, kind)
	r.file = f
	return r, nil
}

// Close closes the file of a reader that Open has returned.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// counted counts the calls of Read that have not returned.
type counted struct{ io.Reader }

func (c counted) Read(p []byte) (int, error) {
	return wait(func() (int, error) { return c.Reader.Read(p) })
}

// Read reads text. The first call checks the beginning of the file, removes a byte order mark, and returns an error if
// the file is not text of the expected kind.
func (r *Reader) Read(p []byte) (int, error) {
	if !r.checked {
		head, err := r.in.Peek(headSize)
		if len(head) == 0 {
			return 0, err // more bytes may come, in a file to which a program appends
		}
		r.checked = true
		skip := 0
		skip, r.err = check(head, r.kind)
		r.in.Discard(skip)
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.in.Read(p)
}

// check returns the number of bytes to skip at the beginning of a text, or an error if it is not a text.
func check(head []byte, kind string) (skip int, err error) {
	for _, utf16 := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(head, []byte(utf16)) {
			return 0, errors.New("the text is in UTF-16: save it as UTF-8")
		}
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		skip = 3
	}
	r, size := utf8.DecodeRune(head[skip:])
	if r == utf8.RuneError && size == 1 || bytes.ContainsFunc(head, binary) {
		shown := head[:min(len(head), 8)]
		text := strings.ToValidUTF8(string(shown), "\ufffd")
		return 0, fmt.Errorf("expected %s, got a file that begins with % x (%q)", kind, shown, text)
	}
	return skip, nil
}

// binary reports whether a character does not occur in texts.
func binary(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) }

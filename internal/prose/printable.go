package prose

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer writes text with parts that are not trusted, such as names that a peer sent or the output of a program, to W,
// which may be a terminal, a page or a file. It writes bytes that are not valid text, control characters except tabs
// and line ends, and invisible characters, such as those that change the direction of text, as \x1b or \u202e. JSON and
// scripts have the latter form too, and never contain the former characters, so they stay valid. It can be used by
// several goroutines.
//
// The end of a write that may be the beginning of a character is written by the next write, or by Close.
type Writer struct {
	W      io.Writer
	Colors bool // write the escape sequences of colors that come from [Color]

	mu   sync.Mutex
	rest []byte // what is not yet written
	buf  []byte
}

// Write writes p with control and invisible characters escaped. It keeps an incomplete character at the end of p for
// the next call.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 && plain(p) == len(p) {
		return w.W.Write(p)
	}
	var n int
	w.rest = append(w.rest, p...)
	w.buf, n = w.escape(w.buf[:0], w.rest)
	w.rest = append(w.rest[:0], w.rest[n:]...)
	if _, err := w.W.Write(w.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Control writes a sequence of control characters unchanged.
func (w *Writer) Control(sequence string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	io.WriteString(w.W, sequence)
}

// Close writes the incomplete character at the end of the text. It does not close W.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.W.Write(appendPrintable(nil, w.rest))
	w.rest = nil
	return err
}

// escape appends text, and returns how much of it is appended.
func (w *Writer) escape(dst, text []byte) ([]byte, int) {
	for i := 0; i < len(text); {
		n := plain(text[i:])
		dst = append(dst, text[i:i+n]...)
		if i += n; i == len(text) {
			break
		}
		if w.Colors && text[i] == 0x1b {
			switch n := color(text[i:]); {
			case n > 0:
				dst = append(append(dst, 0x1b), text[i+len(mark):i+n]...)
				i += n
				continue
			case n < 0:
				return dst, i
			}
		}
		if text[i] == '\r' && i+1 == len(text) || !utf8.FullRune(text[i:]) {
			return dst, i
		}
		dst, n = appendEscaped(dst, text[i:])
		i += n
	}
	return dst, len(text)
}

var lineEnds = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// Line returns a name that is not trusted without line ends and tabs, for lines and columns of text.
func Line(s string) string { return lineEnds.Replace(s) }

// appendPrintable appends the text with the bytes and characters escaped that must not reach a terminal.
func appendPrintable(dst, text []byte) []byte {
	for len(text) > 0 {
		n := plain(text)
		dst = append(dst, text[:n]...)
		if text = text[n:]; len(text) > 0 {
			dst, n = appendEscaped(dst, text)
			text = text[n:]
		}
	}
	return dst
}

// plain returns the length of the text before the first character that is not written unchanged.
func plain(text []byte) int {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			return i
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
			return i
		}
		i += n
	}
	return len(text)
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends the escape sequence of the first character, and returns the length of the character. A line end
// of two characters becomes one of one.
func appendEscaped(dst, text []byte) ([]byte, int) {
	r, n := utf8.DecodeRune(text)
	switch {
	case r == '\r' && len(text) > 1 && text[1] == '\n':
		return append(dst, '\n'), 2
	case r < ' ' || r == utf8.RuneError && n == 1:
		return append(dst, '\\', 'x', hexDigits[text[0]>>4], hexDigits[text[0]&15]), 1
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return appendUnit(appendUnit(dst, high), low), n
	}
	return appendUnit(dst, r), n
}

func appendUnit(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// mark begins the sequences of [Color]. It is random, so that text of a peer does not contain it.
var mark = "\x1b" + rand.Text()

// Color returns the sequence that sets a color, or another attribute of text, such as "1;31". A [Writer] with colors
// writes the escape sequence of terminals instead.
func Color(attributes string) string { return mark + "[" + attributes + "m" }

// color returns the length of the sequence of a color at the beginning of text, 0 if there is none, and -1 if the text
// ends before this is known.
func color(text []byte) int {
	if k := min(len(text), len(mark)); mark[:k] != string(text[:k]) {
		return 0
	}
	if n := bytes.IndexByte(text, 'm') + 1; n > 0 {
		return n
	}
	return -1
}

// Printable returns a text that is not trusted as a [Writer] writes it, in one line.
func Printable(s string) string { return Line(string(appendPrintable(nil, []byte(s)))) }

package transcript

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"jobwire/codec"
	"jobwire/internal/prose"
)

// maxText limits the total length of the quoted texts of one source, so that a repetition cannot exhaust the
// memory.
const maxText = 4 * codec.DefaultMaxData

// token is a word or a quoted text of a step.
type token struct {
	text   string
	data   []byte // the bytes of a text with a long repetition, which other tokens share; nil for other texts
	quoted bool
	col    int // from 1, in bytes
}

// bytes returns the text as bytes, which must not be changed.
func (t token) bytes() []byte {
	if t.data != nil {
		return t.data
	}
	return []byte(t.text)
}

// position is a position in the source. Its methods create errors for this position.
type position struct {
	file      string
	line, col int
}

func (p position) errorf(format string, args ...any) *Error {
	return &Error{File: p.file, Line: p.line, Col: p.col, Msg: fmt.Sprintf(format, args...)}
}

// atColumn returns the position in the same line at another column.
func (p position) atColumn(col int) position { p.col = col; return p }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// sharedTexts contains what scripts have in common: the cases of a suite and their instances have many equal texts.
// Several goroutines may use it.
type sharedTexts struct {
	mu       sync.Mutex
	repeated map[string][]byte    // for each text with a long repetition, the longest one; the bytes never change
	legal    map[messageText]bool // texts of messages whose literal values are legal
}

// messageText is the text of a message in a script, and the side that sends it.
type messageText struct {
	from codec.Side
	text string
}

// quotes are the quoted texts of one source.
type quotes struct {
	room   int     // the remaining part of maxText
	words  bool    // of a driver: a word has no labels and no quotes of other kinds
	tokens []token // of the last step
	*sharedTexts
}

func newSharedTexts() *sharedTexts {
	return &sharedTexts{repeated: map[string][]byte{}, legal: map[messageText]bool{}}
}

// checkOnce calls check for a message, and returns nil without a call if an equal message was legal before.
func (s *sharedTexts) checkOnce(m messageText, check func() *Error) *Error {
	s.mu.Lock()
	legal := s.legal[m]
	s.mu.Unlock()
	if legal {
		return nil
	}
	if err := check(); err != nil {
		return err
	}
	s.mu.Lock()
	s.legal[m] = true
	s.mu.Unlock()
	return nil
}

// longRepetition is the number of bytes from which the cases of a source share a repetition.
const longRepetition = 1024

// repeat returns the text count times, and the bytes of a long repetition.
func (s *sharedTexts) repeat(text string, count int) (string, []byte) {
	n := count * len(text)
	if n < longRepetition {
		return strings.Repeat(text, count), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.repeated[text]) < n {
		s.repeated[text] = bytes.Repeat([]byte(text), count)
	}
	b := s.repeated[text][:n:n]
	return unsafe.String(&b[0], n), b // a copy of the longest texts would take as long as parsing the whole source
}

// lex splits a step into tokens, which are valid until the next call. pos is the position of s.
func lex(pos position, s string, q *quotes) ([]token, *Error) {
	toks := q.tokens[:0]
	defer func() { q.tokens = toks }()
	for i := 0; i < len(s); {
		c, here := s[i], pos.atColumn(pos.col+i)
		switch {
		case isBlank(c):
			i++
			continue
		case c == '#':
			return toks, nil
		case c == '"':
			tok, n, err := lexQuoted(here, s[i:], q)
			if err != nil {
				return nil, err
			}
			toks = append(toks, tok)
			i += n
		default:
			n := strings.IndexAny(s[i:], " \t")
			if n < 0 {
				n = len(s) - i
			}
			word := s[i : i+n]
			bad := notInWord
			if q.words {
				bad = notInAnswer
			}
			if k := strings.IndexFunc(word, bad); k >= 0 {
				return nil, here.atColumn(here.col+k).errorf("expected a word, got a word that contains %q: write the value in double quotes", word[k])
			}
			toks = append(toks, token{text: word, col: here.col})
			i += n
		}
		if i < len(s) && !isBlank(s[i]) {
			return nil, pos.atColumn(pos.col+i).errorf("expected a space after the closing quote, got %q", s[i])
		}
	}
	return toks, nil
}

// notInWord reports whether a character is not allowed in a word without quotes, because the word would look
// like quoted text, an escape or a label.
func notInWord(r rune) bool {
	return notInAnswer(r) || strings.ContainsRune("'()", r)
}

// notInAnswer reports whether a character is not allowed in a word without quotes in tasks and answers of drivers.
func notInAnswer(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }

// lexQuoted reads a quoted text with its repetition from the beginning of s. It returns the token and its
// length in s.
func lexQuoted(pos position, s string, q *quotes) (token, int, *Error) {
	end := quotedEnd(s)
	if end == 0 {
		return token{}, 0, pos.errorf("expected a closing quote, got the end of the line")
	}
	text, k, bad := unescape(s[1:end-1], `"`)
	if bad != "" {
		return token{}, 0, pos.atColumn(pos.col+1+k).errorf("%s", bad)
	}
	count := 1
	if end < len(s) && s[end] == '*' {
		digits := end + 1
		for end = digits; end < len(s) && s[end] >= '0' && s[end] <= '9'; end++ {
		}
		n, err := strconv.Atoi(s[digits:end])
		if err != nil {
			return token{}, 0, pos.atColumn(pos.col + digits).errorf("expected a number after *, as in \"x\"*1000")
		}
		count = n
	}
	if len(text) > 0 && count > q.room/len(text) {
		return token{}, 0, pos.errorf("expected at most %d bytes of quoted text in the file, got more", maxText)
	}
	q.room -= count * len(text)
	text, data := q.repeat(text, count)
	return token{text, data, true, pos.col}, end, nil
}

// quotedEnd returns the length of the quoted text at the beginning of s, including both quotes, or 0 if the
// closing quote is missing.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// The letters that may follow a backslash, and the character that each of them represents.
const (
	escapeLetters = `0tnr\`
	escapeValues  = "\x00\t\n\r\\"
)

// unescape replaces the escapes in s. extra lists further characters that may follow a backslash and
// represent themselves. If bad is not empty, it describes the error at s[k].
func unescape(s, extra string) (text string, k int, bad string) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, 0, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) {
			return "", i, `expected a character after \, got the end of the text`
		}
		c := s[i+1]
		switch k := strings.IndexByte(escapeLetters, c); {
		case k >= 0:
			b.WriteByte(escapeValues[k])
			i++
		case strings.IndexByte(extra, c) >= 0:
			b.WriteByte(c)
			i++
		case c == 'x':
			if i+4 > len(s) {
				return "", i, `expected two hexadecimal digits after \x`
			}
			v, ok := hexPair(s[i+2 : i+4])
			if !ok {
				return "", i, `expected two hexadecimal digits after \x`
			}
			b.WriteByte(v)
			i += 3
		default:
			return "", i, fmt.Sprintf(`expected one of the escapes \0 \t \n \r \\ \" and \xNN, got \%c`, c)
		}
	}
	return b.String(), 0, ""
}

// hexPair reads two hex digits.
func hexPair(s string) (byte, bool) {
	var b [1]byte
	if len(s) != 2 {
		return 0, false
	}
	_, err := hex.Decode(b[:], []byte(s))
	return b[0], err == nil
}

// escapes maps each byte to its escape sequence, or to "" if it is written unchanged.
type escapes [256]string

var (
	bareEscapes   = newEscapes("")
	quotedEscapes = newEscapes(`"`)
)

// newEscapes returns the escapes for the bytes that are not printable and for the bytes in extra.
func newEscapes(extra string) *escapes {
	var t escapes
	for i := range t {
		c := byte(i)
		switch k := strings.IndexByte(escapeValues, c); {
		case k >= 0:
			t[i] = `\` + escapeLetters[k:k+1]
		case strings.IndexByte(extra, c) >= 0:
			t[i] = `\` + string(c)
		case c < ' ' || c > '~':
			t[i] = `\x` + string(hexDigits[c>>4]) + string(hexDigits[c&15])
		}
	}
	return &t
}

// appendEscaped appends b with each byte that has an escape sequence in t replaced by that sequence.
func appendEscaped(dst, b []byte, t *escapes) []byte {
	from := 0
	for i, c := range b {
		if e := t[c]; e != "" {
			dst = append(append(dst, b[from:i]...), e...)
			from = i + 1
		}
	}
	return append(dst, b[from:]...)
}

const hexDigits = "0123456789abcdef"

// nearest returns a suggestion for the end of an error: the candidate that is most similar to a mistyped
// word. It returns "" if none is similar.
func nearest(word string, candidates []string) string {
	best, dist := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := prose.Distance(strings.ToLower(word), strings.ToLower(c)); d < dist {
			best, dist = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", best)
}

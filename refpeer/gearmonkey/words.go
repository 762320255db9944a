package gearmonkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Escapes in quoted words: the letters behind a backslash, and what they stand
// for. Beside them there is \xNN.
const (
	escapeLetters = `0tnr\"`
	escapeValues  = "\x00\t\n\r\\\""
)

// splitWords cuts a line into its words, which blanks separate.
func splitWords(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return words, nil
		}
		var word string
		if line[0] == '"' {
			var err error
			if word, line, err = cutQuoted(line[1:]); err != nil {
				return nil, err
			}
			if word, line, err = repeated(word, line); err != nil {
				return nil, err
			}
			if line != "" && line[0] != ' ' && line[0] != '\t' {
				return nil, errors.New("a blank is due behind a quoted word")
			}
		} else {
			k := strings.IndexAny(line, " \t")
			if k < 0 {
				k = len(line)
			}
			if word, line = line[:k], line[k:]; strings.ContainsAny(word, `"\`) {
				return nil, fmt.Errorf(`a word that holds " or \ must be quoted: %s`, word)
			}
		}
		words = append(words, word)
	}
}

// cutQuoted reads a quoted word behind its opening quote.
func cutQuoted(s string) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] != '\\':
			b.WriteByte(s[i])
			continue
		case i+1 == len(s):
			return "", "", errors.New("a quoted word has no end")
		}
		i++
		if k := strings.IndexByte(escapeLetters, s[i]); k >= 0 {
			b.WriteByte(escapeValues[k])
			continue
		}
		if s[i] != 'x' || i+2 >= len(s) {
			return "", "", fmt.Errorf(`unknown escape \%c`, s[i])
		}
		v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", "", fmt.Errorf(`two hex digits are due behind \x, not %q`, s[i+1:i+3])
		}
		b.WriteByte(byte(v))
		i += 2
	}
	return "", "", errors.New("a quoted word has no end")
}

// repeated repeats a quoted word as often as what follows it says, as in "x"*1000.
func repeated(word, line string) (all, rest string, err error) {
	if !strings.HasPrefix(line, "*") {
		return word, line, nil
	}
	digits := strings.TrimLeft(line[1:], "0123456789")
	n, err := strconv.Atoi(line[1 : len(line)-len(digits)])
	if err != nil || n > maxTask/max(1, len(word)) {
		return "", "", fmt.Errorf("a quoted word is repeated no more than %d bytes fit: %.20s", maxTask, line)
	}
	return strings.Repeat(word, n), digits, nil
}

// plainBytes are those beside letters and digits that a word may hold unquoted in an
// answer. A task may leave out more quotes than these do.
const plainBytes = "-_.,:;/+@%"

// appendWord appends a word, quoted if need be.
func appendWord(dst []byte, s string) []byte {
	plain := s != ""
	for i := 0; plain && i < len(s); i++ {
		c := s[i]
		plain = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte(plainBytes, c) >= 0
	}
	if plain {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch k := strings.IndexByte(escapeValues, s[i]); {
		case k >= 0:
			dst = append(dst, '\\', escapeLetters[k])
		case s[i] < ' ' || s[i] > '~':
			dst = fmt.Appendf(dst, `\x%02x`, s[i])
		default:
			dst = append(dst, s[i])
		}
	}
	return append(dst, '"')
}

package gearmonkey

import (
	"encoding/hex"
	"strings"
)

// escapes are the characters after a backslash between double quotes.
var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'a': '\a'}

// blanks are the characters that separate the words of an inline command.
const blanks = " \t\n\v\f\r"

// inlineWords splits an inline command into words as Redis does: quotes group characters, and a backslash
// escapes between double quotes. A word ends with its closing quote.
func inlineWords(dst []string, line string) []string {
	for {
		line = strings.TrimLeft(line, blanks)
		if line == "" {
			return dst
		}
		end := strings.IndexAny(line, " \t\n\r\"'")
		if end < 0 {
			end = len(line)
		}
		word, rest := strings.Clone(line[:end]), line[end:]
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			var more string
			more, rest = quoted(rest[1:], rest[0])
			word += more
		}
		dst, line = append(dst, word), rest
	}
}

// quoted reads up to the closing quote and returns the rest after it.
func quoted(s string, quote byte) (word, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return b.String(), s[i+1:]
		case c != '\\' || i+1 == len(s):
			b.WriteByte(c)
		case quote == '\'':
			if s[i+1] == '\'' {
				i++
			}
			b.WriteByte(s[i])
		default:
			i++
			if v, err := hex.DecodeString(s[i+1 : min(len(s), i+3)]); s[i] == 'x' && err == nil && len(v) == 1 {
				b.Write(v)
				i += 2
			} else if e, ok := escapes[s[i]]; ok {
				b.WriteByte(e)
			} else {
				b.WriteByte(s[i])
			}
		}
	}
	return b.String(), ""
}

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	word   = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"(?:\*([0-9]+))?|([^ \t\n]+)`)
	escape = regexp.MustCompile(`\\(?:x(..)|.)`)
	plain  = regexp.MustCompile(`^[-A-Za-z0-9_.,:;/+@%]+$`)
)

// splitWords splits a task into its words.
func splitWords(line string) []string {
	var words []string
	for _, m := range word.FindAllStringSubmatch(line, -1) {
		if m[3] != "" {
			words = append(words, m[3])
			continue
		}
		w := escape.ReplaceAllStringFunc(m[1], func(e string) string {
			if e[1] == 'x' {
				n, _ := strconv.ParseUint(e[2:], 16, 8)
				return string([]byte{byte(n)})
			}
			return strings.NewReplacer("0", "\x00", "t", "\t", "n", "\n", "r", "\r").Replace(e[1:])
		})
		if n, err := strconv.Atoi(m[2]); err == nil {
			w = strings.Repeat(w, n)
		}
		words = append(words, w)
	}
	if words == nil {
		return []string{""}
	}
	return words
}

// quote returns a word as it is written in an answer.
func quote(w string) string {
	if plain.MatchString(w) {
		return w
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(w) {
		if c := w[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

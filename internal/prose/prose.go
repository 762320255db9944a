// Package prose formats text for terminals, and compares words for suggestions.
package prose

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Width is the length of a line, in characters, that fits every terminal.
const Width = 80

// Wrap returns the words of s in lines of at most width characters, as far as the words allow. The first line
// begins with first, the others with rest, and each but the last ends with a line end.
func Wrap(first, rest, s string, width int) string {
	var b strings.Builder
	b.WriteString(first)
	column, indent := utf8.RuneCountInString(first), utf8.RuneCountInString(rest)
	empty := true
	for word := range strings.FieldsSeq(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case empty:
		case column+1+n > width:
			b.WriteString("\n" + rest)
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column, empty = column+n, false
	}
	return strings.TrimRight(b.String(), " ")
}

// Grouped returns a number with commas between its thousands.
func Grouped[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count returns a number with commas between its thousands and then a noun, in the plural unless the number is 1.
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Grouped(n) + " " + noun
}

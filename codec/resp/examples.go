package resp

import (
	"fmt"
	"strconv"
	"strings"
)

var (
	commandExamples   = []string{"PING", "ECHO", "LPUSH", "LLEN", "get", "Set", "DEL"}
	doubleExamples    = []string{"0", "-1.5", "1e+30", "inf", "-inf", "nan", "1.7976931348623157e+308"}
	bigNumberExamples = []string{"0", "-1", "3492890328409238509324850943850943825024385"}
	integerExamples   = []string{"0", "7", "-1", "9223372036854775807", "-9223372036854775808"}
)

// examples chooses legal values.
type examples func(n int) int

func (e examples) of(all ...string) string { return all[e(len(all))] }

// inlineExample returns an inline command that contains words with and without quotes.
func inlineExample(n func(int) int) []string {
	choose := examples(n)
	line := choose.of(commandExamples...)
	for range choose(4) {
		line += choose.of(" ", "  ", "\t") + choose.of("a", "1", `"a b"`, `'it\'s'`, `"\x00\n"`, `""`)
	}
	return []string{line}
}

// valueExample returns a function that chooses the tokens of a value. The value begins with one of the kinds
// and is not a flat list.
func valueExample(kinds string) func(func(int) int) []string {
	return func(n func(int) int) []string {
		choose := examples(n)
		kind := kinds[choose(len(kinds))]
		count := 1 + choose(4)
		elements := count
		if kind == '|' {
			elements = 2*count + 1 // attributes come before a value
		}
		all := []string{string(kind) + strconv.Itoa(count), choose.of("_", ":7", "*-1", "#t", "$-1")} // not a list of strings
		for range elements - 1 {
			all = choose.token(all, 1)
		}
		return all
	}
}

// token appends the tokens of a value inside another one.
func (e examples) token(all []string, depth int) []string {
	switch e(8) {
	case 0, 1, 2:
		v := e.of("", "a", "foo", "\x00\xff", "a\r\nb", "*1\r\n", strings.Repeat("x", e(300)))
		return append(all, fmt.Sprint("$", len(v)), v)
	case 3:
		n := e(3)
		all = append(all, fmt.Sprint("*", n))
		for range n {
			if depth < 8 {
				all = e.token(all, depth+1)
			} else {
				all = append(all, "_")
			}
		}
		return all
	case 4:
		return append(all, ":"+e.of(integerExamples...))
	case 5:
		return append(all, ","+e.of(doubleExamples...))
	case 6:
		return append(all, "("+e.of(bigNumberExamples...))
	}
	return append(all, e.of("_", "#t", "#f", "$-1", "*-1", "+OK", "-ERR no", "~0", "%0"))
}

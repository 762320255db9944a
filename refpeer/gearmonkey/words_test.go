package gearmonkey

import (
	"slices"
	"strings"
	"testing"

	"jobwire/codec/transcript"
)

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                       nil,
		" \t ":                   nil,
		"run f x":                {"run", "f", "x"},
		"  run\tf  x ":           {"run", "f", "x"},
		`run "a b" ""`:           {"run", "a b", ""},
		`"\0\t\n\r\\\"\x7f\xFF"`: {"\x00\t\n\r\\\"\x7f\xff"},
		`"blocking=5"`:           {"blocking=5"},
		"a=b{c}'(#$*":            {"a=b{c}'(#$*"},
		`"é"`:                    {"é"},
		`"ab"*3 x`:               {"ababab", "x"},
		`"ab"*0`:                 {""},
	} {
		if got, err := splitWords(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`"`, `"a`, `"a\`, `"a\"`, `"a"b`, `a"b`, `a\nb`, `"\a"`, `"\x"`, `"\x1"`, `"\x1g"`, `"\x+1"`, `"a"*`, `"a"*x`, `"a"*1x`,
		`"a"*99999999999`, `"a"*99999999999999999999`} {
		if got, err := splitWords(line); err == nil {
			t.Errorf("%q is read as %.40q", line, got)
		}
	}
}

// What is written is read back, here and by the transcripts' reader.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "a", "a b", "\x00\xff\"\\", "#", "$x", "*", "...", "é", "it's", strings.Repeat("x", 100)} {
		f.Add(s, "b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		line := string(appendWord(append(appendWord(nil, a), ' '), b))
		if strings.ContainsAny(line, "\n\r") {
			t.Fatalf("%q, %q: the line %q has an end in it", a, b, line)
		}
		if got, err := splitWords(line); err != nil || !slices.Equal(got, []string{a, b}) {
			t.Errorf("%q, %q: %s is read as %q, %v", a, b, line, got, err)
		}
		if got, err := transcript.ParseWords(line); err != nil || !slices.Equal(got, []string{a, b}) {
			t.Errorf("%q, %q: %s is read by others as %q, %v", a, b, line, got, err)
		}
		line = transcript.Quote(a) + " " + transcript.Quote(b)
		if got, err := splitWords(line); err != nil || !slices.Equal(got, []string{a, b}) {
			t.Errorf("%q, %q: what others write, %s, is read as %q, %v", a, b, line, got, err)
		}
	})
}

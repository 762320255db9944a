package transcript_test

import (
	"strings"
	"testing"

	"jobwire/codec/transcript"
)

// TestParseWords tests which words need quotes in tasks and answers of drivers, as docs/drivers.md describes it.
func TestParseWords(t *testing.T) {
	for line, want := range map[string]string{
		`ok it's f(x) $a * ...`: "ok|it's|f(x)|$a|*|...",
		`ok \\`:                 "",
		`ok "a b"*2`:            "ok|a ba b",
		`ok 'a b'`:              "ok|'a|b'",
		`ok a"b`:                "",
		`ok # comment`:          "ok",
		`ok x#y`:                "ok|x#y",
	} {
		words, err := transcript.ParseWords(line)
		if got := strings.Join(words, "|"); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v", line, got, err)
		}
	}
}

// TestMatchWords tests that the words of an answer match a pattern with names, * and ..., and that the names get the
// values of the words only if they match.
func TestMatchWords(t *testing.T) {
	sameLength := func(literal, word string) bool { return len(literal) == len(word) }
	for _, tt := range []struct {
		want, words string
		equivalent  func(literal, word string) bool
		known       string // the values of $a and $b after the match; "": no match
	}{
		{`ok $a`, "ok 7", nil, "7 b"},
		{`ok $a $a`, "ok 7 8", nil, ""},
		{`ok $b`, "ok b", nil, " b"},
		{`ok $b`, "ok 7", nil, ""},
		{`ok *`, "ok", nil, ""},
		{`ok * "a b"`, `ok 1 "a b"`, nil, " b"},
		{`ok`, "ok 1", nil, ""},
		{`ok ...`, "ok", nil, " b"},
		{`ok $a ... x 3`, "ok 1 x 2 x 3", nil, "1 b"},
		{`ok ... x`, "ok 1 x 2", nil, ""},
		{`ok ... x $a`, "ok 1 x 2 x 3", nil, "3 b"},
		{`ok ab`, "ok cd", nil, ""},
		{`ok ab`, "ok cd", sameLength, " b"},
	} {
		args, err := transcript.ParseArgs("", 0, 0, tt.want)
		if err != nil {
			t.Fatal(err)
		}
		if line := transcript.FormatArgs(args); line != tt.want {
			t.Errorf("%q is formatted as %q", tt.want, line)
		}
		words, err := transcript.ParseWords(tt.words)
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]string{"b": "b"}
		got := ""
		if transcript.MatchWords(args, words, known, tt.equivalent) {
			got = strings.Join([]string{known["a"], known["b"]}, " ")
		}
		if got != tt.known {
			t.Errorf("%q and %q: got values %q, want %q", tt.want, tt.words, got, tt.known)
		}
	}
}

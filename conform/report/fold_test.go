package report

import (
	"strings"
	"testing"

	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/verdict"
)

// TestValuesWith checks the list of the values of the instances that failed, which are marked with "!".
func TestValuesWith(t *testing.T) {
	for _, tt := range []struct{ params, instances, want string }{
		{"n", "0 1! 2! 4 8 255! 256! 65536!", "n from 255, also 1 and 2"},
		{"n", "1! 2! 3! 4 8 9", "n up to 3"},
		{"n", "1 2! 3! 4! 8", "n 2 to 4"},
		{"n", "64! 1! 2 128!", "n 64 and 128, also 1"}, // in the order of the numbers
		{"n", "1! 2! 3!", "n 1 to 3"},
		{"n", "1! 2 3! 4 5! 6 7! 8 9! 10 11! 12 13! 14 15! 16 17! 18 19!", "n 1, also 3, 5, 7, 9, 11, 13, 15, 2 more"},
		{"n", "18446744073709551615 18446744073709551616! 36893488147419103232!", "n 18446744073709551616 and 36893488147419103232"},
		{"word", "put! use! reserve delete!", "word=put to word=use, word=delete"},
		{"n word", "1,put! 1,use 2,put!", "n=1,word=put, n=2,word=put"},
		{"n", "1 2", ""},
	} {
		var results []conform.Result
		for text := range strings.FieldsSeq(tt.instances) {
			r := conform.Result{Case: &conform.Case{}, Verdict: verdict.Passed}
			text, failed := strings.CutSuffix(text, "!")
			if failed {
				r.Verdict = verdict.Failed
			}
			for i, label := range strings.Split(text, ",") {
				r.Case.Params = append(r.Case.Params, transcript.Param{Name: strings.Fields(tt.params)[i], Label: label})
			}
			results = append(results, r)
		}
		if got := valuesWith(results, verdict.Failed); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.instances, got, tt.want)
		}
	}
}

// TestFirstLine tests that texts are cut between words, and long words within.
func TestFirstLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"one two\nthree", 7, "one two"},
		{"it replied UNKNOWN: no", 14, "it replied…"},
		{"it replied UNKNOWN: no", 20, "it replied UNKNOWN…"},
		{"UNKNOWN_COMMAND", 10, "UNKNOWN_CO…"},
		{"tür_auf_zu", 2, "t…"},
	} {
		if got := firstLine(tt.text, tt.most); got != tt.want {
			t.Errorf("%q in %d bytes: %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

package codec

import (
	"fmt"
	"slices"
	"testing"
)

// TestParseRules tests that ParseRules reads the ID, level, section, text, interpretation and reason for no test of
// each rule, and joins lines that are wrapped.
func TestParseRules(t *testing.T) {
	const text = `# A comment.

p.a MUST, Section, with a comma
  One: line,
  and another.
  Reading: Why
  so.
  Untestable: Nothing
  shows it.

## Another comment.
p.b DE-FACTO, S
  Text.
  Untestable: Not visible.
`
	want := []Rule{
		{ID: "p.a", Section: "Section, with a comma", Level: Must, Text: "One: line, and another.", Reading: "Why so.", Untestable: "Nothing shows it."},
		{ID: "p.b", Section: "S", Level: DeFacto, Text: "Text.", Untestable: "Not visible."},
	}
	if got := ParseRules(text); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestParseRulesPanics tests that ParseRules panics with the line number and the expected form if a file of rules has a
// mistake.
func TestParseRulesPanics(t *testing.T) {
	const header = "p.a MUST, S\n"
	for _, tt := range []struct{ text, want string }{
		{"p.a", `rules.txt:1: expected ID LEVEL, SECTION, got "p.a"`},
		{"p.a MUST", `rules.txt:1: expected ID LEVEL, SECTION, got "p.a MUST"`},
		{"p.a MUST,", `rules.txt:1: expected ID LEVEL, SECTION, got "p.a MUST,"`},
		{"p.a OUGHT, S", `rules.txt:1: expected ID LEVEL, SECTION, got "p.a OUGHT, S"`},
		{" p.a MUST, S", `rules.txt:1: expected an indent of two spaces and no space at the end, got " p.a MUST, S"`},
		{"p.a MUST, S ", `rules.txt:1: expected an indent of two spaces and no space at the end, got "p.a MUST, S "`},
		{"# c\n  Text.", `rules.txt:2: expected ID LEVEL, SECTION, got "  Text."`},
		{header + "   Text.", `rules.txt:2: expected an indent of two spaces and no space at the end, got "   Text."`},
		{header + "  Text. ", `rules.txt:2: expected an indent of two spaces and no space at the end, got "  Text. "`},
		{header + "\tText.", `rules.txt:2: expected an indent of two spaces and no space at the end, got "\tText."`},
		{header + "  Text.\n  ", `rules.txt:3: expected an indent of two spaces and no space at the end, got "  "`},
		{header + "  Text.\n  Reading:", `rules.txt:3: expected one Reading and one Untestable with a text, got "  Reading:"`},
		{header + "  Text.\n  Reading: A.\n  Reading: B.", `rules.txt:4: expected one Reading and one Untestable with a text, got "  Reading: B."`},
		{header + "  Text.\n  Untestable: A.\n  Untestable: B.", `rules.txt:4: expected one Reading and one Untestable with a text, got "  Untestable: B."`},
		{header + "p.b MUST, S\n  Text.", "rules.txt: rule p.a has no text"},
		{header + "  Reading: A.", "rules.txt: rule p.a has no text"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != tt.want {
					t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
				}
			}()
			ParseRules(tt.text)
		}()
	}
}

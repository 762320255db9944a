package layout

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	phonyLine  = regexp.MustCompile(`(?m)^\.PHONY: (.*)$`)
	targetLine = regexp.MustCompile(`(?m)^([A-Za-z0-9_-]+):([^=\n].*)?$`)
	helpLine   = regexp.MustCompile(`^([a-z-]+):.*## .`) // as in the target help
)

// targetProblems returns what is wrong with the targets of a Makefile: each must be in .PHONY and in the list of "make help".
func targetProblems(makefile string) (problems []string) {
	var phony []string
	if m := phonyLine.FindStringSubmatch(makefile); m != nil {
		phony = strings.Fields(m[1])
	}
	var targets []string
	for _, m := range targetLine.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
		if !helpLine.MatchString(m[0]) {
			problems = append(problems, m[1]+": no description for make help")
		}
		if !slices.Contains(phony, m[1]) {
			problems = append(problems, m[1]+": not in .PHONY")
		}
	}
	for _, name := range phony {
		if !slices.Contains(targets, name) {
			problems = append(problems, name+": in .PHONY, but not defined")
		}
	}
	return problems
}

// TestMakeTargets tests that each target of the Makefile is phony and described in "make help", and that the usual
// targets exist.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range targetProblems(string(makefile)) {
		t.Errorf("Makefile: %s", problem)
	}
	for _, name := range []string{"build", "test", "lint", "dist", "image", "fuzz"} {
		if !strings.Contains(string(makefile), "\n"+name+":") {
			t.Errorf("Makefile: no target %s", name)
		}
	}
}

// TestTargetsAreRejected tests that the check of the Makefile finds targets without a description, targets that are not
// phony, and phony targets that are not defined.
func TestTargetsAreRejected(t *testing.T) {
	for makefile, want := range map[string]string{
		".PHONY: a\nA = b\nA:= b\na: b ## do it\n\tdo\n": "",
		".PHONY: a\na:\n\tdo\n":                          "a: no description for make help",
		".PHONY: b-c\nb-c: ## do it\n":                   "",
		".PHONY: a\na: ## do it\nb: ## do it\n":          "b: not in .PHONY",
		".PHONY: a b\na: ## do it\n":                     "b: in .PHONY, but not defined",
	} {
		if got := strings.Join(targetProblems(makefile), "; "); got != want {
			t.Errorf("%q: got %q, want %q", makefile, got, want)
		}
	}
}

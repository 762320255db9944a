package judge

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRulesInSource checks that every string in the package with the form of a rule ID is a declared rule, and that the
// source contains each declared rule.
func TestRulesInSource(t *testing.T) {
	declared, found := map[string]bool{}, map[string]bool{}
	for p := range checkers {
		for subject := range New(p).rules {
			if declared[string(subject.rule)] = true; p.Rule(subject.rule) == nil {
				t.Errorf("the declared rule %s is not a rule", subject.rule)
			}
		}
	}
	rule := regexp.MustCompile(`^(gearman|danga|beanstalk|gearmonkey)\.[a-z0-9.-]+$`)
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, _ := strconv.Unquote(lit.Value); rule.MatchString(s) {
					if found[s] = true; !declared[s] {
						t.Errorf("%s: the rule %q is not declared", name, s)
					}
				}
			}
			return true
		})
	}
	for s := range declared {
		if !found[s] {
			t.Errorf("the rule %s is declared, but not checked", s)
		}
	}
}

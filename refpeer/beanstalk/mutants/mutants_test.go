package mutants

import (
	"slices"
	"strings"
	"testing"

	"jobwire/audit"
	"jobwire/internal/verdict"
)

// TestTable: each mutant describes its fault, and names the rule, or the fault profile and verdict, that reveals it. The
// tests of package audit prove that each fault is found.
func TestTable(t *testing.T) {
	verdicts := []string{string(verdict.FailedCleanly), string(verdict.Unrecovered), string(verdict.WrongResult), string(verdict.Hung), string(verdict.Crashed), ""}
	seen := map[string]bool{}
	all := All()
	if len(all) < 90 {
		t.Errorf("expected at least 90 rows, got %d", len(all))
	}
	for _, m := range all {
		if seen[m.Name] {
			t.Errorf("%s: two rows have this name", m.Name)
		}
		seen[m.Name] = true
		if !strings.HasPrefix(m.About, "The client ") || !strings.HasSuffix(m.About, ".") {
			t.Errorf("%s: expected a sentence about the client, got %q", m.Name, m.About)
		}
		if m.Rule == "" && m.Verdict == "" {
			t.Errorf("%s: expected a rule or a verdict, got neither", m.Name)
		}
		if m.Condition != "" && audit.FaultProfileNamed(m.Condition) == nil || !slices.Contains(verdicts, m.Verdict) {
			t.Errorf("%s: unknown fault profile %q or verdict %q", m.Name, m.Condition, m.Verdict)
		}
	}
}

package behavior_test

import (
	"os"
	"strings"
	"testing"

	"jobwire/audit/behavior"
)

// TestRulesAreDocumented: the page for users names each rule.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/tasks/test-a-library.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range behavior.Rules() {
		if !strings.Contains(string(page), string(r.ID)) {
			t.Errorf("docs/tasks/test-a-library.md does not describe %s", r.ID)
		}
	}
}

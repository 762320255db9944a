package faults_test

import (
	"regexp"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/fuzz/faults"
)

// TestTable tests that the list of faults is consistent: each fault has a unique name and description, every oracle has
// at least two faults, and every protocol at least three. 'jobwire fuzz self-test' tests the faults themselves.
func TestTable(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	names, abouts, oracles, protocols, processes := map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]int{}, 0
	for _, f := range faults.All() {
		switch {
		case !kebab.MatchString(f.Name) || names[f.Name]:
			t.Errorf("the name %q is not lower case with hyphens, or not unique", f.Name)
		case !strings.HasSuffix(f.About, ".") || abouts[f.About]:
			t.Errorf("%s: the description %q is not a sentence, or not unique", f.Name, f.About)
		case f.Script == "":
			t.Errorf("%s has no fault", f.Name)
		}
		names[f.Name], abouts[f.About] = true, true
		oracles[f.Oracle]++
		protocols[f.Protocol]++
		if f.NeedsProcess() {
			processes++
		}
		if named := faults.Named(f.Name); named == nil || named.About != f.About {
			t.Errorf("%s is not found by its name", f.Name)
		}
	}
	for oracle, n := range oracles {
		if n < 2 {
			t.Errorf("expected at least 2 faults of the oracle %s, got %d", oracle, n)
		}
	}
	for _, name := range catalog.Names() {
		if protocols[name] < 3 {
			t.Errorf("expected at least 3 faults of %s, got %d", name, protocols[name])
		}
	}
	if n := len(faults.All()); n != 53 || processes != 18 || len(oracles) != 15 {
		t.Errorf("expected 53 faults of 15 oracles, 18 of which need a process, got %d of %d and %d", n, len(oracles), processes)
	}
	if faults.Named("none") != nil {
		t.Error("a fault is called none, which is the name of the server without a fault")
	}
}

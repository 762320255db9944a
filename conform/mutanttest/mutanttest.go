// Package mutanttest tests tables of mutants of any protocol: whether they meet the requirements of the suite's
// self-test.
package mutanttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/mutant"
)

// Load returns the suite of the protocol. It fails the test if the suite cannot be loaded.
func Load(t *testing.T, p *codec.Protocol) *conform.Suite {
	t.Helper()
	s, err := conform.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Suite returns the cases about programs with the given roles, where "" means the server. It fails the test if the
// suite cannot be loaded.
func Suite(t *testing.T, p *codec.Protocol, roles ...string) *conform.Suite {
	t.Helper()
	s, err := Load(t, p).About(roles...)
	if err != nil {
		t.Fatal(err)
	}
	return s.InProcess()
}

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Table checks a table of mutants. Each mutant must have a unique name and description, and must name existing cases
// about its kind of program. It may name at most most cases, because a mutant that fails many cases proves little about
// each of them. A mutant must name each case of s. check must return an error if the i-th mutant has no fault.
func Table(t *testing.T, s *conform.Suite, all []mutant.Mutant, most int, check func(i int) error) {
	t.Helper()
	left, role, family := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, c := range s.Cases {
		left[c.Family] = true
		for _, name := range []string{c.ID, c.Family} {
			role[name], family[name] = c.Program, c.Family
		}
	}
	names, abouts := map[string]bool{}, map[string]string{}
	for i, m := range all {
		switch {
		case names[m.Name]:
			t.Errorf("%s stands twice", m.Name)
		case !kebab.MatchString(m.Name):
			t.Errorf("%q is not a valid mutant name", m.Name)
		case !strings.HasSuffix(m.About, "."):
			t.Errorf("%s: expected a sentence, got %q", m.Name, m.About)
		case abouts[m.About] != "":
			t.Errorf("%s is about the same as %s", m.Name, abouts[m.About])
		case len(m.KilledBy) == 0:
			t.Errorf("%s is killed by no case", m.Name)
		case len(m.KilledBy) > most:
			t.Errorf("%s is killed by %d cases: it proves little of each", m.Name, len(m.KilledBy))
		}
		if err := check(i); err != nil {
			t.Error(err)
		}
		names[m.Name], abouts[m.About] = true, m.Name
		for k, id := range m.KilledBy {
			if r, is := role[id]; !is || r != m.Role {
				t.Errorf("%s: there is no case %s about its kind", m.Name, id)
			}
			if slices.Contains(m.KilledBy[:k], id) {
				t.Errorf("%s names %s twice", m.Name, id)
			}
			delete(left, family[id])
		}
	}
	for id := range left {
		t.Errorf("no faulty program is listed that fails the case %s", id)
	}
}

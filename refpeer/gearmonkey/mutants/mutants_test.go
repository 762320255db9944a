package mutants

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/refpeer/gearmonkey"
	"jobwire/refserver"
	server "jobwire/refserver/gearmonkey"
)

func suite(t *testing.T) *conform.Suite {
	t.Helper()
	s, err := conform.Load(protocol.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The table is sound, and leaves out no case about clients or workers.
func TestTable(t *testing.T) {
	role, left := map[string]string{}, map[string]bool{}
	for _, c := range suite(t).Cases {
		role[c.ID] = c.Program
		if c.Program != "" {
			left[c.ID] = true
		}
	}
	names, abouts := map[string]bool{}, map[string]string{}
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, m := range All() {
		switch {
		case names[m.Name]:
			t.Errorf("%s stands twice", m.Name)
		case !kebab.MatchString(m.Name):
			t.Errorf("%q is no name", m.Name)
		case !strings.HasSuffix(m.About, "."):
			t.Errorf("%s: %q is no sentence", m.Name, m.About)
		case abouts[m.About] != "":
			t.Errorf("%s is about the same as %s", m.Name, abouts[m.About])
		case len(m.Kills) == 0:
			t.Errorf("%s kills nothing", m.Name)
		}
		names[m.Name], abouts[m.About] = true, m.Name
		for i, id := range m.Kills {
			if role[id] != m.Role {
				t.Errorf("%s: there is no case %s about a %s", m.Name, id, m.Role)
			}
			if slices.Contains(m.Kills[:i], id) {
				t.Errorf("%s names %s twice", m.Name, id)
			}
			delete(left, id)
		}
		m.Edit(gearmonkey.Document()) // panics where it does not fit
	}
	for id := range left {
		t.Errorf("no mutant is named for %s", id)
	}
}

// A few mutants of every kind, end to end: they fail what they are named for, and of that
// and of the cases around it nothing else.
func TestSomeMutants(t *testing.T) {
	picked := []string{
		"priority-ignored",                  // another command
		"scheduled-and-queued",              // one more
		"input-ends-at-its-nul",             // another value
		"uid-repaired",                      // what is done about an error
		"high-job-told-otherwise",           // another answer
		"time-out-takes-the-job-back",       // a sequence that goes on
		"zero-is-enough",                    // another judgement of a reply
		"roll-call-remembered",              // something remembered
		"two-fields-only",                   // what a look finds
		"registers-once-in-its-life",        // a start
		"stays-registered-without-a-job",    // an exit
		"gives-up",                          // a loop that ends
		"script-not-loaded-again",           // a cure that is missing
		"output-trimmed",                    // what the handler made
		"scheduled-jobs-not-announced",      // a condition
		"progress-upside-down",              // an update
		"empty-output-is-an-error",          // a status
		"function-ends-at-its-colon",        // a name
		"time-out-is-the-end-of-the-client", // a client that is broken
	}
	var mutants []conform.Mutant
	var run []string
	for _, m := range All() {
		if slices.Contains(picked, m.Name) {
			mutants = append(mutants, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Role: m.Role, Program: m.Drive})
			run = append(run, m.Kills...)
		}
	}
	if len(mutants) != len(picked) {
		t.Fatalf("%d of %d mutants are there", len(mutants), len(picked))
	}
	s, err := suite(t).Select(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	sound := conform.Sound{
		Start: func(ctx context.Context) (target.Target, error) {
			return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
				return refserver.New(server.New(server.Options{}), refserver.Options{Protocol: protocol.Protocol}).Serve(ctx, ln)
			})
		},
		Programs: map[string]conform.Program{"Client": gearmonkey.Drive, "Worker": gearmonkey.Drive},
	}
	report := conform.SelfTest(t.Context(), s, sound, mutants, conform.SelfTestOptions{Mutants: 6, Cases: 6}, nil)
	for _, r := range report.Failed {
		t.Errorf("without a fault: %s %s: %s", r.Case.ID, r.Verdict, r.Note)
	}
	for _, m := range report.Mutants {
		for _, id := range m.Survivors {
			t.Errorf("%s is survived by %s", m.Mutant.Name, id)
		}
		for _, r := range m.Unexpected {
			t.Errorf("%s kills %s too: %s", m.Mutant.Name, r.Case.ID, r.Note)
		}
	}
	if len(report.Mutants) != len(picked) {
		t.Errorf("%d mutants were judged, want %d", len(report.Mutants), len(picked))
	}
}

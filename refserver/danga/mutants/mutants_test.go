package mutants

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	protocol "jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/internal/target"
)

func suite(t *testing.T) *conform.Suite {
	t.Helper()
	s, err := conform.Load(protocol.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The table is sound, and leaves no case out.
func TestTable(t *testing.T) {
	left, isCase := map[string]bool{}, map[string]bool{}
	for _, c := range suite(t).Cases {
		left[c.ID], isCase[c.ID] = true, true
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
		case len(m.Kills) > len(isCase)/20:
			t.Errorf("%s kills %d cases: it proves little of each", m.Name, len(m.Kills))
		case m.Hook == nil && m.Waive == nil:
			t.Errorf("%s has no fault", m.Name)
		}
		names[m.Name], abouts[m.About] = true, m.Name
		for _, id := range m.Waive {
			if protocol.Protocol.Rule(id) == nil {
				t.Errorf("%s: there is no rule %s", m.Name, id)
			}
		}
		for i, id := range m.Kills {
			if !isCase[id] {
				t.Errorf("%s: there is no case %s", m.Name, id)
			}
			if slices.Contains(m.Kills[:i], id) {
				t.Errorf("%s names %s twice", m.Name, id)
			}
			delete(left, id)
		}
	}
	for id := range left {
		t.Errorf("no mutant is named for %s", id)
	}
}

// A few mutants of every kind, end to end: they fail what they are named for, of that and
// of some cases around it.
func TestSomeMutants(t *testing.T) {
	picked := []string{
		"magic-not-compared",              // a rule waived
		"rest-of-segment-dropped",         // another way to read
		"packet-blocks-others",            // another decoder
		"one-magic",                       // another header
		"unknown-type-answered",           // what is illegal taken for legal
		"keys-in-any-case",                // another job
		"waiters-leave-together",          // something at the end of a direction
		"retry-does-not-wake",             // by what a worker is woken
		"async-lost-with-worker",          // an end that is not noticed
		"async-dropped",                   // packets of the hook's own
		"creation-overtaken",              // an answer that is late
		"result-for-creator-only",         // what is known of a job
		"idle-worker-gets-others-jobs",    // a job that is another's
		"lists-add-up",                    // another list
		"job-follows-noop",                // something of its own time
		"elapsed-little-endian",           // another number
		"asking-does-not-end-sleep",       // a packet of the hook's own behind the peer's
		"second-result-counts",            // what was heard before
		"result-of-anothers-job",          // what nobody may say
		"question-while-waiting-fails",    // another answer
		"length-of-empty-types-ignored",   // data taken for packets
		"long-progress-read-from-its-end", // bytes that no codec would give
	}
	var mutants []conform.Mutant
	var run []string
	for _, m := range All() {
		if slices.Contains(picked, m.Name) {
			mutants = append(mutants, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Start: m.Start})
			run = append(run, m.Kills...)
		}
	}
	if len(mutants) != len(picked) {
		t.Fatalf("%d of %d mutants are there", len(mutants), len(picked))
	}
	s, err := suite(t).Select(append(run, "danga.flow.*", "danga.connect.*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The bench alone must not be noticed.
	sound := conform.Sound{Start: func(ctx context.Context) (target.Target, error) {
		return (&Mutant{Name: "none", Hook: func(*bench) {}}).Start(ctx)
	}}
	report := conform.SelfTest(t.Context(), s, sound, mutants, conform.SelfTestOptions{Mutants: 6, Cases: 12}, nil)
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

// The end of a packet is found in any number of bytes.
func TestPacket(t *testing.T) {
	whole := "GEAR\x01\x00\x00\x00\x04mail"
	for _, tt := range []struct {
		bytes string
		want  int
	}{
		{"", 0}, {whole[:8], 0}, {whole[:9], 0}, {whole[:12], 0}, {whole, 13}, {whole + "GEAR", 13},
		{"GEAR\x06\x00\x00\x00\x00", 9}, {"GEAR\x06\xff\xff\xff\xff", 0},
	} {
		if got := packet([]byte(tt.bytes)); got != tt.want {
			t.Errorf("%q has a packet of %d, want %d", tt.bytes, got, tt.want)
		}
	}
}

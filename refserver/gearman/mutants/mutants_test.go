package mutants

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	protocol "jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/gearman"
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
	left := map[string]bool{}
	for _, c := range suite(t).Cases {
		left[c.ID] = true
	}
	known := len(left)
	isCase := map[string]bool{}
	for id := range left {
		isCase[id] = true
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
		case len(m.Kills) > known/20:
			t.Errorf("%s kills %d cases: it proves little of each", m.Name, len(m.Kills))
		case m.Faults == nil && m.Hook == nil && m.Server == gearman.Options{} && m.Waive == nil:
			t.Errorf("%s has no fault", m.Name)
		}
		names[m.Name], abouts[m.About] = true, m.Name
		if _, err := m.faults(); err != nil {
			t.Error(err)
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
		"wrong-magic-passed-over",        // a fault
		"one-retry",                      // an option of the server
		"schedule-range-unchecked",       // a rule waived
		"magic-unchecked",                // another decoder
		"header-in-pieces-lost",          // another way to read
		"cut-off-packet-ends-the-server", // a server that dies
		"missing-timeout-awaited",        // one that goes deaf
		"reset-not-noticed",
		"unique-for-ever",
		"waiting-jobs-not-counted",
		"job-without-worker-fails", // something of its own time
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
	s, err := suite(t).Select(append(run, "gearman.echo.*", "gearman.retry.*"), []string{"gearman.echo.large"})
	if err != nil {
		t.Fatal(err)
	}
	faultless := func(ctx context.Context) (target.Target, error) { return (&Mutant{Name: "none"}).Start(ctx) }
	report := conform.SelfTest(t.Context(), s, conform.Sound{Start: faultless}, mutants, conform.SelfTestOptions{Mutants: 4, Cases: 8}, nil)
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

func TestStream(t *testing.T) {
	echo := []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x03one")
	var s stream
	for i, step := range []struct {
		in         []byte
		done, left int
	}{
		{echo, 15, 0},
		{echo[:5], 0, 0},
		{echo[5:13], 0, 2},
		{echo[13:], 2, 0},
		{append(bytes.Clone(echo), echo[:12]...), 15, 3},
		{[]byte("twover"), 3, 0},
		{[]byte("sion\nstatus\nwork"), 12, 0},
	} {
		if done := s.whole(step.in); done != step.done || s.left != step.left {
			t.Errorf("step %d: %d bytes are whole, %d left; want %d and %d", i, done, s.left, step.done, step.left)
		}
	}
}

// A hook's own time comes even if the machine's does not.
func TestAlarm(t *testing.T) {
	b := newBench(gearman.New(gearman.Options{}), 0)
	if !b.Next().IsZero() {
		t.Error("something is due without an alarm")
	}
	rung := 0
	due := time.Now()
	b.alarm, b.ring = due, func() { rung++ }
	if next := b.Next(); !next.Equal(due) {
		t.Errorf("next is %v, want %v", next, due)
	}
	b.Tick(due.Add(-time.Second))
	b.Tick(due)
	b.Tick(due.Add(time.Second))
	if rung != 1 {
		t.Errorf("the alarm rang %d times", rung)
	}
}

var _ refserver.Machine = (*bench)(nil)

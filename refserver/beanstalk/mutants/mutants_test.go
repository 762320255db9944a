package mutants

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/beanstalk"
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
		case m.Faults == nil && m.Hook == nil && m.Codec.MaxData == 0 && m.Codec.MaxLine == 0 && m.Codec.Waive == nil:
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
		"first-reply-overtaken",           // a fault
		"lf-ends-a-line",                  // a rule waived
		"line-of-223",                     // a limit
		"body-before-a-pipeline-cut-off",  // another decoder
		"cr-at-the-limit-ends-a-line",     // another way to read
		"endless-line-ends-the-server",    // a server that dies
		"surplus-name-overlooked",         // what is illegal taken for legal
		"reserve-does-not-hold",           // a command that is not waited for
		"ready-counted-urgent",            // other statistics
		"jobs-lost-with-their-worker",     // something at the end of a connection
		"release-does-not-wake",           // by what a worker is woken
		"released-into-the-used-tube",     // commands of the hook's own
		"idle-client-greeted",             // something of its own time
		"half-close-unnoticed",            // what follows the end of a direction
		"others-reserved-not-described",   // what is known of a job
		"unknown-with-argument-malformed", // another error
		"tube-survives-its-jobs",          // what is gone
		"sign-of-a-time-dropped",          // a put that is malformed
		"past-of-a-tube-not-seen",         // what a peer heard before
		"delayed-peeked-as-put",           // another order
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
	s, err := suite(t).Select(append(run, "beanstalk.pipeline.*", "beanstalk.life.*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	faultless := func(ctx context.Context) (target.Target, error) { return (&Mutant{Name: "none"}).Start(ctx) }
	report := conform.SelfTest(t.Context(), s, conform.Sound{Start: faultless}, mutants, conform.SelfTestOptions{Mutants: 6, Cases: 12}, nil)
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

// A hook's own times come even if the machine has none, each once and not early.
func TestAlarms(t *testing.T) {
	b := newBench(beanstalk.New(beanstalk.Options{}))
	if !b.Next().IsZero() {
		t.Error("something is due without an alarm")
	}
	var rung []string
	b.after(time.Hour, func() { rung = append(rung, "late") })
	b.after(time.Minute, func() { rung = append(rung, "soon") })
	due := b.Next()
	if left := time.Until(due); left > time.Minute || left < 50*time.Second {
		t.Errorf("the first alarm is due in %v", left)
	}
	b.Tick(due.Add(-time.Second))
	if rung != nil {
		t.Errorf("%v rang early", rung)
	}
	b.Tick(due)
	b.Tick(due.Add(2 * time.Hour))
	b.Tick(due.Add(3 * time.Hour))
	if want := []string{"soon", "late"}; !slices.Equal(rung, want) {
		t.Errorf("%v rang, want %v", rung, want)
	}
}

// A reply is read beside the command that it answers, also if that is malformed.
func TestRead(t *testing.T) {
	for _, tt := range []struct{ command, reply, row, first string }{
		{"put 0 0 60 1\r\nx\r\n", "BURIED 7\r\n", "BURIED_JOB", "7"},
		{"bury 7 0\r\n", "BURIED\r\n", "BURIED", ""},
		{"kick 1\r\n", "KICKED 1\r\n", "KICKED", "1"},
		{"kick-job 7\r\n", "KICKED\r\n", "KICKED_JOB", ""},
		{"kick x\r\n", "BAD_FORMAT\r\n", "BAD_FORMAT", ""},
		{"nonsense\r\n", "UNKNOWN_COMMAND\r\n", "UNKNOWN_COMMAND", ""},
		{"reserve\r\n", "RESERVED 7 2\r\n\r\n\r\n", "RESERVED", "7"},
		{"list-tubes\r\n", "OK 14\r\n---\n- default\n\r\n", "list-reply", "default"},
	} {
		command := &frame{Raw: []byte(tt.command)}
		f := read(command, []byte(tt.reply))
		if f.Type == nil || f.Type.Name != tt.row || arg(f, 0) != tt.first {
			t.Errorf("%q to %q is read as %v with %q, want %s with %q", tt.reply, tt.command, f.Type, args(f), tt.row, tt.first)
		}
	}
}

var (
	_ refserver.Machine = (*bench)(nil)
	_ codec.Session     = session{}
)

package mutants

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/gearmonkey"
)

// suite is the cases about servers.
func suite(t *testing.T) *conform.Suite {
	t.Helper()
	s, err := conform.Load(protocol.Protocol)
	if err == nil {
		s, err = s.About("")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The table is sound, and leaves no case about servers out.
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
		case len(m.Kills) > len(isCase)/16:
			t.Errorf("%s kills %d cases: it proves little of each", m.Name, len(m.Kills))
		case m.Faults == nil && m.Hook == nil && m.Codec.MaxLine == 0:
			t.Errorf("%s has no fault", m.Name)
		}
		names[m.Name], abouts[m.About] = true, m.Name
		if _, err := m.faults(); err != nil {
			t.Error(err)
		}
		for i, id := range m.Kills {
			if !isCase[id] {
				t.Errorf("%s: there is no case %s about servers", m.Name, id)
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
		"first-ok-overtaken",            // a fault
		"lines-without-end",             // a limit
		"negative-size-is-0",            // another way to read
		"silence-broken",                // something of its own time
		"protocol-errors-without-code",  // another answer to what is illegal
		"ids-by-connection",             // other words
		"hmset-replaces-the-hash",       // commands of the hook's own, before
		"output-expires-by-itself",      // and behind
		"absent-field-empty",            // another reply
		"waits-for-a-list-to-be",        // a command that is not answered
		"commands-overtake-a-wait",      // what does not wait
		"served-though-gone",            // another line, and who leaves it
		"served-stays-first",            // another turn in it
		"over-at-half-time",             // another time
		"latest-first",                  // another script
		"popped-job-queued-again",       // something at the end of a connection
		"half-close-unnoticed",          // what follows the end of a direction
		"woken-by-its-first-key",        // another reply to one who waited
		"subscribed-twice-told-twice",   // messages of the hook's own
		"expiry-of-the-emptied",         // what is remembered of a key
		"one-script-at-a-time",          // and of a peer
		"commands-in-capitals-only",     // how a command is spelt
		"command-behind-a-line-lost",    // and what it follows
		"woken-by-longer-names",         // who is woken
		"waiting-holds-up-its-function", // and who is held up meanwhile
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
	s, err := suite(t).Select(append(run, "gearmonkey.uid.*", "gearmonkey.cycle.*"), nil)
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

// A line that serves as it should is not noticed either: its mutants differ by their fault alone.
func TestSoundLine(t *testing.T) {
	s, err := suite(t).Select([]string{"gearmonkey.lock.*", "gearmonkey.pop.*", "gearmonkey.killed.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := conform.Runner{Parallel: 8, Timeout: 5 * time.Second, Start: func(ctx context.Context) (target.Target, error) {
		return (&Mutant{Name: "none", Hook: lined(line{turn: longest})}).Start(ctx)
	}}
	for _, res := range r.Run(t.Context(), s, nil) {
		if res.Verdict != conform.Passed {
			t.Errorf("%s %s: %s", res.Case.ID, res.Verdict, res.Note)
		}
	}
}

// Words are found in arrays, whatever they hold, and in lines.
func TestWords(t *testing.T) {
	for raw, want := range map[string][]string{
		"*2\r\n$4\r\nping\r\n$1\r\nx\r\n":        {"ping", "x"},
		"*2\r\n$1\r\n*\r\n$6\r\n$1\r\nab\r\n":    {"*", "$1\r\nab"},
		"*1\r\n$0\r\n\r\n":                       {""},
		"*0\r\n":                                 nil,
		"  ping  x\r\n":                          {"ping", "x"},
		"$4\n":                                   {"$4"},
		"\r\n":                                   {},
		"*3\r\n$1\r\na\r\n$0\r\n\r\n$1\r\nb\r\n": {"a", "", "b"},
	} {
		if got := words(raw); !slices.Equal(got, want) {
			t.Errorf("%q has the words %q, want %q", raw, got, want)
		}
	}
}

// values reads what list and bulk write, and nothing else.
func TestValues(t *testing.T) {
	for reply, want := range map[string][]string{
		list("a", "", "$1\r\n"): {"a", "", "$1\r\n"},
		bulk("x"):               {"x"},
		list():                  nil,
		null:                    nil,
		nullList:                nil,
		wrong:                   nil,
		integer(7):              nil,
	} {
		if got := values(reply); !slices.Equal(got, want) {
			t.Errorf("%q has the values %q, want %q", reply, got, want)
		}
	}
}

var _ refserver.Machine = newBench(gearmonkey.New(gearmonkey.Options{}))

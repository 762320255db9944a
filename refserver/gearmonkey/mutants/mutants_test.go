package mutants

import (
	"context"
	"slices"
	"testing"
	"time"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/refserver/inject"
)

// The table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
}

// A few mutants of every kind, end to end. An edit that changes nothing must not be noticed.
func TestSomeMutants(t *testing.T) {
	sound := conform.Sound{Start: server(func(*inject.Server) {})}
	mutanttest.Some(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, All(), []string{
		"first-ok-overtaken",               // a fault
		"lines-without-end",                // a limit
		"negative-size-is-0",               // another way to read
		"silence-broken",                   // something of its own time
		"protocol-errors-without-code",     // another answer to what is illegal
		"ids-by-connection",                // other words
		"hmset-replaces-the-hash",          // commands of the hook's own, before
		"output-expires-by-itself",         // and after
		"absent-field-empty",               // another reply
		"waits-for-a-key-to-become-a-list", // a command that is not answered
		"commands-overtake-a-wait",         // what does not wait
		"served-though-gone",               // another line, and who leaves it
		"served-stays-first",               // another turn in it
		"over-at-half-time",                // another time
		"latest-first",                     // another script
		"popped-job-queued-again",          // something at the end of a connection
		"half-close-unnoticed",             // what follows the end of a direction
		"woken-by-its-first-key",           // another reply to one who waited
		"subscribed-twice-sent-twice",      // messages of the hook's own
		"expiry-of-the-emptied",            // what is remembered of a key
		"one-script-at-a-time",             // and of a peer
		"commands-in-capitals-only",        // how a command is spelt
		"command-after-a-line-lost",        // and what it follows
		"woken-by-longer-names",            // who is woken
		"waiting-holds-up-its-function",    // and who is held up meanwhile
	}, []string{"gearmonkey.uid.*", "gearmonkey.cycle.*"})
}

// server starts a server with an edit.
func server(edit inject.Edit) func(context.Context) (target.Target, error) {
	return System.Mutants([]row{{Name: "none", Edit: edit}})[0].Start
}

// A line that serves as it should is not noticed either: its mutants differ by their fault alone.
func TestSoundLine(t *testing.T) {
	s, err := mutanttest.Suite(t, protocol.Protocol, "").Select([]string{"gearmonkey.lock.*", "gearmonkey.pop.*", "gearmonkey.killed.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := conform.Runner{Parallel: 8, Timeout: 5 * time.Second, Start: server(lined(line{turn: longest}))}
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
		if got := cut(raw); !slices.Equal(got, want) {
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

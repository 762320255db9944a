package mutants

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/refserver/inject"
)

// TestTable checks that the table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
}

// server starts a server with an edit.
func server(edit inject.Edit) func(context.Context) (target.Target, error) {
	return System.Mutants([]mutantSpec{{Name: "none", Edit: edit}})[0].Start
}

// TestCorrectLineFailsNoCase checks that a server with a correct line (the queue of waiting workers
// that the mutants of this kind use) passes all cases. So these mutants fail cases only because of
// their faults.
func TestCorrectLineFailsNoCase(t *testing.T) {
	s, err := mutanttest.Suite(t, protocol.Protocol, "").Select([]string{"gearmonkey.lock.*", "gearmonkey.pop.*", "gearmonkey.killed.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := conform.Runner{Parallel: 8, Timeout: 5 * time.Second, Start: server(lined(line{turn: longest}))}
		for _, res := range r.Run(t.Context(), s, nil) {
			if res.Verdict != verdict.Passed {
				t.Errorf("%s %s: %s", res.Case.ID, res.Verdict, res.Note)
			}
		}
	})
}

// TestWords checks that words are found in arrays with any contents, and in lines.
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

// TestValues checks that values decodes the output of list and bulk, and nothing else.
func TestValues(t *testing.T) {
	for reply, want := range map[string][]string{
		list("a", "", "$1\r\n"): {"a", "", "$1\r\n"},
		bulk("x"):               {"x"},
		list():                  nil,
		null:                    nil,
		nullList:                nil,
		"-ERR no\r\n":           nil,
		":7\r\n":                nil,
	} {
		if got := values(reply); !slices.Equal(got, want) {
			t.Errorf("%q has the values %q, want %q", reply, got, want)
		}
	}
}

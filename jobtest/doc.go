// Package jobtest tests programs that use a job queue, and job queue servers, in go test.
//
// [NewServer] starts a reference server for the test of a client or worker. The server can have faults, records all
// messages, and reports the rules of the protocol that clients and workers violate as errors of the test. [Conform]
// runs the conformance suite against a server, with one subtest for each case.
//
// Both work in virtual time, in bubbles of package testing/synctest: [Server.Dial] and [Listen] connect in memory, and
// Conform starts a Go server in a bubble for each case. A test of what happens after an hour then takes milliseconds.
//
// Protocols are named as in the commands of jobwire: gearman, beanstalk, gearmonkey or danga.
package jobtest

import (
	"slices"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/codec"
)

// entry returns the protocol with the name. It ends the test if there is none, or if a rule or level does not exist.
func entry(t testing.TB, protocol string, rules []codec.RuleID, levels []codec.Level) *catalog.Entry {
	t.Helper()
	e, err := catalog.Named(protocol)
	if err != nil {
		t.Fatalf("jobtest: %v; expected one of %s", err, strings.Join(catalog.Names(), ", "))
	}
	for _, id := range rules {
		if e.Protocol.Rule(id) == nil {
			t.Fatalf("jobtest: Waive: %s has no rule %q", e.Protocol.Title, id)
		}
	}
	for _, l := range levels {
		if !slices.Contains(codec.Levels, l) {
			t.Fatalf("jobtest: Levels: expected one of %v, got %q", codec.Levels, l)
		}
	}
	return e
}

package mutants

import (
	"bytes"
	"testing"

	protocol "jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/refserver/inject"
)

// TestTable checks that the table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
}

// TestSomeMutants runs a few mutants of every kind. An edit that changes nothing must not fail a case.
func TestSomeMutants(t *testing.T) {
	sound := conform.Baseline{Start: System.Mutants([]mutantSpec{{Name: "none", Edit: func(*inject.Server) {}}})[0].Start}
	mutanttest.RunSample(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, All(), []string{
		"wrong-magic-unanswered",         // a fault
		"one-retry",                      // an option of the server
		"schedule-range-unchecked",       // a waived rule
		"magic-unchecked",                // another decoder
		"header-in-pieces-lost",          // another way to read from the connection
		"cut-off-packet-ends-the-server", // a server that crashes
		"missing-timeout-awaited",        // a server that stops reading
		"reset-not-noticed",
		"unique-for-ever",
		"waiting-jobs-not-counted",
		"job-without-worker-fails", // a timer of the edit
	}, []string{"gearman.retry.*"})
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

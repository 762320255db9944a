package mutants

import (
	"bytes"
	"context"
	"testing"
	"time"

	protocol "jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/gearman"
)

// all is the table as the suite's self-test has it.
func all() []conform.Mutant {
	var all []conform.Mutant
	for _, m := range All() {
		all = append(all, conform.Mutant{Name: m.Name, About: m.About, Kills: m.Kills, Start: m.Start})
	}
	return all
}

// The table is sound, and leaves no case out.
func TestTable(t *testing.T) {
	mutants := All()
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), all(), 12, func(i int) bool {
		m := mutants[i]
		if _, err := m.faults(); err != nil {
			t.Error(err)
		}
		return m.Faults != nil || m.Hook != nil || m.Server != gearman.Options{} || m.Waive != nil
	})
}

// A few mutants of every kind, end to end. The bench alone must not be noticed.
func TestSomeMutants(t *testing.T) {
	sound := conform.Sound{Start: func(ctx context.Context) (target.Target, error) {
		return (&Mutant{Name: "none", Hook: func(*bench) {}}).Start(ctx)
	}}
	mutanttest.Some(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, all(), []string{
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

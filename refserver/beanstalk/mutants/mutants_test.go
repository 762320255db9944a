package mutants

import (
	"context"
	"slices"
	"testing"
	"time"

	protocol "jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/beanstalk"
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
		return m.Faults != nil || m.Hook != nil || m.Codec.MaxData != 0 || m.Codec.MaxLine != 0 || m.Codec.Waive != nil
	})
}

// A few mutants of every kind, end to end. The bench alone must not be noticed.
func TestSomeMutants(t *testing.T) {
	sound := conform.Sound{Start: func(ctx context.Context) (target.Target, error) {
		return (&Mutant{Name: "none", Hook: func(*bench) {}}).Start(ctx)
	}}
	mutanttest.Some(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, all(), []string{
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
	}, []string{"beanstalk.pipeline.*", "beanstalk.life.*"})
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

var _ refserver.Machine = (*bench)(nil)

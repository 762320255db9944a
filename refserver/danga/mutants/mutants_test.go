package mutants

import (
	"context"
	"testing"

	protocol "jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
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
		for _, id := range m.Waive {
			if protocol.Protocol.Rule(id) == nil {
				t.Errorf("%s: there is no rule %s", m.Name, id)
			}
		}
		return m.Hook != nil || m.Waive != nil
	})
}

// A few mutants of every kind, end to end. The bench alone must not be noticed.
func TestSomeMutants(t *testing.T) {
	sound := conform.Sound{Start: func(ctx context.Context) (target.Target, error) {
		return (&Mutant{Name: "none", Hook: func(*bench) {}}).Start(ctx)
	}}
	mutanttest.Some(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, all(), []string{
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
	}, []string{"danga.flow.*", "danga.connect.*"})
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

package mutants

import (
	"testing"

	protocol "jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/refserver/inject"
)

// The table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
}

// A few mutants of every kind, end to end. An edit that changes nothing must not be noticed.
func TestSomeMutants(t *testing.T) {
	sound := conform.Sound{Start: System.Mutants([]row{{Name: "none", Edit: func(*inject.Server) {}}})[0].Start}
	mutanttest.Some(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, All(), []string{
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
		"asking-does-not-end-sleep",       // a packet that no peer has sent
		"second-result-counts",            // what was heard before
		"result-of-anothers-job",          // a message that no peer may send
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

package mutants

import (
	"testing"

	protocol "jobwire/codec/danga"
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
		"magic-not-compared",              // a waived rule
		"rest-of-segment-dropped",         // another way to read from the connection
		"packet-blocks-others",            // another decoder
		"one-magic",                       // another header
		"unknown-type-answered",           // an illegal message accepted as legal
		"keys-in-any-case",                // another job
		"waiters-leave-together",          // at the end of a direction
		"retry-does-not-wake",             // by the message that wakes a worker
		"async-lost-with-worker",          // an end that the server does not notice
		"async-dropped",                   // packets that the edit sends
		"creation-overtaken",              // a late reply
		"result-for-creator-only",         // the record of a job
		"idle-worker-gets-others-jobs",    // another peer's job
		"lists-add-up",                    // another list
		"job-follows-noop",                // a timer of the edit
		"elapsed-little-endian",           // another number
		"asking-does-not-end-sleep",       // a packet that no peer has sent
		"second-result-counts",            // earlier messages
		"result-of-anothers-job",          // a message that the peer must not send
		"question-while-waiting-fails",    // another reply
		"length-of-empty-types-ignored",   // data interpreted as packets
		"long-progress-read-from-its-end", // bytes that no codec would return
	}, []string{"danga.flow.*", "danga.connect.*"})
}

// TestPacket checks that the end of a packet is found in any number of bytes.
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

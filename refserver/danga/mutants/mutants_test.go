package mutants

import (
	"testing"

	protocol "jobwire/codec/danga"
	"jobwire/conform/mutanttest"
)

// TestTable checks that the table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
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

package mutants

import (
	"bytes"
	"testing"

	protocol "jobwire/codec/gearman"
	"jobwire/conform/mutanttest"
)

// TestTable checks that the table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
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

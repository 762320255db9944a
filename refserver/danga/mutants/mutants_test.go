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

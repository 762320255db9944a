package mutants

import (
	"io"
	"strings"
	"testing"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform/mutanttest"
)

// TestTable: the table of mutants is complete and consistent, and each case about clients or workers fails for at least one
// mutant.
func TestTable(t *testing.T) {
	all := All()
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, "Client", "Worker"), all, 40, func(i int) error {
		return all[i].Program(t.Context(), "", strings.NewReader(""), io.Discard) // panics if the edit does not apply
	})
}

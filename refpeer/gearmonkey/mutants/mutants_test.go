package mutants

import (
	"slices"
	"testing"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/conform/mutanttest"
	"jobwire/refpeer/gearmonkey"
)

// TestTable: the table of mutants is complete and consistent, and each case about clients or workers fails for at least one
// mutant.
func TestTable(t *testing.T) {
	all := slices.Concat(creating, waiting, calling, getFaults, coming, jobLookupFaults, working, updating)
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, "Client", "Worker"), All(), 40, func(i int) error {
		all[i].Edit(gearmonkey.Document()) // panics if the edit does not apply
		return nil
	})
}

// Package mutants contains Gearman clients and workers with one deliberate fault each. They prove that jobwire audit
// finds faults: a fault that it does not find is a gap in it.
//
// A mutant is the reference client or worker with an edited program. It is listed with the rule that it violates, or
// with the fault profile under which it fails and the expected verdict.
package mutants

import (
	"embed"

	"jobwire/internal/mutant"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
)

//go:embed *.yaml
var rows embed.FS

var kit = &faults.Kit{
	Document: gearman.Document,
	Rows:     rows,
	Header:   12,
	LengthAt: 8,
}

// All returns the mutants.
func All() []mutant.Mutant { return kit.Mutants("Worker", "Client") }

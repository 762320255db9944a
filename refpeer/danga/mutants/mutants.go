// Package mutants contains applications and workers of the Danga draft with one deliberate fault each. They prove that
// jobwire audit finds faults: a fault that it does not find is a gap in it.
//
// A mutant is the reference application or worker with an edited program. It is listed with the rule that it violates,
// or with the fault profile under which it fails and the expected verdict.
package mutants

import (
	"embed"

	"jobwire/internal/mutant"
	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/faults"
)

//go:embed *.yaml
var rows embed.FS

var kit = &faults.Kit{
	Document: danga.Document,
	Rows:     rows,
	Header:   9,
	LengthAt: 5,
}

// All returns the mutants.
func All() []mutant.Mutant { return kit.Mutants("Worker", "Application") }

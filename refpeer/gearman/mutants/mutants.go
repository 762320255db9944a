// Package mutants has Gearman clients and workers with one deliberate fault each.
// They prove that jobwire audit finds what is wrong: a fault that it does not find is a gap in it.
//
// A mutant is the reference client or worker with an edited program. Beside it stands the rule that it
// breaks, or the condition under which it fails, and how.
package mutants

import (
	"slices"

	protocol "jobwire/codec/gearman"
	"jobwire/internal/mutant"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
)

type fault = faults.Fault[program]

// All returns the mutants: those that break rules first.
func All() []mutant.Mutant {
	return slices.Concat(of("Worker", conduct), of("Worker", working), of("Worker", cutShort), of("Client", asking), of("Client", cutShortByClient), of("Client", reading), of("Worker", hearing),
		of("Client", conditions), of("Worker", conditionsOfWorkers))
}

func of(role string, all []fault) []mutant.Mutant {
	return faults.Of(protocol.Protocol, role, all, gearman.Document, func(p *program) mutant.Program { return (&gearman.Driver{Program: p}).Drive })
}

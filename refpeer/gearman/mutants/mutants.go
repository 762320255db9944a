// Package mutants contains Gearman clients and workers with one deliberate fault each. They prove that jobwire audit finds
// faults: a fault that it does not find is a gap in it.
//
// A mutant is the reference client or worker with an edited program. It is listed with the rule that it violates, or with
// the fault profile under which it fails and the expected verdict.
package mutants

import (
	"slices"

	protocol "jobwire/codec/gearman"
	"jobwire/internal/mutant"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
)

type fault = faults.Fault[program]

// All returns the mutants: those that violate rules first.
func All() []mutant.Mutant {
	return slices.Concat(of("Worker", orderFaults), of("Worker", working), of("Worker", cutShort), of("Client", asking), of("Client", cutShortByClient), of("Client", reading), of("Worker", receiveFaults),
		of("Client", conditions), of("Worker", conditionsOfWorkers))
}

func of(role string, all []fault) []mutant.Mutant {
	return faults.Of(protocol.Protocol, role, all, gearman.Document, func(p *program) mutant.Program { return (&gearman.Driver{Program: p}).Drive })
}

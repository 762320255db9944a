// Package mutants contains applications and workers of the Danga draft with one deliberate fault each. They prove that
// jobwire audit finds faults: a fault that it does not find is a gap in it.
//
// A mutant is the reference application or worker with an edited program. It is listed with the rule that it violates, or
// with the fault profile under which it fails and the expected verdict.
package mutants

import (
	"slices"

	protocol "jobwire/codec/danga"
	"jobwire/internal/mutant"
	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

type (
	program = danga.Program
	task    = danga.Task
	fault   = faults.Fault[program]
)

// header is the length of a packet's header; lengthAt is the offset of the field with the length of the data after it.
const (
	header   = 9
	lengthAt = 5
)

var edit = faults.Editor[program, task]{
	Sequences: func(p *program) []*danga.Sequence {
		return []*danga.Sequence{&p.Create, &p.Meanwhile, &p.Status, &p.Result, &p.Enter, &p.Ask, &p.Sleep, &p.Report, &p.End, &p.Leave}
	},
	Quirks: func(p *program) *line.Quirks { return &p.Quirks },
	Header: header, LengthAt: lengthAt,
}

// All returns the mutants: those that violate rules first.
func All() []mutant.Mutant {
	return slices.Concat(of("Worker", orderFaults), of("Worker", working), of("Application", asking), of("Application", reading), of("Worker", receiveFaults))
}

func of(role string, all []fault) []mutant.Mutant {
	return faults.Of(protocol.Protocol, role, all, danga.Document, func(p *program) mutant.Program { return (&danga.Driver{Program: p}).Drive })
}

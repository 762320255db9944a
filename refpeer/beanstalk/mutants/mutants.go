// Package mutants contains Beanstalk clients with one deliberate fault each. They prove that jobwire audit finds faults
// of clients: a fault that it does not find is a gap in it.
//
// A mutant is the reference client with an edited program. It is listed with the rule that it violates, or with the fault
// profile under which it fails and the expected verdict.
package mutants

import (
	"slices"

	protocol "jobwire/codec/beanstalk"
	"jobwire/internal/mutant"
	"jobwire/refpeer/beanstalk"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

type (
	program = beanstalk.Program
	task    = beanstalk.Task
	fault   = faults.Fault[program]
)

var edit = faults.Editor[program, task]{
	Sequences: func(p *program) []*beanstalk.Sequence {
		return []*beanstalk.Sequence{&p.Use, &p.Watch, &p.Ignore, &p.Put, &p.Reserve, &p.Delete, &p.Release, &p.Bury, &p.Touch, &p.Peek, &p.Kick, &p.Stats}
	},
	Quirks: func(p *program) *line.Quirks { return &p.Quirks },
}

// All returns the mutants.
func All() []mutant.Mutant {
	return faults.Of(protocol.Protocol, "Client", slices.Concat(numbers, lines, incompleteFaults, ownerFaults, logic, reading), beanstalk.Document,
		func(p *program) mutant.Program { return (&beanstalk.Driver{Program: p}).Drive })
}

// Package mutants contains Gearman servers with one deliberate fault each. They
// prove the conformance suite: a case that none of them fails tests nothing.
package mutants

import (
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

type (
	row     = inject.Row
	message = inject.Message
	peer    = inject.Peer
	job     = inject.Job
)

var system = inject.Protocol{
	Protocol: protocol.Protocol,
	New:      with(gearman.Options{}),
	Waive:    []codec.RuleID{protocol.RuleAdminSpacing},
	Record:   record,
}

func with(o gearman.Options) func() refserver.Machine {
	return func() refserver.Machine { return gearman.New(o) }
}

// All returns the mutants, in the order of the sections of the specification.
func All() []mutant.Mutant { return system.Mutants(all) }

var all = slices.Concat(packets, basics, requests, responses, workers, grabbing, administration, retries, field, beyond)

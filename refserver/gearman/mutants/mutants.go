// Package mutants contains Gearman servers with one deliberate fault each. They test the conformance suite: a
// case that none of them fails tests nothing.
package mutants

import (
	"embed"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

type (
	mutantSpec = inject.MutantSpec
	message    = inject.Message
	job        = inject.Job
)

// System makes the reference server faulty.
var System = inject.Protocol{
	Protocol: protocol.Protocol,
	New:      with(gearman.Options{}),
	Waive:    []codec.RuleID{protocol.RuleAdminSpacing},
	Record:   record,
}

func with(o gearman.Options) func() refserver.Machine {
	return func() refserver.Machine { return gearman.New(o) }
}

// All returns the mutants: those of the YAML files, then those that need Go.
func All() []mutant.Mutant { return System.Mutants(all()) }

// Observe starts the reference server and observes the faults of all mutants.
var Observe = System.Observe(all)

//go:embed *.yaml
var files embed.FS

var all = inject.Specs(files, inGo)

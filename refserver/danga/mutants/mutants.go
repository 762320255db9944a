// Package mutants contains job servers of the Danga draft with one deliberate fault each. They test the
// conformance suite: a case that none of them fails tests nothing.
package mutants

import (
	"embed"

	protocol "jobwire/codec/danga"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/danga"
	"jobwire/refserver/inject"
)

type (
	mutantSpec = inject.MutantSpec
	message    = inject.Message
	peer       = inject.Peer
	job        = inject.Job
)

// System makes the reference server faulty.
var System = inject.Protocol{
	Protocol: protocol.Protocol,
	New:      func() refserver.Machine { return danga.New(danga.Options{}) },
	Raw:      []string{"noop"},
	Record:   record,
}

// All returns the mutants: those of the YAML files, then those that need Go.
func All() []mutant.Mutant { return System.Mutants(all()) }

// Observe starts the reference server and observes the faults of all mutants.
var Observe = System.Observe(all)

//go:embed *.yaml
var files embed.FS

var all = inject.Specs(files)

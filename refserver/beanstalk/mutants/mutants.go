// Package mutants contains Beanstalk servers with one deliberate fault each. They test the conformance suite: a
// case that none of them fails tests nothing.
package mutants

import (
	"embed"

	protocol "jobwire/codec/beanstalk"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/beanstalk"
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
	New:      func() refserver.Machine { return beanstalk.New(beanstalk.Options{}) },
	Paired:   true,
	Raw:      []string{"INTERNAL_ERROR"},
	Record:   record,
}

// All returns the mutants: those of fault scripts in YAML files, then those that need Go.
func All() []mutant.Mutant { return System.Mutants(all()) }

// Observe starts the reference server and observes the faults of all mutants.
var Observe = System.Observe(all)

//go:embed *.yaml
var files embed.FS

var all = inject.Specs(files, inGo)

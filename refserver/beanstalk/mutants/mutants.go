// Package mutants contains Beanstalk servers with one deliberate fault each.
// They prove the conformance suite: a case that none of them fails tests nothing.
package mutants

import (
	"slices"

	protocol "jobwire/codec/beanstalk"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/beanstalk"
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
	New:      func() refserver.Machine { return beanstalk.New(beanstalk.Options{}) },
	Paired:   true,
	Raw:      []string{"INTERNAL_ERROR"},
	Record:   record,
}

// All returns the mutants, in the order of the sections of the specification.
func All() []mutant.Mutant { return system.Mutants(all) }

var all = slices.Concat(lines, numbers, names, refusals, connections, bodies, lifecycle, tubes, producer, reserving, working, peeking, statistics, listing)

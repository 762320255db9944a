// Package mutants contains job servers of the Danga draft with one deliberate fault each.
// They prove the conformance suite: a case that none of them fails tests nothing.
package mutants

import (
	"slices"

	protocol "jobwire/codec/danga"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/danga"
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
	New:      func() refserver.Machine { return danga.New(danga.Options{}) },
	Raw:      []string{"noop"},
	Record:   record,
}

// All returns the mutants, in the order of the sections of the specification.
func All() []mutant.Mutant { return system.Mutants(all) }

var all = slices.Concat(segments, duplicates, retries, conversations, applications, packets, arguments, abilities, sleeping, creating, assigning, progressing, finishing, boundaries)

// Package mutants has GearMonkey clients and workers that are wrong on purpose, each in one
// way. They prove the cases of the conformance suite that judge clients and workers: one
// that none of them fails tests nothing.
//
// A mutant is the reference client or worker with edited sequences. The cases
// that it fails are named beside it.
package mutants

import (
	"context"
	"io"
	"slices"
	"strings"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/refpeer/gearmonkey"
)

// Mutant is one faulty client or worker.
type Mutant struct {
	Name  string   // says the fault
	About string   // a sentence
	Role  string   // whose it is: a role of the protocol
	Kills []string // IDs of the conformance cases that it fails

	// Edit makes the fault. It is called once for each life of a program, which keeps
	// what it must remember in its closures.
	Edit func(*gearmonkey.Program)
}

// All returns the mutants: clients first, in the order of the document's sections.
func All() []Mutant {
	return slices.Concat(
		of("Client", creating), of("Client", waiting), of("Client", calling), of("Client", looking),
		of("Worker", coming), of("Worker", finding), of("Worker", working), of("Worker", updating))
}

func of(role string, all []Mutant) []Mutant {
	all = slices.Clone(all)
	for i := range all {
		all[i].Role = role
	}
	return all
}

// Drive is the mutant as a program under test.
func (m *Mutant) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	p := gearmonkey.Document()
	m.Edit(p)
	return (&gearmonkey.Driver{Program: p}).Drive(ctx, addr, tasks, answers)
}

// cases makes IDs of names.
func cases(names string) []string {
	ids := strings.Fields(names)
	for i := range ids {
		ids[i] = protocol.Protocol.Name + "." + ids[i]
	}
	return ids
}

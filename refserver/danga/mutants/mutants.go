// Package mutants has job servers of the Danga draft that are wrong on purpose, each in one
// way. They prove the conformance suite: a case that none of them fails tests nothing.
//
// A mutant is the reference server with a rule waived, or with a [Hook]. The cases
// that it fails are named beside it.
package mutants

import (
	"context"
	"net"
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/danga"
	"jobwire/refserver/mutant"
)

// Mutant is one faulty server.
type Mutant struct {
	Name  string   // says the fault
	About string   // a sentence
	Kills []string // IDs of the conformance cases that it fails

	Waive []codec.RuleID // what it does not hold its peers to
	Hook  Hook           // may be nil
}

// Hook changes what a server does. It is called once for each life of a server, and
// keeps what it must remember in its closures.
type Hook func(*bench)

// All returns the mutants, in the order of the document's sections.
func All() []Mutant {
	return slices.Concat(segments, duplicates, retries, conversations, applications, packets, arguments, abilities, sleeping, creating, assigning, progressing, finishing)
}

// cases makes IDs of names.
func cases(names string) []string { return mutant.Cases(protocol.Protocol, names) }

// Start runs the server in this process.
func (m *Mutant) Start(ctx context.Context) (target.Target, error) {
	return target.Func(ctx, m.Name, func(ctx context.Context, ln net.Listener) error {
		b := newBench(danga.New(danga.Options{}))
		o := refserver.Options{Codec: codec.Options{Waive: m.Waive}}
		if m.Hook != nil {
			m.Hook(b)
			o.Intercept = b.intercept
		}
		o.Protocol = mutant.Decoding(protocol.Protocol, b.decode)
		return refserver.New(b, o).Serve(ctx, mutant.Listen(ln, b.wrap))
	})
}

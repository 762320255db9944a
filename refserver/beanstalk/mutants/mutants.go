// Package mutants has Beanstalk servers that are wrong on purpose, each in one way.
// They prove the conformance suite: a case that none of them fails tests nothing.
//
// A mutant is the reference server with a fault in the language of
// [refserver.ParseFault], with other limits, or with a [Hook] where the
// fault depends on what went before. The cases that it fails are named beside it.
package mutants

import (
	"context"
	"net"
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/beanstalk"
	"jobwire/refserver/mutant"
)

// Mutant is one faulty server.
type Mutant struct {
	Name  string   // says the fault
	About string   // a sentence
	Kills []string // IDs of the conformance cases that it fails

	Faults []string      // as users write them
	Codec  codec.Options // limits, and rules that it does not hold its peers to
	Hook   Hook          // may be nil
}

// Hook changes what a server does. It is called once for each life of a server, and
// keeps what it must remember in its closures.
type Hook func(*bench)

// All returns the mutants, in the order of the document's sections.
func All() []Mutant {
	return slices.Concat(lines, numbers, names, refusals, connections, bodies, lifecycle, tubes, producer, reserving, working, peeking, statistics, listing)
}

// cases makes IDs of names.
func cases(names string) []string { return mutant.Cases(protocol.Protocol, names) }

// Start runs the server in this process.
func (m *Mutant) Start(ctx context.Context) (target.Target, error) {
	faults, err := m.faults()
	if err != nil {
		return nil, err
	}
	return target.Func(ctx, m.Name, func(ctx context.Context, ln net.Listener) error {
		b := newBench(beanstalk.New(beanstalk.Options{}))
		if m.Hook != nil {
			m.Hook(b)
		}
		o := refserver.Options{Protocol: mutant.Decoding(protocol.Protocol, b.decode), Codec: m.Codec, Faults: faults}
		if m.Hook != nil {
			o.Intercept = b.intercept
		}
		return refserver.New(b, o).Serve(ctx, mutant.Listen(ln, b.wrap))
	})
}

func (m *Mutant) faults() ([]refserver.Fault, error) {
	return mutant.Faults(protocol.Protocol, m.Name, m.Faults)
}

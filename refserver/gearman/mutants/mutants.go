// Package mutants has Gearman servers that are wrong on purpose, each in one way. They
// prove the conformance suite: a case that none of them fails tests nothing.
//
// A mutant is the reference server with a fault in the language of
// [refserver.ParseFault], with other options, or with a [Hook] where the fault
// depends on what went before. The cases that it fails are named beside it.
package mutants

import (
	"context"
	"net"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/gearman"
	"jobwire/refserver/mutant"
)

// Mutant is one faulty server.
type Mutant struct {
	Name  string   // says the fault
	About string   // a sentence
	Kills []string // IDs of the conformance cases that it fails

	Faults []string        // as users write them
	Server gearman.Options // of the reference machine
	Waive  []codec.RuleID  // rules that it does not hold its peers to
	Hook   Hook            // may be nil

	// Slow is how long it lets data wait before it reads it. The end of a connection
	// it hears at once, so that the order of a leave and of what others say is sure.
	Slow time.Duration
}

// Hook changes what a server does. It is called once for each life of a server, and
// keeps what it must remember in its closures.
type Hook func(*bench)

// All returns the mutants, in the order of the document's sections.
func All() []Mutant {
	var all []Mutant
	for _, section := range [][]Mutant{packets, basics, requests, responses, workers, grabbing, administration, retries, field, beyond} {
		all = append(all, section...)
	}
	return all
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
		b := newBench(gearman.New(m.Server), m.Slow)
		if m.Hook != nil {
			m.Hook(b)
		}
		return refserver.New(b, refserver.Options{
			Protocol:  mutant.Decoding(protocol.Protocol, b.decode),
			Codec:     codec.Options{Waive: append([]codec.RuleID{protocol.RuleAdminSpacing}, m.Waive...)},
			Faults:    faults,
			Intercept: b.intercept,
		}).Serve(ctx, b.listener(ln))
	})
}

func (m *Mutant) faults() ([]refserver.Fault, error) {
	return mutant.Faults(protocol.Protocol, m.Name, m.Faults)
}

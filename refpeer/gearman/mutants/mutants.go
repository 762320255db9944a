// Package mutants has Gearman clients and workers that are wrong on purpose, each in one way.
// They prove that jobwire audit names what is wrong: a fault that nobody names is a gap in it.
//
// A mutant is the reference client or worker with an edited program. Beside it stands the rule that it
// breaks, or the condition under which it fails, and how.
package mutants

import (
	"context"
	"io"
	"slices"

	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
)

// Mutant is one faulty client or worker.
type Mutant = faults.Mutant

type fault = faults.Fault[program]

// All returns the mutants: those that break rules first.
func All() []Mutant {
	return slices.Concat(of("Worker", conduct), of("Worker", working), of("Client", asking), of("Client", reading), of("Worker", hearing))
}

func of(role string, all []fault) []Mutant {
	return faults.Of(role, all, gearman.Document, func(p *program, ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		return (&gearman.Driver{Program: p}).Drive(ctx, addr, tasks, answers)
	})
}

// Package mutants has applications and workers of the Danga draft that are wrong on purpose, each in one way.
// They prove that jobwire audit names what is wrong: a fault that nobody names is a gap in it.
//
// A mutant is the reference application or worker with an edited program. Beside it stands the rule that it
// breaks, or the condition under which it fails, and how.
package mutants

import (
	"context"
	"io"
	"slices"

	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

type (
	program = danga.Program
	task    = danga.Task
	fault   = faults.Fault[program]
)

// Mutant is one faulty application or worker.
type Mutant = faults.Mutant

// header is the length of a packet's header; at lengthAt stands the length of what follows.
const (
	header   = 9
	lengthAt = 5
)

var edit = faults.Editor[program, task]{
	Sequences: func(p *program) []*danga.Sequence {
		return []*danga.Sequence{&p.Create, &p.Status, &p.Result, &p.Enter, &p.Ask, &p.Sleep, &p.Tell, &p.End, &p.Leave}
	},
	Habits: func(p *program) *line.Habits { return &p.Habits },
	Header: header, LengthAt: lengthAt,
}

// All returns the mutants: those that break rules first.
func All() []Mutant {
	return slices.Concat(of("Worker", conduct), of("Worker", working), of("Application", asking), of("Application", reading), of("Worker", hearing))
}

func of(role string, all []fault) []Mutant {
	return faults.Of(role, all, danga.Document, func(p *program, ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		return (&danga.Driver{Program: p}).Drive(ctx, addr, tasks, answers)
	})
}

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

	"jobwire/codec"
	"jobwire/refpeer/gearman"
)

// Mutant is one faulty client or worker.
type Mutant struct {
	Name  string
	About string
	Role  string // whose it is

	Rule      codec.RuleID // that it breaks; "" is none
	Condition string       // under which it falls short; "" is always
	Verdict   string       // how; "" is not at all, or as it comes

	Fragile bool // it may fall short by chance under any other condition, too

	Edit func(*gearman.Program)
}

// All returns the mutants: those that break rules first.
func All() []Mutant {
	return slices.Concat(of("Worker", conduct), of("Worker", working), of("Client", asking), of("Client", reading), of("Worker", hearing))
}

func of(role string, all []Mutant) []Mutant {
	all = slices.Clone(all)
	for i := range all {
		all[i].Role = role
	}
	return all
}

// Drive is the mutant as a driver.
func (m *Mutant) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	p := gearman.Document()
	m.Edit(p)
	return (&gearman.Driver{Program: p}).Drive(ctx, addr, tasks, answers)
}

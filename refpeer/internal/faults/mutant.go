package faults

import (
	"context"
	"io"
	"strings"

	"jobwire/codec"
	"jobwire/internal/mutant"
)

// Fault is an edit of a program P. The other fields are those of [mutant.Mutant]; KilledBy contains case names without the
// name of the protocol.
type Fault[P any] struct {
	Name, About, KilledBy    string
	Rule, Condition, Verdict string
	Fragile                  bool
	Edit                     func(*P) // called once for each start of a program
}

// Of returns the mutants of a role. drive returns a driver with an edited program.
func Of[P any](protocol *codec.Protocol, role string, all []Fault[P], program func() *P, drive func(*P) mutant.Program) []mutant.Mutant {
	var out []mutant.Mutant
	for _, f := range all {
		m := mutant.Mutant{Name: f.Name, About: f.About, KilledBy: strings.Fields(f.KilledBy), Role: role,
			Rule: f.Rule, Condition: f.Condition, Verdict: f.Verdict, Fragile: f.Fragile,
			Program: func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				p := program()
				f.Edit(p)
				return drive(p)(ctx, addr, tasks, answers)
			}}
		for i := range m.KilledBy {
			m.KilledBy[i] = protocol.Name + "." + m.KilledBy[i]
		}
		out = append(out, m)
	}
	return out
}

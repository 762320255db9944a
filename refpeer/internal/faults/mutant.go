package faults

import (
	"context"
	"io"

	"jobwire/codec"
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

	// Drive is the mutant as a driver.
	Drive func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error
}

// Fault is a mutant as a row: an edit of a program P.
type Fault[P any] struct {
	Name, About        string
	Rule               codec.RuleID
	Condition, Verdict string
	Fragile            bool
	Edit               func(*P)
}

// Of makes mutants of a role's faults. drive is the driver of an edited program.
func Of[P any](role string, all []Fault[P], document func() *P, drive func(p *P, ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error) []Mutant {
	var out []Mutant
	for _, f := range all {
		out = append(out, Mutant{Name: f.Name, About: f.About, Role: role, Rule: f.Rule, Condition: f.Condition, Verdict: f.Verdict, Fragile: f.Fragile,
			Drive: func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				p := document()
				f.Edit(p)
				return drive(p, ctx, addr, tasks, answers)
			}})
	}
	return out
}

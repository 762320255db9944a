// Package mutant describes servers, clients and workers that have one deliberate fault each.
// They prove a test suite: a test case that no mutant fails tests nothing.
package mutant

import (
	"context"
	"io"

	"jobwire/internal/target"
)

// Program is a client or a worker under test. It connects to addr, reads one task a
// line, does it and writes one line with the result; it returns at the end of the
// tasks. docs/drivers.md describes the lines.
type Program = func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error

// Mutant is a server, a client or a worker with one deliberate fault.
type Mutant struct {
	Name     string   // describes the fault: "noop-not-sent"
	About    string   // a sentence
	KilledBy []string // the conformance cases that it must fail, by name or, for one instance, by ID; it must pass all others

	Start func(context.Context) (target.Target, error) // of a server

	Role    string // of a client or worker
	Program Program

	Rule      string // the rule that a client or worker breaks; "" if none
	Condition string // the fault profile under which it fails; "" if always
	Verdict   string // how it fails; "" if it does not, or in more than one way
	Fragile   bool   // it may also fail by chance under other fault profiles
}

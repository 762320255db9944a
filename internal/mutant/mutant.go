// Package mutant describes servers, clients and workers with one deliberate fault each. They test a test suite: a test
// case that no mutant fails tests nothing.
package mutant

import (
	"context"
	"io"

	"jobwire/internal/target"
)

// Program is a client or a worker under test. It connects to addr, reads one task per line, performs it and writes one
// line with the result. It returns at the end of the tasks. docs/drivers.md describes the lines.
type Program = func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error

// Observe starts a faultless server that evaluates the conditions of the faults of all faulty servers, without effect.
// effective returns the names of the faulty servers that would have behaved differently until now. It may be called
// after the server has stopped.
type Observe = func(ctx context.Context) (t target.Target, effective func() map[string]bool, err error)

// Mutant is a server, a client or a worker with one deliberate fault.
type Mutant struct {
	Name  string // describes the fault: "noop-not-sent"
	About string // describes the fault in a sentence
	// the conformance cases that it must fail, by name or, for one instance, by ID; it must pass all others
	KilledBy []string

	Start func(context.Context) (target.Target, error) // of a server

	Role    string // of a client or worker
	Program Program

	Rule      string // the rule that a client or worker violates; "" if none
	Condition string // the fault profile under which it fails; "": it fails without one
	Verdict   string // how it fails; "" if it does not fail, or in more than one way
	Fragile   bool   // it may also fail by chance under other fault profiles
}

// Package cli has what all commands of jobwire share and that is about no command in particular: exit statuses, flags
// and the limits of their values, help, completion and man pages, and output that escapes foreign text.
package cli

import (
	"context"
	"errors"
	"fmt"
)

// Exit statuses, the same for every command.
const (
	StatusOK          = 0 // every check passed
	StatusFailed      = 1 // a check failed, or the command could not do its work
	StatusUsage       = 2 // the command line, or the contents of a file that it names, is invalid
	StatusUnreachable = 3 // the target could not be reached, or crashed
	StatusInvalid     = 4 // the run does not show whether the target is correct
)

// Error is an error that sets the exit status. A nil Err is not printed: the command has already reported what failed.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usage marks an error that the user can correct on the command line or in a file.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &Error{StatusUsage, err}
}

// Failed makes err, which may be nil, an error of a check: a command that prints it has done its work.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	return &Error{StatusFailed, err}
}

// ErrSelfTest is the error of a self-test that the user interrupted.
var ErrSelfTest = errors.New("the self-test was interrupted, so its report is incomplete")

// UntilInterrupt calls do and returns its error. When ctx ends, it returns without waiting for do: servers in memory
// need no orderly end, and may have much to do before virtual time passes.
func UntilInterrupt(ctx context.Context, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ErrSelfTest
	}
}

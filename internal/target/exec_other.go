//go:build !unix

package target

import (
	"context"
	"errors"
	"os/exec"
)

var errUnix = errors.New("jobwire can start programs on Unix only; start the program yourself")

// GroupCommand returns an error, because process groups exist on Unix only.
func GroupCommand(context.Context, []string, string) (*exec.Cmd, error) { return nil, errUnix }

// WaitGroup is [exec.Cmd.Wait].
func WaitGroup(cmd *exec.Cmd) error { return cmd.Wait() }

func (c *Command) begin(context.Context, string) (*life, error) {
	return nil, &Error{Target: c.Name, Reason: "could not start", Err: errUnix}
}

// stopped returns false: it is not known whether a signal has stopped a process.
func stopped(int) bool { return false }

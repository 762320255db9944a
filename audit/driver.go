package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobwire/internal/mutant"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// Driver is a client or a worker under test, as described in docs/drivers.md.
type Driver = mutant.Program

// driving is a running driver.
type driving struct {
	*play.Driver
	run   *run
	asked bool
}

// Errors of drivers that do not answer or exit.
var (
	errNoAnswer = errors.New("the driver did not answer")
	errExited   = errors.New("the driver exited without an answer")
	errNoExit   = errors.New("the driver did not exit after the end of its standard input")
)

// ask sends a task to the driver and returns its answer.
func (d *driving) ask(ctx context.Context, task string, limit time.Duration) (string, error) {
	var first <-chan struct{}
	within := limit
	if !d.asked { // the time to start does not count for the task
		d.asked, first = true, d.run.connected
		limit += d.run.opts.StartupTimeout
	}
	left := newStallTimer(limit)
	defer left.Stop()
	sent := make(chan struct{})
	go func() {
		d.Send(task)
		close(sent)
	}()
	defer func() { <-sent }()
	for {
		select {
		case a, ok := <-d.Answers:
			if !ok {
				return "", errExited
			}
			return a, nil
		case <-first:
			first = nil
			left.restart(within)
		case <-left.C:
			if left.over() {
				d.Tasks.CloseWithError(errNoAnswer)
				return "", errNoAnswer
			}
		case <-ctx.Done():
			d.Tasks.CloseWithError(ctx.Err())
			return "", ctx.Err()
		}
	}
}

// verdict converts an error of ask to a verdict with its reason: a driver that exited has crashed, and one that did not
// answer within limit hangs.
func (d *driving) verdict(err error, limit time.Duration) (verdict.Verdict, string) {
	if err == errExited {
		if d.Err != nil {
			err = fmt.Errorf("%w: %w", err, d.Err)
		}
		return verdict.Crashed, err.Error()
	}
	return verdict.Hung, fmt.Sprintf("%v within %v", err, limit)
}

// finish closes the input of the driver, waits until it exits, and returns its error.
func (d *driving) finish() error {
	d.Tasks.Close()
	left := newStallTimer(max(2*time.Second, d.run.opts.Limit))
	defer left.Stop()
	defer d.Kill()
	for {
		select {
		case <-d.Exited:
			return d.Err
		case <-left.C:
			if left.over() {
				d.run.hung.Store(true)
				d.Kill()
				<-d.Exited
				return errNoExit
			}
		}
	}
}

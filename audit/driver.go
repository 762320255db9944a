package audit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
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
	again bool // an earlier driver of the run has connected
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
		d.asked = true
		limit += d.run.opts.StartupTimeout
		if !d.again {
			first = d.run.connected
		}
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

// outside lists the signals with which users and systems end programs, and the exit statuses with which a shell reports
// that they have ended its command.
var outside = map[syscall.Signal]bool{syscall.SIGKILL: true, syscall.SIGTERM: true, syscall.SIGINT: true,
	syscall.SIGHUP: true}

// crash returns the verdict on a driver that exited with an error, and what happened. That another process, or a lack
// of memory, has ended it shows nothing about the driver.
func crash(err error) (verdict.Verdict, string) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() && outside[status.Signal()] || outside[syscall.Signal(exit.ExitCode()-128)] {
			return verdict.Inconclusive, "another process or a lack of memory ended the driver: " + err.Error()
		}
	}
	return verdict.Crashed, "the driver exited with an error: " + err.Error()
}

// verdict converts an error of ask to a verdict with its reason: a driver that exited has crashed, and one that did not
// answer within limit hangs.
func (d *driving) verdict(err error, limit time.Duration) (verdict.Verdict, string) {
	if err == errExited {
		if d.Err == nil {
			return verdict.Crashed, err.Error()
		}
		v, note := crash(d.Err)
		if v == verdict.Crashed {
			note = fmt.Errorf("%w: %w", err, d.Err).Error()
		}
		return v, note
	}
	return verdict.Hung, fmt.Sprintf("%v within %v", err, limit)
}

// exited reports whether the driver has exited.
func (d *driving) exited() bool {
	select {
	case <-d.Exited:
		return true
	default:
		return false
	}
}

// end ends the driver.
func (d *driving) end() {
	d.Kill()
	d.Tasks.Close()
	<-d.Exited
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

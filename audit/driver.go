package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"jobwire/codec/transcript"
)

// Driver is a client or a worker under test, as described in docs/drivers.md: it connects to addr, reads tasks, answers
// each with one line, and returns at the end of the tasks.
type Driver func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error

// driving is a running driver.
type driving struct {
	run     *run
	tasks   *io.PipeWriter
	answers chan string
	ended   chan struct{}
	err     error
	cancel  context.CancelFunc
	asked   bool
}

// Errors of drivers that do not answer or exit.
var (
	errNoAnswer = errors.New("the driver did not answer")
	errExited   = errors.New("the driver exited without an answer")
	errNoExit   = errors.New("the driver did not exit after the end of its standard input")
)

// maxAnswer is the maximum length of an answer, in bytes.
const maxAnswer = 80 << 20

// drive starts a driver.
func (r *run) drive(ctx context.Context, driver Driver, addr string) *driving {
	ctx, cancel := context.WithCancel(ctx)
	in, tasks := io.Pipe()
	out, answers := io.Pipe()
	d := &driving{run: r, tasks: tasks, answers: make(chan string), ended: make(chan struct{}), cancel: cancel}
	go func() {
		lines := bufio.NewReaderSize(out, readSize)
		for {
			answer, err := transcript.ReadLine(lines, maxAnswer)
			if err != nil {
				out.CloseWithError(err)
				return
			}
			select {
			case d.answers <- answer:
			case <-ctx.Done():
			}
		}
	}()
	go func() {
		defer close(d.ended)
		d.err = driver(ctx, addr, in, answers)
		in.Close()
		answers.Close()
	}()
	return d
}

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
		w := bufio.NewWriterSize(d.tasks, readSize)
		w.WriteString(task)
		w.WriteByte('\n')
		w.Flush()
		close(sent)
	}()
	defer func() { <-sent }()
	for {
		select {
		case a := <-d.answers:
			return a, nil
		case <-first:
			first = nil
			left.restart(within)
		case <-d.ended:
			select {
			case a := <-d.answers:
				return a, nil
			case <-time.After(50 * time.Millisecond):
			}
			d.tasks.Close()
			return "", errExited
		case <-left.C:
			if left.over() {
				d.tasks.CloseWithError(errNoAnswer)
				return "", errNoAnswer
			}
		case <-ctx.Done():
			d.tasks.CloseWithError(ctx.Err())
			return "", ctx.Err()
		}
	}
}

func (d *driving) verdict(err error, limit time.Duration) (Verdict, string) {
	if err == errExited {
		if d.err != nil {
			err = fmt.Errorf("%w: %w", err, d.err)
		}
		return Crashed, err.Error()
	}
	return Hung, fmt.Sprintf("%v within %v", err, limit)
}

// finish closes the input of the driver, waits until it exits, and returns its error.
func (d *driving) finish() error {
	d.tasks.Close()
	left := newStallTimer(max(2*time.Second, d.run.opts.Limit))
	defer left.Stop()
	defer d.cancel()
	for {
		select {
		case <-d.ended:
			return d.err
		case <-left.C:
			if left.over() {
				d.run.hung.Store(true)
				d.cancel()
				<-d.ended
				return errNoExit
			}
		}
	}
}

package play

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"jobwire/codec/transcript"
	"jobwire/internal/mutant"
)

// Driver is a running client or worker under test, which performs tasks. docs/drivers.md describes them.
type Driver struct {
	Tasks   *io.PipeWriter
	Answers <-chan string // closed when the program has exited
	Exited  chan struct{} // closed when the program has exited
	Err     error         // of the program, after it has exited; or that one of its answers was too long, which ends it
	Kill    func()        // ends the program
}

// maxAnswer is the maximum length of an answer, in bytes.
const maxAnswer = 80 << 20

// pipeSize is the maximum number of bytes of tasks and answers that are read or written at once.
const pipeSize = 32 << 10

// Drive starts a program that connects to addr. The end of ctx ends it.
func Drive(ctx context.Context, program mutant.Program, addr string) *Driver {
	ctx, cancel := context.WithCancelCause(ctx)
	in, tasks := io.Pipe()
	out, written := io.Pipe()
	answers := make(chan string)
	d := &Driver{Tasks: tasks, Answers: answers, Exited: make(chan struct{}), Kill: func() { cancel(nil) }}
	go func() {
		defer close(d.Exited)
		d.Err = program(ctx, addr, in, written)
		if cause := context.Cause(ctx); errors.Is(cause, bufio.ErrTooLong) {
			d.Err = cause
		}
		in.Close()
		written.Close()
	}()
	go func() {
		defer close(answers)
		lines := bufio.NewReaderSize(out, pipeSize)
		for {
			answer, err := transcript.ReadLine(lines, maxAnswer)
			if err != nil {
				if err != io.EOF {
					cancel(fmt.Errorf("cannot read an answer of more than %d MiB: %w", maxAnswer>>20, err))
				}
				out.CloseWithError(err)
				<-d.Exited
				return
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
			}
		}
	}()
	return d
}

// Send waits until the program has read a task.
func (d *Driver) Send(task string) error {
	w := bufio.NewWriterSize(d.Tasks, pipeSize)
	w.WriteString(task)
	w.WriteByte('\n')
	return w.Flush()
}

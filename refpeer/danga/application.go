package danga

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
	"jobwire/refpeer/internal/line"
)

// Failure is a job result whose result code is not 0.
type Failure struct {
	Code byte
	Data []byte
}

func (f *Failure) Error() string { return fmt.Sprintf("the job failed with code %d", f.Code) }

// pollTime is the pause before an application asks for a result again, and before a worker that polls asks for a job again.
const pollTime = 20 * time.Millisecond

// unknownJob is the result code for a handle that the server does not know (danga.complete.unknown-handle). For such a job,
// errLost is returned: the server may have been restarted.
const unknownJob = 255

var errLost = errors.New("the server does not know the job")

// conn is one connection to a server.
type conn struct {
	*line.Conn
	program *Program
}

func dial(ctx context.Context, addr string, p *Program) (*conn, error) {
	c, err := line.Dial(ctx, addr, protocol.Protocol, &p.Quirks)
	if err != nil {
		return nil, err
	}
	return &conn{c, p}, nil
}

// send appends the messages of a sequence.
func (c *conn) send(s Sequence, t *Task) error { return line.Send(c.Conn, s, t, placeholders) }

// until returns the next message of the named type. It adds progress reports about the job to the events of the task.
func (c *conn) until(name string, t *Task) (*codec.Message, error) {
	for {
		m, err := c.Next()
		switch {
		case err != nil:
			return nil, c.AfterEOF(err)
		case m.Type.Name == name:
			return m, nil
		case m.Type.Name == "job_status_res" && !c.program.Silent:
			t.reported(m)
		}
	}
}

func number(m *codec.Message, arg int) uint32 { return binary.BigEndian.Uint32(m.Args[arg]) }

// create creates jobs and sets the handles of their tasks. It sends all requests before it reads the first reply, unless the
// program waits.
func (c *conn) create(tasks ...*Task) error {
	together := [][]*Task{tasks}
	if c.program.Waits {
		together = slices.Collect(slices.Chunk(tasks, 1))
	}
	for _, tasks := range together {
		for _, t := range tasks {
			if err := c.send(c.program.Create, t); err != nil {
				return err
			}
		}
		for _, t := range tasks {
			m, err := c.until("job_create_res", t)
			if err != nil {
				return err
			}
			if len(m.Args) > 0 {
				t.Handle = bytes.Clone(m.Args[0])
			}
		}
	}
	return nil
}

// wait waits for the end of a job of type 0, and for the creation of the jobs of Meanwhile.
func (c *conn) wait(t *Task) error {
	if err := c.send(c.program.Meanwhile, t); err != nil {
		return err
	}
	var end error
	for creations, ended := len(c.program.Meanwhile), false; creations > 0 || !ended; {
		m, err := c.Next()
		switch {
		case c.program.EOFEndsJob && line.IsDisconnect(err):
			return nil
		case err != nil:
			return c.AfterEOF(err)
		case m.Type.Name == "job_create_res":
			creations--
		case m.Type.Name == "job_complete_res":
			ended, end = true, t.ended(m)
		case m.Type.Name == "job_status_res" && !c.program.Silent:
			t.reported(m)
		}
	}
	return end
}

// ask asks once for the result of a job.
func (c *conn) ask(t *Task) error {
	if err := c.send(c.program.Result, t); err != nil {
		return err
	}
	m, err := c.until("job_complete_res", t)
	if err != nil {
		return err
	}
	return t.ended(m)
}

// reported adds a report to the events of the task.
func (t *Task) reported(m *codec.Message) {
	t.events = append(t.events, "status", fmt.Sprintf("%d/%d", number(m, 0), number(m, 1)))
}

// ended sets the result of the task.
func (t *Task) ended(m *codec.Message) error {
	t.Took, t.Code, t.Result = number(m, 0), m.Args[1][0], bytes.Clone(m.Args[2])
	if t.Took > 0 && t.Code != 0 {
		return &Failure{t.Code, t.Result}
	}
	return nil
}

// collect asks for the results of jobs until all have ended.
func (c *conn) collect(ctx context.Context, tasks ...*Task) error {
	for _, t := range tasks {
		for {
			if err := c.ask(t); err != nil {
				return err
			}
			if t.Took > 0 {
				break
			}
			if t.Code == unknownJob {
				return errLost
			}
			if c.Pause(pollTime); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// status asks for the progress of a job.
func (c *conn) status(t *Task) error {
	if err := c.send(c.program.Status, t); err != nil {
		return err
	}
	m, err := c.until("job_status_res", t)
	if err != nil {
		return err
	}
	for i := range t.Progress {
		t.Progress[i] = number(m, i)
	}
	return nil
}

// failure returns the answer to a task whose job failed or was lost, or nil for other errors.
func failure(err error) []string {
	var f *Failure
	if errors.As(err, &f) {
		return []string{"error", "failed", fmt.Sprint(f.Code), string(f.Data)}
	}
	if errors.Is(err, errLost) {
		return []string{"error", "other", err.Error()}
	}
	return nil
}

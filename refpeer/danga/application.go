package danga

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
	"jobwire/refpeer/internal/line"
)

// Failure is a result whose code is that of an error.
type Failure struct {
	Code byte
	Data []byte
}

func (f *Failure) Error() string { return fmt.Sprintf("the job failed with code %d", f.Code) }

// pollTime is how long an application waits before it asks for a result again.
const pollTime = 20 * time.Millisecond

// conn is one connection to a server.
type conn struct {
	*line.Conn
	program *Program
}

func dial(ctx context.Context, addr string, p *Program) (*conn, error) {
	c, err := line.Dial(ctx, addr, protocol.Protocol, &p.Habits)
	if err != nil {
		return nil, err
	}
	return &conn{c, p}, nil
}

// send appends the messages of a sequence.
func (c *conn) send(s Sequence, t *Task) error { return line.Send(c.Conn, s, t, placeholders) }

// until reads on until a message of the type comes. What else comes for an application tells of its job.
func (c *conn) until(name string, t *Task) (*codec.Message, error) {
	for {
		m, err := c.Next()
		switch {
		case err != nil:
			return nil, c.Endured(err)
		case m.Type.Name == name:
			return m, nil
		case m.Type.Name == "job_status_res":
			t.events = append(t.events, "status", fmt.Sprintf("%d/%d", number(m, 0), number(m, 1)))
		}
	}
}

func number(m *codec.Message, arg int) uint32 { return binary.BigEndian.Uint32(m.Args[arg]) }

// create creates jobs, all before the first answer is read, and takes their handles.
func (c *conn) create(tasks ...*Task) error {
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
	return nil
}

// wait waits for the end of a job of type 0.
func (c *conn) wait(t *Task) error {
	m, err := c.until("job_complete_res", t)
	if c.program.Hopes && line.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.ended(m)
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

// ended notes a result.
func (t *Task) ended(m *codec.Message) error {
	t.Took, t.Code, t.Result = number(m, 0), m.Args[1][0], bytes.Clone(m.Args[2])
	if t.Took > 0 && t.Code != 0 {
		return &Failure{t.Code, t.Result}
	}
	return nil
}

// collect asks for the results of jobs until all are there.
func (c *conn) collect(ctx context.Context, tasks ...*Task) error {
	for _, t := range tasks {
		for {
			if err := c.ask(t); err != nil {
				return err
			}
			if t.Took > 0 {
				break
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

// failure is the answer to a task whose job failed.
func failure(err error) []string {
	var f *Failure
	if errors.As(err, &f) {
		return []string{"error", "failed", fmt.Sprint(f.Code), string(f.Data)}
	}
	return nil
}

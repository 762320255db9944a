package gearman

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refpeer/internal/line"
)

// ErrFailed is returned for a job that a worker ended with WORK_FAIL.
var ErrFailed = errors.New("the job failed")

// Exception is an error that a worker sent with WORK_EXCEPTION.
type Exception struct{ Text string }

func (e *Exception) Error() string { return e.Text }

// Client submits jobs over one connection. It is not safe for concurrent use.
type Client struct {
	conn       *Conn
	exceptions bool
	waiting    []*Task            // tasks of the requests without a reply, in the order of the requests; an element is nil if the request is not a submission
	jobs       map[string][]*Task // by handle
	open       int                // jobs that have not ended
}

// NewClient returns a client that uses a connection. The caller closes the connection.
func NewClient(c *Conn) *Client { return &Client{conn: c, jobs: map[string][]*Task{}} }

// Do submits jobs and waits for the end of each, or for its handle if it is a background job. It waits at most for limit
// (0: no limit). After an error the connection must not be used again. The results of jobs are in their tasks.
func (c *Client) Do(limit time.Duration, tasks ...*Task) error {
	if err := c.submit(limit, tasks...); err != nil {
		return err
	}
	return c.finished()
}

// submit submits jobs. When it returns, the last ones may still be unsent.
func (c *Client) submit(limit time.Duration, tasks ...*Task) error {
	c.conn.SetLimit(limit)
	for _, t := range tasks {
		if t.Exceptions && !c.exceptions {
			if err := c.conn.send(c.conn.program.Option, t); err != nil {
				return err
			}
			if _, err := c.conn.until("OPTION_RES"); err != nil {
				return err
			}
			c.exceptions = true
		}
		c.open++
		if err := c.send(c.conn.program.Submit, t); err != nil {
			return err
		}
		if !c.conn.program.Waits {
			continue
		}
		if err := c.created(t); err != nil {
			return err
		}
	}
	return nil
}

// send appends the messages of a sequence about a task, and records the requests that the server replies to.
func (c *Client) send(s Sequence, t *Task) error {
	for _, st := range s {
		if st.If != nil && !st.If(t) {
			continue
		}
		st.If = nil
		if err := c.conn.send(Sequence{st}, t); err != nil {
			return err
		}
		name, _, _ := strings.Cut(st.Do, " ")
		switch msgType := protocol.Protocol.TypeNamed(name); {
		case msgType.Does == codec.Submit:
			c.waiting = append(c.waiting, t)
		case len(msgType.Answers) > 0:
			c.waiting = append(c.waiting, nil)
		}
	}
	return nil
}

// created waits for the reply to the submission of a task.
func (c *Client) created(t *Task) error { return c.receive(func() bool { return t.created }) }

// finished waits for the ends of all jobs and for the replies to all requests.
func (c *Client) finished() error {
	return c.receive(func() bool { return c.open == 0 && len(c.waiting) == 0 })
}

// receive handles messages of the server until ready returns true.
func (c *Client) receive(ready func() bool) error {
	for !ready() {
		m, err := c.conn.Next()
		if err != nil {
			if c.conn.program.EOFEndsJob && line.IsDisconnect(err) && len(c.waiting) == 0 {
				return nil
			}
			return c.conn.AfterEOF(err)
		}
		if do := clientDoes[m.Type.Name]; do != nil {
			if err := do(c, m); err != nil {
				return err
			}
		} else if len(c.waiting) > 0 && c.waiting[0] == nil {
			c.waiting = c.waiting[1:]
		}
	}
	return nil
}

// clientDoes handles messages by their types. Other messages are replies to requests that are not submissions.
var clientDoes = map[string]func(*Client, *codec.Message) error{
	"JOB_CREATED": func(c *Client, m *codec.Message) error {
		if len(c.waiting) == 0 || c.waiting[0] == nil {
			return fmt.Errorf("%w: JOB_CREATED without a pending request", line.ErrProtocol)
		}
		t := c.waiting[0]
		c.waiting = c.waiting[1:]
		t.Handle, t.created = append([]byte(nil), m.Args[0]...), true
		if t.Background || len(t.At) > 0 {
			c.ends(t, nil)
			return nil
		}
		c.jobs[string(t.Handle)] = append(c.jobs[string(t.Handle)], t)
		return c.send(c.conn.program.Created, t)
	},
	"WORK_DATA":    (*Client).reported,
	"WORK_WARNING": (*Client).reported,
	"WORK_STATUS":  (*Client).reported,
	"WORK_COMPLETE": func(c *Client, m *codec.Message) error {
		return c.finish(m, func(t *Task) error {
			t.Result = append([]byte(nil), m.Args[1]...)
			return nil
		})
	},
	"WORK_FAIL": func(c *Client, m *codec.Message) error {
		return c.finish(m, func(*Task) error { return ErrFailed })
	},
	"WORK_EXCEPTION": func(c *Client, m *codec.Message) error {
		return c.finish(m, func(*Task) error { return &Exception{string(m.Args[1])} })
	},
	"ERROR": func(c *Client, m *codec.Message) error {
		switch {
		case c.conn.program.IgnoresErrors:
			return nil
		case len(c.waiting) == 0:
			return refusal(m)
		}
		t := c.waiting[0]
		c.waiting = c.waiting[1:]
		if t != nil {
			t.created = true
			c.ends(t, refusal(m))
		}
		return nil
	},
}

// ends records the end of a task.
func (c *Client) ends(t *Task, err error) {
	if !t.done {
		t.done, t.end = true, err
		c.open--
	}
}

// tasksOf returns the tasks that a message is about.
func (c *Client) tasksOf(m *codec.Message) []*Task {
	if c.conn.program.MixesResults && len(c.jobs) > 0 {
		return c.jobs[slices.Min(slices.Collect(maps.Keys(c.jobs)))]
	}
	return c.jobs[string(m.Args[0])]
}

// reported adds a progress report, data or a warning to the events of the tasks that the message is about.
func (c *Client) reported(m *codec.Message) error {
	for _, t := range c.tasksOf(m) {
		switch m.Type.Name {
		case "WORK_DATA":
			t.events = append(t.events, "data", string(m.Args[1]))
		case "WORK_WARNING":
			t.events = append(t.events, "warning", string(m.Args[1]))
		case "WORK_STATUS":
			t.events = append(t.events, "status", string(m.Args[1])+"/"+string(m.Args[2]))
		}
	}
	return nil
}

// finish ends the tasks of a job. how sets the result of a task and returns its error.
func (c *Client) finish(m *codec.Message, how func(*Task) error) error {
	tasks := c.tasksOf(m)
	for _, t := range tasks {
		c.ends(t, how(t))
	}
	if len(tasks) > 0 {
		delete(c.jobs, string(tasks[0].Handle))
	}
	return nil
}

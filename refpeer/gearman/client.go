package gearman

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// ErrFailed is that a worker has given a job up.
var ErrFailed = errors.New("the job failed")

// Exception is an error that a worker has raised.
type Exception struct{ Text string }

func (e *Exception) Error() string { return e.Text }

// Client has jobs done, over one connection. It is not safe for concurrent use.
type Client struct {
	conn       *Conn
	exceptions bool
	waiting    []*Task            // for their handles
	jobs       map[string][]*Task // by handle
	open       int
}

// NewClient makes a client of a connection, which stays the caller's.
func NewClient(c *Conn) *Client { return &Client{conn: c, jobs: map[string][]*Task{}} }

// Do submits jobs and waits for the end of each, or for its handle if it is one of the
// background; for at most so long, where 0 is for ever. An error ends the use of the connection;
// how a job ended stands in its task.
func (c *Client) Do(limit time.Duration, tasks ...*Task) error {
	c.conn.Within(limit)
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
		if err := c.conn.send(c.conn.program.Submit, t); err != nil {
			return err
		}
		c.waiting = append(c.waiting, t)
		c.open++
	}
	for c.open > 0 {
		m, err := c.conn.Next()
		if err != nil {
			if c.conn.program.Hopes && line.Gone(err) && len(c.waiting) == 0 {
				return nil
			}
			return c.conn.Endured(err)
		}
		if do := clientDoes[m.Type.Name]; do != nil {
			if err := do(c, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// clientDoes is by what comes. Anything else is passed over.
var clientDoes = map[string]func(*Client, *codec.Message) error{
	"JOB_CREATED": func(c *Client, m *codec.Message) error {
		if len(c.waiting) == 0 {
			return fmt.Errorf("%w: JOB_CREATED without a pending request", line.ErrProtocol)
		}
		t := c.waiting[0]
		c.waiting = c.waiting[1:]
		t.Handle = append([]byte(nil), m.Args[0]...)
		if t.Background || len(t.At) > 0 {
			c.ends(t, nil)
		} else {
			c.jobs[string(t.Handle)] = append(c.jobs[string(t.Handle)], t)
		}
		return nil
	},
	"WORK_DATA":    (*Client).told,
	"WORK_WARNING": (*Client).told,
	"WORK_STATUS":  (*Client).told,
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
		case c.conn.program.Deaf:
			return nil
		case len(c.waiting) == 0:
			return refusal(m)
		}
		t := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.ends(t, refusal(m))
		return nil
	},
}

func (c *Client) ends(t *Task, err error) {
	if !t.done {
		t.done, t.end = true, err
		c.open--
	}
}

// about returns the tasks that a message is about.
func (c *Client) about(m *codec.Message) []*Task {
	if c.conn.program.Mixes && len(c.jobs) > 0 {
		return c.jobs[slices.Min(slices.Collect(maps.Keys(c.jobs)))]
	}
	return c.jobs[string(m.Args[0])]
}

func (c *Client) told(m *codec.Message) error {
	for _, t := range c.about(m) {
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

func (c *Client) finish(m *codec.Message, how func(*Task) error) error {
	tasks := c.about(m)
	for _, t := range tasks {
		c.ends(t, how(t))
	}
	if len(tasks) > 0 {
		delete(c.jobs, string(tasks[0].Handle))
	}
	return nil
}

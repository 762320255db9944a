package gearman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/refpeer/internal/line"
)

// Driver performs the tasks of docs/drivers.md.
type Driver struct {
	Program *Program // nil: Document()

	addr   string
	conn   *Conn // of the client
	client *Client
}

// Drive calls [Driver.Drive] with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return (&Driver{}).Drive(ctx, addr, tasks, answers)
}

// Drive reads tasks, one per line, performs them with the server at addr and answers each task with one line, until the
// end of tasks. A client keeps its connection between tasks; a worker has one for each task. The end of ctx aborts a task.
func (d *Driver) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	d.addr = addr
	if d.Program == nil {
		d.Program = Document()
	}
	defer d.hangUp()
	return line.Serve(ctx, tasks, answers, &d.Program.Quirks, map[string]line.Verb{
		"submit": {Least: 2, Do: d.submit},
		"batch":  {Least: 2, Do: d.batch},
		"status": {Least: 1, Do: d.status},
		"echo":   {Least: 1, Do: d.echo},
		"work":   {Least: 3, Do: d.work},
	}, failure)
}

// failure returns the answer to a task that failed, or nil if it is the same for all protocols.
func failure(err error) []string {
	var refused *ServerError
	var raised *Exception
	switch {
	case errors.As(err, &refused):
		return []string{"error", "server", refused.Code, refused.Text}
	case errors.As(err, &raised):
		return []string{"error", "exception", raised.Text}
	case errors.Is(err, ErrFailed):
		return []string{"error", "failed", err.Error()}
	}
	return nil
}

// as calls do with the client. It connects first if there is no connection, and does not keep one that has failed.
func (d *Driver) as(ctx context.Context, do func(*Client) error) error {
	if d.conn == nil {
		conn, err := Dial(ctx, d.addr, d.Program)
		if err != nil {
			return err
		}
		d.conn, d.client = conn, NewClient(conn)
	}
	defer context.AfterFunc(ctx, d.conn.Abort)()
	err := do(d.client)
	if err != nil && !d.Program.ReusesFailed || d.Program.PerTask {
		d.hangUp()
	} else {
		d.conn.Idle()
	}
	return err
}

// submitAll submits jobs and waits for the end of each, or for its handle if it is a background job, over the connections
// that the program selects.
func (d *Driver) submitAll(ctx context.Context, limit time.Duration, tasks ...*Task) error {
	if d.Program.Drops {
		first := *tasks[0]
		err := d.as(ctx, func(c *Client) error {
			if err := c.submit(limit, &first); err != nil {
				return err
			}
			return c.created(&first)
		})
		if d.hangUp(); err != nil {
			return err
		}
	}
	if !d.Program.PerTask && !d.Program.Doubles {
		return d.as(ctx, func(c *Client) error { return c.Do(limit, tasks...) })
	}
	groups := [][]*Task{tasks}
	if d.Program.PerTask {
		groups = slices.Collect(slices.Chunk(tasks, 1))
	}
	if d.Program.Doubles {
		var twins []*Task
		for _, t := range tasks {
			twin := *t
			twins = append(twins, &twin)
		}
		groups = append(groups, twins)
	}
	var clients []*Client
	for _, group := range groups {
		conn, err := Dial(ctx, d.addr, d.Program)
		if err != nil {
			return err
		}
		defer conn.Abort()
		defer context.AfterFunc(ctx, conn.Abort)()
		c := NewClient(conn)
		if err := errors.Join(c.submit(limit, group...), conn.Flush()); err != nil {
			return err
		}
		clients = append(clients, c)
	}
	for _, c := range clients {
		if err := c.finished(); err != nil {
			return err
		}
	}
	return nil
}

// hangUp closes the connection of the client.
func (d *Driver) hangUp() {
	if d.conn != nil {
		d.conn.Abort()
		d.conn, d.client = nil, nil
	}
}

// settings set the options of a submission.
var settings = map[string]func(t *Task, limit *time.Duration, value string) error{
	"unique":   func(t *Task, _ *time.Duration, v string) error { t.Unique = []byte(v); return nil },
	"priority": func(t *Task, _ *time.Duration, v string) error { t.Priority = v; return nil },
	"at":       func(t *Task, _ *time.Duration, v string) error { t.At = []byte(v); return nil },
	"schedule": func(t *Task, _ *time.Duration, v string) error {
		t.Schedule, t.Background = []byte(strings.ReplaceAll(v, ",", "\x00")), true
		return nil
	},
	"background": func(t *Task, _ *time.Duration, _ string) error { t.Background = true; return nil },
	"exceptions": func(t *Task, _ *time.Duration, _ string) error { t.Exceptions = true; return nil },
	"timeout": func(_ *Task, limit *time.Duration, v string) error {
		n, err := line.Number(v)
		*limit = time.Duration(n) * time.Second
		return err
	},
}

func (d *Driver) submit(ctx context.Context, words []string) ([]string, error) {
	t := &Task{Function: []byte(words[0]), Workload: []byte(words[1]), Priority: "normal"}
	var limit time.Duration
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		set := settings[name]
		if set == nil || set(t, &limit, value) != nil {
			return nil, fmt.Errorf("%w: invalid option %s", line.ErrUsage, w)
		}
	}
	if err := d.submitAll(ctx, limit, t); err != nil {
		return nil, err
	}
	switch {
	case t.end != nil:
		return nil, t.end
	case t.Background || len(t.At) > 0:
		return []string{string(t.Handle)}, nil
	}
	return append([]string{string(t.Result)}, t.events...), nil
}

func (d *Driver) batch(ctx context.Context, words []string) ([]string, error) {
	var tasks []*Task
	for _, w := range words[1:] {
		tasks = append(tasks, &Task{Function: []byte(words[0]), Workload: []byte(w), Priority: "normal"})
	}
	if err := d.submitAll(ctx, 0, tasks...); err != nil {
		return nil, err
	}
	var out []string
	for _, t := range tasks {
		if t.end != nil {
			return nil, t.end
		}
		out = append(out, string(t.Result))
	}
	return out, nil
}

// asks sends a request and returns the arguments of its reply.
func (d *Driver) asks(ctx context.Context, s Sequence, t *Task, reply string) (out []string, err error) {
	err = d.as(ctx, func(c *Client) error {
		c.conn.SetLimit(0)
		if err := c.conn.send(s, t); err != nil {
			return err
		}
		m, err := c.conn.until(reply)
		if err != nil {
			return c.conn.AfterEOF(err)
		}
		for _, a := range m.Args {
			out = append(out, string(a))
		}
		return nil
	})
	return out, err
}

func (d *Driver) status(ctx context.Context, words []string) ([]string, error) {
	out, err := d.asks(ctx, d.Program.Status, &Task{Handle: []byte(words[0])}, "STATUS_RES")
	if err != nil {
		return nil, err
	}
	return out[1:], nil
}

func (d *Driver) echo(ctx context.Context, words []string) ([]string, error) {
	return d.asks(ctx, d.Program.Echo, &Task{Workload: []byte(words[0])}, "ECHO_RES")
}

func (d *Driver) work(ctx context.Context, words []string) ([]string, error) {
	t := Task{How: words[1]}
	jobs, err := line.Number(words[2])
	if err != nil || line.Results[t.How] == nil {
		return nil, fmt.Errorf("%w: invalid arguments: work %s", line.ErrUsage, strings.Join(words, " "))
	}
	for _, w := range words[3:] {
		switch name, value, _ := strings.Cut(w, "="); name {
		case "timeout":
			t.Limit = []byte(value)
		case "id":
			t.Name = []byte(value)
		default:
			return nil, fmt.Errorf("%w: invalid option %s", line.ErrUsage, w)
		}
	}
	var functions [][]byte
	for f := range strings.SplitSeq(words[0], ",") {
		functions = append(functions, []byte(f))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, err := d.perform(ctx, functions, t, jobs)
	if err != nil {
		return nil, err
	}
	return []string{strconv.Itoa(done)}, nil
}

package danga

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	protocol "jobwire/codec/danga"
	"jobwire/refpeer/internal/line"
)

// Driver performs the tasks of docs/drivers.md.
type Driver struct {
	Program *Program // nil: Document()

	addr string
	conn *conn // of the application
}

// Drive calls [Driver.Drive] with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return (&Driver{}).Drive(ctx, addr, tasks, answers)
}

// Drive reads tasks, one per line, performs them with the server at addr and answers each task with one line, until the
// end of tasks. An application keeps its connection between tasks; a worker has one for each task. The end of ctx aborts a
// task.
func (d *Driver) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	d.addr = addr
	if d.Program == nil {
		d.Program = Document()
	}
	defer d.hangUp()
	return line.Serve(ctx, tasks, answers, &d.Program.Quirks, map[string]line.Verb{
		"create": {Least: 2, Do: d.create},
		"batch":  {Least: 2, Do: d.batch},
		"status": {Least: 1, Do: d.status},
		"result": {Least: 1, Do: d.result},
		"work":   {Least: 3, Do: d.work},
	}, failure)
}

// as calls do with the connection of the application. It connects first if there is no connection, and does not keep one
// that has failed.
func (d *Driver) as(ctx context.Context, do func(*conn) error) error {
	if d.conn == nil {
		c, err := dial(ctx, d.addr, d.Program)
		if err != nil {
			return err
		}
		d.conn = c
	}
	defer context.AfterFunc(ctx, d.conn.Abort)()
	d.conn.SetLimit(0)
	err := do(d.conn)
	if err != nil && failure(err) == nil && !d.Program.ReusesFailed || d.Program.PerTask {
		d.hangUp()
	} else {
		d.conn.Idle()
	}
	return err
}

// drop creates a job and closes the connection, if the program does so before it creates the jobs of a task.
func (d *Driver) drop(ctx context.Context, t Task) error {
	if !d.Program.Drops {
		return nil
	}
	err := d.as(ctx, func(c *conn) error { return c.create(&t) })
	d.hangUp()
	return err
}

// hangUp closes the connection of the application.
func (d *Driver) hangUp() {
	if d.conn != nil {
		d.conn.Abort()
		d.conn = nil
	}
}

// settings set the options of a job.
var settings = map[string]func(t *Task, value string){
	"key":    func(t *Task, v string) { t.Key = []byte(v) },
	"handle": func(t *Task, _ string) { t.Type = protocol.Async },
	"away":   func(t *Task, _ string) { t.Type = protocol.AsyncThrow },
}

func (d *Driver) create(ctx context.Context, words []string) ([]string, error) {
	t := &Task{Name: []byte(words[0]), Args: []byte(words[1])}
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		set := settings[name]
		if set == nil {
			return nil, fmt.Errorf("%w: invalid option %s", line.ErrUsage, w)
		}
		set(t, value)
	}
	if err := d.drop(ctx, *t); err != nil {
		return nil, err
	}
	err := d.as(ctx, func(c *conn) error {
		if err := c.create(t); err != nil || t.Type != protocol.SyncWait {
			return err
		}
		return c.wait(t)
	})
	switch {
	case err != nil:
		return nil, err
	case t.Type == protocol.Async:
		return []string{string(t.Handle)}, nil
	case t.Type == protocol.AsyncThrow:
		return nil, nil
	}
	return append([]string{string(t.Result)}, t.events...), nil
}

func (d *Driver) batch(ctx context.Context, words []string) ([]string, error) {
	var tasks []*Task
	for _, w := range words[1:] {
		tasks = append(tasks, &Task{Name: []byte(words[0]), Args: []byte(w), Type: protocol.Async})
	}
	if err := d.drop(ctx, *tasks[0]); err != nil {
		return nil, err
	}
	groups := [][]*Task{tasks}
	if d.Program.PerTask {
		groups = slices.Collect(slices.Chunk(tasks, 1))
	}
	for _, group := range groups {
		if err := d.as(ctx, func(c *conn) error { return c.create(group...) }); err != nil {
			return nil, err
		}
	}
	for _, group := range groups {
		if err := d.as(ctx, func(c *conn) error { return c.collect(ctx, group...) }); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, t := range tasks {
		out = append(out, string(t.Result))
	}
	return out, nil
}

func (d *Driver) status(ctx context.Context, words []string) ([]string, error) {
	t := &Task{Handle: []byte(words[0])}
	if err := d.as(ctx, func(c *conn) error { return c.status(t) }); err != nil {
		return nil, err
	}
	return decimals(t.Progress[:]...), nil
}

func (d *Driver) result(ctx context.Context, words []string) ([]string, error) {
	t := &Task{Handle: []byte(words[0])}
	if err := d.as(ctx, func(c *conn) error { return c.ask(t) }); err != nil && failure(err) == nil {
		return nil, err
	}
	return append(decimals(t.Took, uint32(t.Code)), string(t.Result)), nil
}

func decimals(all ...uint32) []string {
	var out []string
	for _, n := range all {
		out = append(out, strconv.FormatUint(uint64(n), 10))
	}
	return out
}

// ways are the task words that select what a worker does with a job.
var ways = []string{"echo", "reverse", "empty", "fail", "status"}

func (d *Driver) work(ctx context.Context, words []string) ([]string, error) {
	t := Task{How: words[1]}
	jobs, err := line.Number(words[2])
	if err != nil || !slices.Contains(ways, t.How) || len(words) > 3 {
		return nil, fmt.Errorf("%w: invalid arguments: work %s", line.ErrUsage, strings.Join(words, " "))
	}
	if t.How == "fail" {
		t.Code = 1
	}
	for name := range strings.SplitSeq(words[0], ",") {
		t.Names = append(t.Names, []byte(name))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, err := d.perform(ctx, t, jobs)
	if err != nil {
		return nil, err
	}
	return []string{strconv.Itoa(done)}, nil
}

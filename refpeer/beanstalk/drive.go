package beanstalk

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

// fetchTime is how long a client that has connected again tries to reserve its jobs by their IDs.
const fetchTime = 2 * time.Second

// Driver performs the tasks of docs/drivers.md.
type Driver struct {
	Program *Program // nil: Document()

	addr  string
	conns []*conn
	last  tubes // tubes of the connection that failed last
}

// Drive calls [Driver.Drive] with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return (&Driver{}).Drive(ctx, addr, tasks, answers)
}

// Drive reads tasks, one per line, performs them with the server at addr and answers each task with one line, until the
// end of tasks. Then it closes its connections. The end of ctx aborts a task.
func (d *Driver) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	d.addr, d.last = addr, newTubes()
	if d.Program == nil {
		d.Program = Document()
	}
	defer func() {
		for _, c := range d.conns {
			c.close()
		}
	}()
	all := map[string]line.Verb{}
	for name, v := range verbs {
		all[name] = line.Verb{Least: len(v.words), Do: func(ctx context.Context, words []string) ([]string, error) {
			t, err := v.parse(words)
			if err != nil {
				return nil, fmt.Errorf("%w: %s %s", err, name, strings.Join(words, " "))
			}
			if err := d.perform(ctx, &v, t); err != nil {
				return nil, err
			}
			return v.answer(t), nil
		}}
	}
	return line.Serve(ctx, tasks, answers, &d.Program.Quirks, all, failure)
}

// failure returns the answer to a task that failed, or nil if it is the same for all protocols.
func failure(err error) []string {
	codes := map[Refusal]string{timedOut: "timed-out", notFound: "not-found", "DEADLINE_SOON": "deadline-soon", "JOB_TOO_BIG": "too-big"}
	var refused Refusal
	switch {
	case errors.As(err, &refused) && codes[refused] != "" && !errors.Is(err, errPipelineRejected):
		return []string{"error", codes[refused], err.Error()}
	case refused != "":
		return []string{"error", "server", string(refused)}
	case errors.Is(err, line.ErrProtocol):
		return []string{"error", "other", err.Error()}
	}
	return nil
}

// verb is a kind of task.
type verb struct {
	words   []field // that each task contains
	options []string
	owned   bool // the task is about a job that the connection must have reserved
	do      func(ctx context.Context, c *conn, t *Task) error
	answer  func(t *Task) []string
}

// field sets a value of a task.
type field func(t *Task, value string) error

var (
	tube  field = func(t *Task, v string) error { t.Tube = []byte(v); return nil }
	tubeN field = func(t *Task, v string) error { t.Tubes = strings.Split(v, ","); return nil }
	body  field = func(t *Task, v string) error { t.Body = []byte(v); return nil }
	id    field = func(t *Task, v string) error { t.ID = []byte(v); return nil }
	delay field = func(t *Task, v string) error { t.Delay = []byte(v); return nil }
	bound field = func(t *Task, v string) error { t.Bound = []byte(v); return nil }
	how   field = func(t *Task, v string) error {
		if t.How = v; ways[v] == nil {
			return line.ErrUsage
		}
		return nil
	}
	jobs field = func(t *Task, v string) (err error) { t.Jobs, err = line.Number(v); return err }
)

// options set the options of a task, by their names.
var options = map[string]field{
	"pri":   func(t *Task, v string) error { t.Priority = []byte(v); return nil },
	"delay": delay,
	"ttr":   func(t *Task, v string) error { t.TTR = []byte(v); return nil },
	"timeout": func(t *Task, v string) (err error) {
		t.Limited = true
		t.Timeout, err = line.Number(v)
		return err
	},
}

func nothing(*Task) []string { return nil }

var verbs = map[string]verb{
	"put": {words: []field{tube, body}, options: []string{"pri", "delay", "ttr"},
		do: func(_ context.Context, c *conn, t *Task) error {
			if err := c.use(t); err != nil {
				return err
			}
			return c.request(c.program.Put, t)
		},
		answer: func(t *Task) []string { return []string{string(t.ID)} }},
	"reserve": {words: []field{tubeN}, options: []string{"timeout"},
		do:     func(ctx context.Context, c *conn, t *Task) error { return c.reserve(ctx, t) },
		answer: func(t *Task) []string { return []string{string(t.ID), string(t.Body)} }},
	"delete": {words: []field{id}, answer: nothing,
		do: func(_ context.Context, c *conn, t *Task) error { return c.give(c.program.Delete, t) }},
	"release": {words: []field{id}, options: []string{"pri", "delay"}, owned: true, answer: nothing,
		do: func(_ context.Context, c *conn, t *Task) error { return c.give(c.program.Release, t) }},
	"bury": {words: []field{id}, owned: true, answer: nothing,
		do: func(_ context.Context, c *conn, t *Task) error { return c.give(c.program.Bury, t) }},
	"touch": {words: []field{id}, owned: true, answer: nothing,
		do: func(_ context.Context, c *conn, t *Task) error { return c.request(c.program.Touch, t) }},
	"peek": {words: []field{id},
		do:     func(_ context.Context, c *conn, t *Task) error { return c.request(c.program.Peek, t) },
		answer: func(t *Task) []string { return []string{string(t.Body)} }},
	"kick": {words: []field{tube, bound},
		do: func(_ context.Context, c *conn, t *Task) error {
			if err := c.use(t); err != nil {
				return err
			}
			return c.request(c.program.Kick, t)
		},
		answer: func(t *Task) []string { return []string{string(t.Count)} }},
	"pause": {words: []field{tube, delay}, answer: nothing,
		do: func(_ context.Context, c *conn, t *Task) error { return c.request(c.program.Pause, t) }},
	"stats": {words: []field{id},
		do:     func(_ context.Context, c *conn, t *Task) error { return c.request(c.program.Stats, t) },
		answer: func(t *Task) []string { return []string{string(t.State), string(t.Tube)} }},
	"work": {words: []field{tubeN, how, jobs},
		do:     func(ctx context.Context, c *conn, t *Task) error { return c.work(ctx, t) },
		answer: func(t *Task) []string { return []string{string(t.Count)} }},
}

// parse reads the words of a task.
func (v *verb) parse(words []string) (*Task, error) {
	t := &Task{Priority: []byte(defaultPriority), Delay: []byte(defaultDelay), TTR: []byte(defaultTTR)}
	for i, w := range words {
		set := field(nil)
		if i < len(v.words) {
			set = v.words[i]
		} else if name, value, _ := strings.Cut(w, "="); slices.Contains(v.options, name) {
			set, w = options[name], value
		}
		if set == nil || set(t, w) != nil {
			return nil, line.ErrUsage
		}
	}
	return t, nil
}

// perform performs a task over the connection that it belongs to.
func (d *Driver) perform(ctx context.Context, v *verb, t *Task) error {
	c, err := d.connection(ctx, t)
	if err != nil {
		return err
	}
	if c.jobs[string(t.ID)] && d.Program.Reconnects {
		if c, err = d.reconnect(ctx, c); err != nil {
			return err
		}
	}
	err = notFound
	if !v.owned || c.jobs[string(t.ID)] {
		stop := context.AfterFunc(ctx, c.Abort)
		c.SetLimit(0)
		err = v.do(ctx, c, t)
		stop()
	}
	if d.Program.EOFEndsJob && line.IsDisconnect(err) {
		c.broken, err = true, nil
	}
	var refused Refusal
	failed := err != nil && (errors.Is(err, errPipelineRejected) || !errors.As(err, &refused))
	if c.broken = c.broken || failed && !d.Program.ReusesFailed; c.broken || d.Program.PerTask && len(c.jobs) == 0 {
		d.leave(c)
	}
	return err
}

// connection returns the connection that has reserved the job of a task, or the one for other tasks.
func (d *Driver) connection(ctx context.Context, t *Task) (*conn, error) {
	for _, c := range slices.Backward(d.conns) {
		if !d.Program.PerTask || c.jobs[string(t.ID)] {
			return c, nil
		}
	}
	c, err := dial(ctx, d.addr, d.Program)
	if err != nil {
		return nil, err
	}
	if d.Program.KeepsUsed {
		c.used = d.last.used
	}
	if d.Program.KeepsWatched {
		c.watched = d.last.watched
	}
	d.conns = append(d.conns, c)
	return c, nil
}

// leave closes a connection.
func (d *Driver) leave(c *conn) {
	c.close()
	d.last = c.tubes
	d.conns = slices.DeleteFunc(d.conns, func(x *conn) bool { return x == c })
}

// reconnect replaces a connection by a new one that reserves the same jobs by their IDs.
func (d *Driver) reconnect(ctx context.Context, c *conn) (*conn, error) {
	d.leave(c)
	next, err := d.connection(ctx, &Task{})
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, next.Abort)()
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	next.SetLimit(0)
	if err := next.fetch(ctx, c.jobs); err != nil {
		next.broken = true
		d.leave(next)
		return nil, err
	}
	return next, nil
}

// ways contains the commands that a worker sends for a job, by the word of the task.
var ways = map[string][]func(c *conn, t *Task) error{
	"delete":  {remove},
	"release": {func(c *conn, t *Task) error { return c.give(c.program.Release, t) }},
	"bury":    {func(c *conn, t *Task) error { return c.give(c.program.Bury, t) }},
	"touch":   {func(c *conn, t *Task) error { return c.request(c.program.Touch, t) }, remove},
}

func remove(c *conn, t *Task) error { return c.give(c.program.Delete, t) }

// work reserves jobs and does with each what the task says.
func (c *conn) work(ctx context.Context, t *Task) error {
	done := 0
	for ; t.Jobs == 0 || done < t.Jobs; done++ {
		one := &Task{Tubes: t.Tubes, Limited: t.Jobs == 0, Priority: t.Priority, Delay: t.Delay}
		err := c.reserve(ctx, one)
		if t.Jobs == 0 && errors.Is(err, timedOut) {
			break
		}
		if err != nil {
			return err
		}
		for _, do := range ways[t.How] {
			if err := do(c, one); err != nil {
				return err
			}
		}
	}
	t.Count = []byte(strconv.Itoa(done))
	return nil
}

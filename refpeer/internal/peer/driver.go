package peer

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec/transcript"
)

// maxTask is the maximum length of a task's line in bytes. taskBuffer is the size of the buffers for tasks and answers.
const (
	maxTask    = 64 << 20
	taskBuffer = 32 << 10
)

// errEndedByFault is returned if an injected fault has ended the driver.
var errEndedByFault = errors.New("an injected fault ended the driver after the server had closed a connection")

// Verb is a kind of task.
type Verb struct {
	// Form contains the names of the values in a task, each as NAME or NAME:KIND, where KIND is "number" or the allowed
	// words with | between them. [OPTION=NAME] is an option with a value, and [OPTION] one without: its value is its name,
	// and its NAME is in capitals. At the end, "..." stands for any number of other words, but at least one.
	Form string

	Do Action
}

// Action performs a task. others contains the words for "...".
type Action = func(ctx context.Context, d *Driver, t Task, others []string) (answer []string, err error)

// Driver performs tasks. A client keeps its connection between tasks; a worker has one for each task.
type Driver struct {
	*Program
	Last any // Conn.Own of the connection that was closed last

	addr  string
	conns []*Conn // of the client
}

// Drive reads tasks, one per line, performs them with the server at addr and answers each task with one line, until the
// end of tasks. The end of ctx aborts a task, except that of a worker with a time of grace. It cannot abort the reading
// of a task.
func (p *Program) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	d := &Driver{Program: p, addr: addr}
	defer func() {
		for len(d.conns) > 0 {
			d.Leave(d.conns[0])
		}
	}()
	lines, out := bufio.NewReaderSize(tasks, taskBuffer), bufio.NewWriterSize(answers, taskBuffer)
	for ctx.Err() == nil {
		task, err := transcript.ReadLine(lines, maxTask)
		if err == io.EOF {
			break
		}
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		words, err := d.perform(ctx, task)
		if p.ExitsOnEOF && IsDisconnect(err) {
			return errEndedByFault
		}
		answer := append([]string{"ok"}, words...)
		if err != nil {
			answer = append([]string{"error"}, failure(err)...)
		}
		for i, w := range answer {
			if i > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(transcript.Quote(w))
		}
		out.WriteByte('\n')
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// failure returns the words of the answer to a task that failed.
func failure(err error) []string {
	var f Failure
	switch {
	case errors.As(err, &f):
		return f.Words
	case errors.Is(err, ErrTimedOut):
		return []string{"timed-out", err.Error()}
	case errors.Is(err, ErrUsage):
		return []string{"usage", err.Error()}
	case errors.Is(err, ErrProtocol):
		return []string{"protocol", err.Error()}
	}
	return []string{"connection", err.Error()}
}

// perform performs the task of a line.
func (d *Driver) perform(ctx context.Context, line string) ([]string, error) {
	words, err := transcript.ParseWords(line)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrUsage, line)
	}
	v, ok := d.Tasks[words[0]]
	if !ok {
		return nil, fmt.Errorf("%w: unknown task %s", ErrUsage, words[0])
	}
	t := maps.Clone(d.Defaults)
	if t == nil {
		t = Task{}
	}
	others, fits := t.parse(v.Form, words[1:])
	if !fits {
		return nil, fmt.Errorf("%w: expected %s %s", ErrUsage, words[0], v.Form)
	}
	return v.Do(ctx, d, t, others)
}

// parse sets the values in the words of a task. It returns the words for "...", and false if the words do not have the
// form.
func (t Task) parse(form string, words []string) (others []string, ok bool) {
	options, several := map[string]string{}, false
	for _, f := range strings.Fields(form) {
		option, optional := strings.CutPrefix(strings.TrimSuffix(f, "]"), "[")
		switch {
		case optional:
			key, field, _ := strings.Cut(option, "=")
			options[key] = field
			name, _, _ := strings.Cut(cmp.Or(field, strings.ToUpper(key)), ":")
			if _, ok := t[name]; !ok {
				t[name] = ""
			}
		case len(words) == 0:
			return nil, false
		case f == "...":
			several = true
		case !t.set(f, words[0]):
			return nil, false
		default:
			words = words[1:]
		}
	}
	if several {
		return words, true
	}
	for _, w := range words {
		key, value, valued := strings.Cut(w, "=")
		field, known := options[key]
		if known && field == "" {
			field, value, valued = strings.ToUpper(key), key, !valued
		}
		if !known || !valued || !t.set(field, value) {
			return nil, false
		}
	}
	return nil, true
}

// set sets a value, and reports whether it is of the kind of the field.
func (t Task) set(field, value string) bool {
	name, kind, _ := strings.Cut(field, ":")
	t[name] = value
	switch kind {
	case "":
		return true
	case "number":
		_, err := strconv.ParseUint(value, 10, 64)
		return err == nil
	}
	return slices.Contains(strings.Split(kind, "|"), value)
}

// With calls do with the connection that the task needs, or that has the job of the task. It connects first if there is
// none, and does not keep a connection that has failed.
func (d *Driver) With(ctx context.Context, t Task, do func(*Conn) error) error {
	c, err := d.connection(ctx, t["JOB_ID"])
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, c.abort)()
	c.SetLimit(t.limit())
	err = do(c)
	if c.Broken = c.Broken || !works(err) && !d.ReusesFailed; c.Broken || d.PerTask && len(c.Jobs) == 0 {
		d.Leave(c)
	} else {
		c.idle()
	}
	return err
}

func (t Task) limit() time.Duration {
	n, _ := strconv.ParseUint(t["LIMIT"], 10, 31)
	return time.Duration(n) * time.Second
}

func (d *Driver) connection(ctx context.Context, job string) (*Conn, error) {
	for _, c := range slices.Backward(d.conns) {
		if !d.PerTask || c.Jobs[job] {
			return c, nil
		}
	}
	return d.connect(ctx)
}

func (d *Driver) connect(ctx context.Context) (*Conn, error) {
	c, err := dial(ctx, d.addr, d.Program)
	if err == nil {
		d.conns = append(d.conns, c)
	}
	return c, err
}

// Leave closes a connection of the client.
func (d *Driver) Leave(c *Conn) {
	if quit := d.Steps["Quit"]; len(quit) > 0 && !c.Broken && c.send(quit, Task{}, nil) == nil && c.flush() == nil {
		c.close()
	}
	c.abort()
	d.Last = c.Own
	d.conns = slices.DeleteFunc(d.conns, func(x *Conn) bool { return x == c })
}

// Submit submits jobs and waits for the end of each, or for its ID if the client does not wait for the end, over the
// connections that the program selects. It returns the first failure.
func (d *Driver) Submit(ctx context.Context, calls ...*Call) error {
	if d.Drops {
		err := d.With(ctx, calls[0].Task, func(c *Conn) error {
			first := &Call{Task: maps.Clone(calls[0].Task)}
			err := c.submit(first)
			if err == nil {
				err = c.wait(func() bool { return first.waiting == 0 })
			}
			c.Broken = true
			return err
		})
		if err != nil {
			return err
		}
	}
	groups := [][]*Call{calls}
	if d.PerTask {
		groups = slices.Collect(slices.Chunk(calls, 1))
	}
	if d.Doubles {
		var twins []*Call
		for _, t := range calls {
			twins = append(twins, &Call{Task: maps.Clone(t.Task)})
		}
		groups = append(groups, twins)
	}
	if len(groups) == 1 {
		return d.With(ctx, calls[0].Task, func(c *Conn) error {
			if err := c.submit(calls...); err != nil {
				return err
			}
			return c.finish(calls...)
		})
	}
	var conns []*Conn
	for _, group := range groups {
		c, err := d.connect(ctx)
		if err != nil {
			return err
		}
		defer d.Leave(c)
		defer context.AfterFunc(ctx, c.abort)()
		c.SetLimit(group[0].limit())
		if err := errors.Join(c.submit(group...), c.flush()); err != nil {
			return err
		}
		conns = append(conns, c)
	}
	for i, c := range conns {
		if err := c.finish(groups[i]...); err != nil {
			return err
		}
	}
	return nil
}

// submit submits jobs. When it returns, the last ones may still be unsent.
func (c *Conn) submit(calls ...*Call) error {
	for _, t := range calls {
		if err := c.Send("Submit", t); err != nil {
			return err
		}
		if !c.program.Waits {
			continue
		}
		if err := c.wait(func() bool { return t.waiting == 0 }); err != nil {
			return err
		}
	}
	return nil
}

// Submit is the task of a client that submits a job. The answer contains the result and the reports, or the ID of a job
// whose end the client does not wait for.
func Submit(ctx context.Context, d *Driver, t Task, _ []string) ([]string, error) {
	call := &Call{Task: t}
	if err := d.Submit(ctx, call); err != nil {
		return nil, err
	}
	if !call.attached {
		return []string{t["JOB_ID"]}, nil
	}
	return append([]string{t["RESULT"]}, call.Events...), nil
}

// Ask returns the task of a client that performs a sequence. The answer contains what [Conn.Ask] returns.
func Ask(sequence, reply string, from int) Action {
	return func(ctx context.Context, d *Driver, t Task, _ []string) (answer []string, err error) {
		err = d.With(ctx, t, func(c *Conn) error {
			answer, err = c.Ask(sequence, reply, from, t)
			return err
		})
		return answer, err
	}
}

// Ask performs a sequence and returns the arguments of the reply, from one of them on.
func (c *Conn) Ask(sequence, reply string, from int, t Task) ([]string, error) {
	call, err := c.Request(sequence, t)
	args := call.Replies[reply]
	return args[min(from, len(args)):], err
}

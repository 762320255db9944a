package gearmonkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verb is a kind of task.
type verb struct {
	least int // words that it has at least
	usage string
	do    func(d *Driver, ctx context.Context, words []string) (answer []string, err error)
}

var verbs = map[string]verb{
	"run":  {2, "run FUNCTION INPUT [priority=low|normal|high|scheduled] [at=UNIXTIME] [blocking=SECONDS] [rollcall]", (*Driver).run},
	"get":  {2, "get FUNCTION ID", (*Driver).get},
	"work": {3, "work FUNCTION[,FUNCTION...] echo|fail|progress|empty|reverse JOBS", (*Driver).work},
}

// errSyntax is a task that is not in the form of its verb.
var errSyntax = errors.New("wrong form")

// failures are the words that tell errors apart. What none of them matches is a
// matter of the connection.
var failures = []struct {
	err  error
	word string
}{
	{ErrNothingRegistered, "nothing-registered"},
	{ErrNoID, "no-id"},
	{ErrTimedOut, "timed-out"},
	{ErrUsage, "usage"},
}

// answer carries out a task and returns the words of its answer. A failed task
// leaves words, too, if there is something to know.
func (d *Driver) answer(ctx context.Context, line string) []string {
	words, err := d.carryOut(ctx, line)
	if err == nil {
		return append([]string{"ok"}, words...)
	}
	if refused := (*RedisError)(nil); errors.As(err, &refused) {
		return []string{"error", "redis", refused.Text}
	}
	for _, f := range failures {
		if errors.Is(err, f.err) {
			if words == nil {
				words = []string{err.Error()}
			}
			return append([]string{"error", f.word}, words...)
		}
	}
	return []string{"error", "connection", err.Error()}
}

func (d *Driver) carryOut(ctx context.Context, line string) ([]string, error) {
	words, err := splitWords(line)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: the task is empty", ErrUsage)
	}
	v, ok := verbs[words[0]]
	if !ok {
		return nil, fmt.Errorf("%w: no task is called %s", ErrUsage, words[0])
	}
	err = errSyntax
	var answer []string
	if words = words[1:]; len(words) >= v.least {
		answer, err = v.do(d, ctx, words)
	}
	if errors.Is(err, errSyntax) {
		err = fmt.Errorf("%w: the form is %s", ErrUsage, v.usage)
	}
	return answer, err
}

// settings are what may stand behind a run's input: a name, and what the value
// means.
var settings = map[string]func(o *RunOptions, value string) error{
	"priority": func(o *RunOptions, value string) error {
		o.Priority = value
		return nil
	},
	"at": func(o *RunOptions, value string) (err error) {
		o.Scheduled, err = strconv.ParseInt(value, 10, 64)
		return err
	},
	"blocking": func(o *RunOptions, value string) (err error) {
		o.Blocking = true
		o.Timeout, err = strconv.Atoi(value)
		return err
	},
	"rollcall": func(o *RunOptions, value string) error {
		o.RollCall = true
		if value != "" {
			return errSyntax
		}
		return nil
	},
}

func (d *Driver) run(ctx context.Context, words []string) ([]string, error) {
	var o RunOptions
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		set := settings[name]
		if set == nil || set(&o, value) != nil {
			return nil, errSyntax
		}
	}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	id, err := NewClient(c, d.Program).Run(ctx, words[0], []byte(words[1]), o)
	if id == 0 {
		return nil, err
	}
	return []string{strconv.FormatUint(id, 10)}, err
}

func (d *Driver) get(ctx context.Context, words []string) ([]string, error) {
	id, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil || len(words) > 2 {
		return nil, errSyntax
	}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	j, err := NewClient(c, d.Program).Get(ctx, words[0], id)
	if err != nil {
		return nil, err
	}
	answer := []string{j.Status(), j.Output()}
	for _, f := range j.Fields {
		if f.Name != "status" && f.Name != "output" {
			answer = append(answer, f.Name, f.Value)
		}
	}
	return answer, nil
}

// ways are how a task's worker may work.
var ways = map[string]func(w *Worker) Handler{
	"echo": func(*Worker) Handler {
		return func(_ context.Context, t *Task) ([]byte, error) { return t.Input, nil }
	},
	"fail": func(*Worker) Handler {
		return func(_ context.Context, t *Task) ([]byte, error) { return nil, errors.New(string(t.Input)) }
	},
	"progress": func(w *Worker) Handler {
		return func(ctx context.Context, t *Task) ([]byte, error) { return t.Input, w.Update(ctx, 1, 2) }
	},
	"empty": func(*Worker) Handler {
		return func(context.Context, *Task) ([]byte, error) { return nil, nil }
	},
	"reverse": func(*Worker) Handler {
		return func(_ context.Context, t *Task) ([]byte, error) {
			out := slices.Clone(t.Input)
			slices.Reverse(out)
			return out, nil
		}
	},
}

func (d *Driver) work(ctx context.Context, words []string) ([]string, error) {
	way := ways[words[1]]
	jobs, err := strconv.ParseUint(words[2], 10, 31)
	if err != nil || way == nil || len(words) > 3 {
		return nil, errSyntax
	}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	w := NewWorker(c, d.Program)
	w.Limit, w.Idle = int(jobs), jobs == 0
	for _, fn := range strings.Split(words[0], ",") {
		w.Accept(fn)
	}
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, c.Abort) })()
	if err := w.Work(ctx, way(w)); err != nil {
		return nil, err
	}
	return []string{strconv.Itoa(w.Done)}, nil
}

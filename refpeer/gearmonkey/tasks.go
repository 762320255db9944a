package gearmonkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/refpeer/internal/line"
)

// errSyntax is returned for a task that does not have the form of its verb.
var errSyntax = errors.New("invalid task")

// verb returns a kind of task with at least the given number of arguments. A connection that has failed is closed before
// the answer is written.
func (d *Driver) verb(least int, form string, do func(ctx context.Context, words []string) ([]string, error)) line.Verb {
	return line.Verb{Do: func(ctx context.Context, words []string) (answer []string, err error) {
		err = errSyntax
		if len(words) >= least {
			answer, err = do(ctx, words)
		}
		if errors.Is(err, errSyntax) {
			err = fmt.Errorf("%w: expected %s", ErrUsage, form)
		}
		switch {
		case d.conn == nil:
		case d.conn.Err() != nil:
			d.hangUp()
		default:
			d.conn.Idle()
		}
		return answer, err
	}}
}

// incomplete is the error of a client that did not see the end of its job.
type incomplete struct {
	id string
	error
}

func (i *incomplete) Unwrap() error { return i.error }

// failure returns the answer to a task that failed, or nil if it is the same for all protocols.
func failure(err error) []string {
	var refused *RedisError
	var job *incomplete
	switch {
	case errors.As(err, &refused):
		return []string{"error", "redis", refused.Text}
	case errors.Is(err, ErrNothingRegistered):
		return []string{"error", "nothing-registered", err.Error()}
	case errors.Is(err, ErrNoID):
		return []string{"error", "no-id", err.Error()}
	case errors.Is(err, ErrTimedOut) && errors.As(err, &job):
		return []string{"error", "timed-out", job.id}
	}
	return nil
}

// settings set the options of a run task, by their names.
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
	n, err := NewClient(c, d.Program).Run(ctx, words[0], []byte(words[1]), o)
	id := strconv.FormatUint(n, 10)
	if err != nil {
		return nil, &incomplete{id, err}
	}
	return []string{id}, nil
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

// ways contains the handlers, by the word of the work task.
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

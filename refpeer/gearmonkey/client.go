package gearmonkey

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

var priorities = []string{protocol.Low, protocol.Normal, protocol.High, protocol.Scheduled}

// RunOptions are what a caller may choose about a job. The zero value asks for
// what the document calls the defaults.
type RunOptions struct {
	Priority  string // "low", "normal", "high" or "scheduled"; "" is normal
	Scheduled int64  // when a job of priority scheduled is due; seconds since 1970
	RollCall  bool   // create no job if no worker is registered for its function
	Blocking  bool   // wait for the job's end
	Timeout   int    // how long at most, in seconds; 0 is for ever
}

// check refuses what no job can be created with.
func (o *RunOptions) check() error {
	switch {
	case !slices.Contains(priorities, o.Priority):
		return fmt.Errorf("%w: expected priority low, normal, high or scheduled, got %q", ErrUsage, o.Priority)
	case o.Scheduled != 0 && o.Priority != protocol.Scheduled:
		return fmt.Errorf("%w: a time was given, but the priority is %s, not scheduled", ErrUsage, o.Priority)
	case o.Scheduled < 0:
		return fmt.Errorf("%w: a job cannot be scheduled before 1970", ErrUsage)
	case o.Timeout != 0 && !o.Blocking:
		return fmt.Errorf("%w: a timeout needs the option blocking", ErrUsage)
	case o.Timeout < 0:
		return fmt.Errorf("%w: the timeout is negative", ErrUsage)
	}
	return nil
}

// Job is what a server knows of a job: the fields of its hash, in the server's
// order. A job that is not there has none.
type Job struct{ Fields []Field }

// Field is one of them.
type Field struct{ Name, Value string }

// Get returns the value of a field, or "" if there is none.
func (j Job) Get(name string) string {
	for _, f := range j.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Status returns "idle", "busy", "success" or "error", or "" if there is no such job.
func (j Job) Status() string { return j.Get("status") }

// Output returns what the worker made of the job: a value, or the text of an error.
func (j Job) Output() string { return j.Get("output") }

// Client creates jobs and looks at them, over one connection. It is not safe for
// concurrent use.
type Client struct {
	// After, if it is set, is called behind each step with its name: once the
	// server has answered, and before anything is made of that.
	After func(step string)

	performer performer
	task      Task
	run, get  cycle
}

// NewClient makes a client of a connection, which stays the caller's. A nil
// program is the document's.
func NewClient(c *Conn, p *Program) *Client {
	if p == nil {
		p = Document()
	}
	return &Client{performer: performer{conn: c}, run: p.Run.compile(), get: p.Get.compile()}
}

// Run creates a job and returns its ID, which is 0 if none was created. From the
// moment on in which the server has given an ID, it is returned beside errors,
// too. Each command is sent when the one before is answered, so that nothing is
// queued that does not stand in the server.
//
// The error is [ErrUsage], [ErrNothingRegistered], [ErrNoID] or, of a call that
// blocks, [ErrTimedOut]; or what the server or the connection did, in a
// [*StepError]. After the end of ctx the connection is of no use any more.
func (c *Client) Run(ctx context.Context, function string, input []byte, o RunOptions) (id uint64, err error) {
	if o.Priority == "" {
		o.Priority = protocol.Normal
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	t := &c.task
	t.begin(function)
	t.Priority = append(t.Priority[:0], o.Priority...)
	t.Scheduled = strconv.AppendInt(t.Scheduled[:0], o.Scheduled, 10)
	t.Timeout = strconv.AppendInt(t.Timeout[:0], int64(o.Timeout), 10)
	t.RollCall, t.Blocking = o.RollCall, o.Blocking
	t.Input = input
	err = c.perform(ctx, c.run)
	t.Input = nil
	id, _ = codec.ParseNumber(t.ID) // of none it is 0
	return id, err
}

// Get returns what the server knows of a job.
func (c *Client) Get(ctx context.Context, function string, id uint64) (Job, error) {
	t := &c.task
	t.begin(function)
	t.ID = strconv.AppendUint(t.ID, id, 10)
	t.Job = Job{}
	err := c.perform(ctx, c.get)
	return t.Job, err
}

func (c *Client) perform(ctx context.Context, s cycle) error {
	if err := ctx.Err(); err != nil {
		return err // while the connection is as good as before
	}
	c.performer.after = c.After
	return c.performer.perform(ctx, s, &c.task)
}

// begin empties a task for a job of the function.
func (t *Task) begin(function string) {
	t.Function = append(t.Function[:0], function...)
	t.ID = t.ID[:0]
	t.Input, t.lost = t.Input[:0], false
}

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

// RunOptions are the options of Client.run. The zero value selects the defaults of the specification.
type RunOptions struct {
	Priority  string // "low", "normal", "high" or "scheduled"; "" is normal
	Scheduled int64  // when a job of priority scheduled may start; seconds since 1970
	RollCall  bool   // do not create the job if no worker is registered for its function
	Blocking  bool   // wait for the end of the job
	Timeout   int    // of Blocking, in seconds; 0: no limit
}

// check rejects invalid options.
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

// Job contains the fields of a job's hash, in the order in which the server returned them. A job that does not exist has
// none.
type Job struct{ Fields []Field }

// Field is one field of a job's hash.
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

// Output returns the output of the job: a value, or the text of an error.
func (j Job) Output() string { return j.Get("output") }

// Client creates jobs and reads their hashes, over one connection. It is not safe for concurrent use.
type Client struct {
	conn    *Conn
	program *Program
}

// NewClient returns a client that uses a connection. The caller closes the connection. A nil program means [Document].
func NewClient(c *Conn, p *Program) *Client {
	if p == nil {
		p = Document()
	}
	return &Client{c, p}
}

// Run creates a job and returns its ID, or 0 if no job was created. An error after the server has assigned an ID is
// returned together with that ID. Run sends each command after the reply to the previous one, so that a job is not queued
// before its hash exists.
//
// The error matches [ErrUsage], [ErrNothingRegistered], [ErrNoID] or, if the call blocks, [ErrTimedOut]; other errors of
// the server or the connection are in a [*StepError]. If ctx ends during the call, the connection must not be used again.
func (c *Client) Run(ctx context.Context, function string, input []byte, o RunOptions) (id uint64, err error) {
	if o.Priority == "" {
		o.Priority = protocol.Normal
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	t := &Task{Function: []byte(function), Input: input, RollCall: o.RollCall, Blocking: o.Blocking, Priority: []byte(o.Priority),
		Scheduled: strconv.AppendInt(nil, o.Scheduled, 10), Timeout: strconv.AppendInt(nil, int64(o.Timeout), 10)}
	err = c.conn.perform(ctx, c.program.Run, t)
	id, _ = codec.ParseNumber(t.ID) // 0 if there is no ID
	return id, err
}

// Get returns the hash of a job.
func (c *Client) Get(ctx context.Context, function string, id uint64) (Job, error) {
	t := &Task{Function: []byte(function), ID: strconv.AppendUint(nil, id, 10)}
	err := c.conn.perform(ctx, c.program.Get, t)
	return t.Job, err
}

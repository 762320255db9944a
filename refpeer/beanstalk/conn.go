package beanstalk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refpeer/internal/line"
)

// Refusal is a reply that does not report success. Its value is the first word of the reply.
type Refusal string

func (r Refusal) Error() string { return "the server replied " + string(r) }

// Replies that tasks and waiting clients distinguish.
const (
	notFound    = Refusal("NOT_FOUND")
	timedOut    = Refusal("TIMED_OUT")
	outOfMemory = Refusal("BURIED") // in response to release: the server has buried the job
)

// pollTime is the pause before a client that polls repeats its request; extraTime is added to the timeout of a task if the
// client measures the timeout itself (Program.OwnLimit).
const (
	pollTime  = 20 * time.Millisecond
	extraTime = 500 * time.Millisecond
)

// conn is one connection to a server.
type conn struct {
	*line.Conn
	program *Program
	tubes
	jobs    map[string]bool // IDs of the jobs that this connection has reserved
	waiting []*codec.Type   // requests that were sent and whose replies were not read
	asked   bool            // the client has sent reserve
	broken  bool            // the connection must not be used again
}

// tubes are the tubes that a connection uses and watches.
type tubes struct {
	used    string
	watched []string
}

func newTubes() tubes {
	return tubes{protocol.Protocol.DefaultQueue, []string{protocol.Protocol.DefaultQueue}}
}

func dial(ctx context.Context, addr string, p *Program) (*conn, error) {
	c, err := line.Dial(ctx, addr, protocol.Protocol, &p.Quirks)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, program: p, tubes: newTubes(), jobs: map[string]bool{}}, nil
}

// close sends quit and closes the connection. If the connection has failed, it does not send quit.
func (c *conn) close() {
	if !c.broken && c.send(c.program.Leave, &Task{}) == nil && c.Flush() == nil {
		c.Close()
	}
	c.Abort()
}

// send appends the messages of a sequence to those that are sent next.
func (c *conn) send(s Sequence, t *Task) error {
	for _, st := range s {
		if st.If != nil && !st.If(t) {
			continue
		}
		st.If = nil
		if err := line.Send(c.Conn, Sequence{st}, t, placeholders); err != nil {
			return err
		}
		name, _, _ := strings.Cut(st.Do, " ")
		if msgType := protocol.Protocol.TypeNamed(name); len(msgType.Replies) > 0 {
			c.waiting = append(c.waiting, msgType)
		}
	}
	return nil
}

// request sends the messages of a sequence and reads the replies to all requests that were sent. The first reply of the
// sequence that reports success sets the results of the task. If a reply is an error that any command may receive, or no
// reply reports success, request returns the first reply that does not report success.
func (c *conn) request(s Sequence, t *Task) error {
	before := len(c.waiting)
	if err := c.send(s, t); err != nil {
		return err
	}
	var refused error
	done, failed := false, false
	all := c.waiting
	c.waiting = nil
	for i, msgType := range all {
		m, err := c.Next()
		if err != nil {
			return c.AfterEOF(err)
		}
		switch success := m.Type.Name == msgType.Replies[0]; {
		case i < before && !success: // the connection may use or watch another tube than this client assumes
			return fmt.Errorf("%w in response to %s", errors.Join(errPipelineRejected, Refusal(m.Type.Word)), msgType.Name)
		case i < before:
		case success:
			if set := results[m.Type.Name]; set != nil && !done {
				set(t, m.Args)
			}
			done = true
		default:
			if refused == nil {
				refused = Refusal(m.Type.Word)
			}
			failed = failed || slices.Contains(anyRequest, m.Type)
		}
	}
	if done && !failed {
		return nil
	}
	return refused
}

// anyRequest contains the errors that may be the reply to any request. They are taken from the replies to use, which has no
// other errors.
var anyRequest = protocol.Protocol.TypeNamed("use").Answers

// errPipelineRejected is returned if the server rejected a pipelined command on which a later command depends.
var errPipelineRejected = errors.New("a pipelined request was rejected")

// results set the results of a task, by the type of the reply.
var results = map[string]func(t *Task, args [][]byte){
	"INSERTED": func(t *Task, args [][]byte) { t.ID = bytes.Clone(args[0]) },
	"RESERVED": job,
	"FOUND":    job,
	"KICKED":   func(t *Task, args [][]byte) { t.Count = bytes.Clone(args[0]) },
	"stats-reply": func(t *Task, args [][]byte) {
		for i := 0; i+1 < len(args); i += 2 {
			switch string(args[i]) {
			case "state":
				t.State = bytes.Clone(args[i+1])
			case "tube":
				t.Tube = bytes.Clone(args[i+1])
			}
		}
	},
}

func job(t *Task, args [][]byte) { t.ID, t.Body = bytes.Clone(args[0]), bytes.Clone(args[1]) }

// prepare sends a request on which the next one depends. A pipelining client does not wait for the reply.
func (c *conn) prepare(s Sequence, t *Task) error {
	if c.program.Pipelined {
		return c.send(s, t)
	}
	return c.request(s, t)
}

// use makes the connection use the tube of the task.
func (c *conn) use(t *Task) error {
	if c.used == string(t.Tube) {
		return nil
	}
	err := c.prepare(c.program.Use, t)
	if err == nil {
		c.used = string(t.Tube)
	}
	return err
}

// watch makes the connection watch the tubes of the task and no others.
func (c *conn) watch(t *Task) error {
	for _, name := range t.Tubes {
		if slices.Contains(c.watched, name) {
			continue
		}
		if err := c.prepare(c.program.Watch, &Task{Tube: []byte(name)}); err != nil {
			return err
		}
		c.watched = append(c.watched, name)
	}
	for _, name := range slices.Clone(c.watched) {
		if slices.Contains(t.Tubes, name) || c.program.LateIgnore && !c.asked && name == protocol.Protocol.DefaultQueue {
			continue
		}
		if err := c.prepare(c.program.Ignore, &Task{Tube: []byte(name)}); err != nil {
			return err
		}
		c.watched = slices.DeleteFunc(c.watched, func(w string) bool { return w == name })
	}
	return nil
}

// reserve reserves a job from the tubes of the task.
func (c *conn) reserve(ctx context.Context, t *Task) error {
	if err := c.wait(ctx, t); err != nil {
		return err
	}
	c.jobs[string(t.ID)] = true
	err := c.request(c.program.Reserved, t)
	var refused Refusal
	if errors.As(err, &refused) { // the job is reserved nevertheless
		return nil
	}
	return err
}

// wait waits for a job in the way that the program selects.
func (c *conn) wait(ctx context.Context, t *Task) error {
	p := c.program
	deadline := time.Now().Add(time.Duration(t.Timeout) * time.Second)
	expired := func() bool { return t.Limited && !time.Now().Before(deadline) }
	if p.ByID {
		for {
			if err := c.find(t); !errors.Is(err, notFound) {
				return err
			}
			if expired() {
				return timedOut
			}
			if c.Pause(pollTime); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	if err := c.watch(t); err != nil {
		return err
	}
	c.asked = true
	switch {
	case p.InPieces:
		piece := &Task{Limited: true, Timeout: p.Piece}
		for {
			err := c.request(p.Reserve, piece)
			if t.ID, t.Body = piece.ID, piece.Body; !errors.Is(err, timedOut) || expired() {
				return err
			}
			if c.Pause(pollTime); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	case p.OwnLimit && t.Limited:
		c.SetLimit(time.Until(deadline) + extraTime)
		defer c.SetLimit(0)
		t.Limited = false
		err := c.request(p.Reserve, t)
		if errors.Is(err, line.ErrTimedOut) { // the server may still reserve a job for this connection
			c.broken, err = !p.ReusesFailed, timedOut
		}
		return err
	}
	return c.request(p.Reserve, t)
}

// find reserves a job that is ready in one of the tubes of the task. It returns notFound if there is none.
func (c *conn) find(t *Task) error {
	for _, name := range t.Tubes {
		t.Tube = []byte(name)
		if err := c.use(t); err != nil {
			return err
		}
		err := c.request(c.program.PeekReady, t)
		if err == nil {
			err = c.request(c.program.Fetch, t)
		}
		if !errors.Is(err, notFound) {
			return err
		}
	}
	return notFound
}

// fetch reserves jobs by their IDs. It waits until the server has noticed the end of the connection that had reserved them,
// at most until the context ends.
func (c *conn) fetch(ctx context.Context, ids map[string]bool) error {
	for id := range ids {
		t := &Task{ID: []byte(id)}
		for {
			err := c.request(c.program.Fetch, t)
			if err == nil {
				c.jobs[id] = true
				break
			}
			if !errors.Is(err, notFound) {
				return err
			}
			if c.Pause(pollTime); ctx.Err() != nil {
				return notFound
			}
		}
	}
	return nil
}

// give sends a command that gives a reserved job back or deletes it.
func (c *conn) give(s Sequence, t *Task) error {
	t.Reserved = c.jobs[string(t.ID)]
	err := c.request(s, t)
	if err == nil || errors.Is(err, notFound) || errors.Is(err, outOfMemory) {
		delete(c.jobs, string(t.ID))
	}
	return err
}
